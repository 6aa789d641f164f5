import asyncio
import re
from typing import Any
from unittest.mock import Mock

import discord
import pytest

from bot.discord.buttons import SubmissionAction, SubmissionButton, board_buttons, buttons_of
from bot.domain.ids import SubmissionId
from bot.domain.publication import PublishRequest
from bot.domain.submission import Submission
from bot.services.publishing.publish import publish
from bot.services.status import submission_status
from runners.contract.task import Mode
from runners.contract.verdict import Stage, Verdict
from tests.doubles.discord.model.messages import Message
from tests.doubles.discord_room import Room
from tests.doubles.discord_room import room as a_room
from tests.doubles.factories import make_task
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


async def pressed(room: Room, report: Message, label: str, *, times: int) -> list[str]:
    """Return the answers to clicks of the same button at the same moment, sorted by their text."""
    clicks = await asyncio.gather(*(room.alice.click(report, label) for _ in range(times)))
    return sorted([(await each.final()).text for each in clicks])


async def sent(room: Room, view: discord.ui.View) -> Message:
    channel = room.client.get_partial_messageable(room.channel.id)
    return room.channel.all_messages[(await channel.send("x", view=view)).id]


async def report_of(room: Room, submission: Submission) -> Message:
    return await sent(room, buttons_of(await submission_status(room.place.store, submission.id)))


@pytest.mark.parametrize("label", ["Run again", "Make ranked"])
async def test_several_clicks_at_once_make_one_run_and_each_shows_it(label: str) -> None:
    async with a_room(commands=True) as room:
        earlier = await room.submit(mode=Mode.TEST)
        await room.place.judged(earlier)
        report = await report_of(room, earlier)
        first, second, third = await pressed(room, report, label, times=3)
        _, made = await room.place.store.submissions.to(room.place.board.id)
        already = f"Submission #{earlier.id} was already submitted again as #{made.id}"
        assert second.startswith(already)
        assert third == second
        assert first.startswith(f"Submission #{earlier.id} runs again as #{made.id}.")
        (later,) = await pressed(room, report, label, times=1)
        assert later.startswith(already)


async def test_a_run_that_was_run_again_can_be_run_again_a_day_later_and_by_command() -> None:
    async with a_room(commands=True) as room:
        earlier = await room.submit(mode=Mode.TEST)
        await room.place.judged(earlier)
        report = await report_of(room, earlier)
        await pressed(room, report, "Run again", times=1)
        run = await room.alice.slash("submission rerun", id=earlier.id)
        assert f"Submission #{earlier.id} runs again as #" in (await run.final()).text
        room.place.clock.advance(86_401)
        (later,) = await pressed(room, report, "Run again", times=1)
        assert "already" not in later
        assert len(await room.place.store.submissions.to(room.place.board.id)) == 4


async def test_two_clicks_at_once_judge_everyones_best_again_once() -> None:
    async with a_room(commands=True) as room:
        place, bob = room.place, await room.place.person("bob")
        for person in (place.ada, bob):
            await place.judged(await place.submit(person, mode=Mode.RANKED))
        changed = make_task(description="Another one.")
        board = (await publish(place.store, place.clock, PublishRequest(place.ada), changed)).board
        question = await sent(room, board_buttons(board, 1, rejudge=True))
        told = await pressed(room, question, "Judge again", times=2)
        submitted = await place.store.submissions.to(board.id)
        assert sum(each.task_version == board.task_version for each in submitted) == 2
        assert any(each.startswith("2 submissions are judged by task version 2") for each in told)
