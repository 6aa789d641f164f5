import re
from typing import Any
from unittest.mock import Mock

import discord
import pytest

from bot.discord.buttons import SubmissionAction, SubmissionButton, buttons_of
from bot.domain.ids import SubmissionId
from bot.domain.submission import Submission
from bot.services.status import submission_status
from runners.contract.task import Mode
from runners.contract.verdict import Stage, Verdict
from tests.doubles.place import Place


async def labels(place: Place, submission: Submission) -> list[str]:
    view = buttons_of(await submission_status(place.store, submission.id))
    assert view.timeout is None
    assert view.is_persistent()
    parts: list[Any] = [part for row in view.to_components() for part in row["components"]]
    return [part["label"] for part in parts]


async def test_what_moves_can_be_stopped(place: Place) -> None:
    assert await labels(place, await place.submit()) == ["Cancel", "Source"]


@pytest.mark.parametrize("mode", [Mode.TEST, Mode.BENCHMARK])
async def test_what_passed_without_rank_can_be_ranked(place: Place, mode: Mode) -> None:
    submission = await place.submit(mode=mode)
    await place.judged(submission)
    assert await labels(place, submission) == ["Run again", "Make ranked", "Source"]


async def test_what_failed_or_is_ranked_cannot_be_ranked_from_there(place: Place) -> None:
    failed = await place.submit(mode=Mode.TEST)
    await place.judged(failed, verdict=Verdict.CRASHED, stage=Stage.TEST)
    ranked = await place.submit()
    await place.judged(ranked)
    for each in (failed, ranked):
        assert await labels(place, each) == ["Run again", "Source"]


@pytest.mark.parametrize("action", list(SubmissionAction))
async def test_a_button_is_known_again_by_its_id(action: SubmissionAction) -> None:
    button = SubmissionButton(action, SubmissionId(10**17))
    written = button.item.custom_id
    assert written is not None
    assert len(written) <= 100
    match = re.fullmatch(SubmissionButton.__discord_ui_compiled_template__, written)
    assert match is not None
    item = Mock(spec=discord.ui.Button)
    found = await SubmissionButton.from_custom_id(Mock(spec=discord.Interaction), item, match)
    assert (found.action, found.submission) == (action, 10**17)
