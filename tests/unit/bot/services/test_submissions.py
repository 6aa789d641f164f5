from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest

from bot.domain.board import Access, Viewer, Visibility
from bot.domain.errors import UserError
from bot.domain.ids import PersonId
from bot.domain.job import PRIORITIES
from bot.domain.publication import PublishRequest
from bot.domain.submission import IdempotencyKey, Submission
from bot.ports.records import Submissions
from bot.services.publishing.publish import publish
from runners.contract.task import Mode
from tests.doubles.factories import NOON, make_task
from tests.doubles.place import Place


async def test_a_submission_is_stored_with_a_job_on_the_board_s_only_gpu(place: Place) -> None:
    submission = await place.submit(mode=Mode.TEST)
    (job,) = await place.jobs(submission)
    assert (job.gpu, job.mode, job.priority) == ("CPU", Mode.TEST, PRIORITIES[Mode.TEST])
    assert submission.task_version == place.board.task_version
    assert "custom_kernel" in await place.store.submissions.source(submission.id)


async def test_the_heading_names_board_and_gpus(place: Place) -> None:
    task = make_task(name="sort", gpus=("H100", "L4", "T4"))
    await publish(place.store, place.clock, PublishRequest(place.ada), task)
    content = b"#!PODIUM leaderboard sort\n#!PODIUM gpus t4 H100\n"
    submission = await place.submit(board=None, content=content)
    assert submission.gpus == ("H100", "T4")
    assert len(await place.jobs(submission)) == 2


async def test_an_unknown_board_is_refused_with_the_nearest_name(place: Place) -> None:
    with pytest.raises(UserError, match="did you mean vectoradd") as refusal:
        await place.submit(board="vectorad")
    assert refusal.value.code == "unknown-board"


async def test_a_closed_board_takes_nothing(place: Place) -> None:
    deadline = NOON + timedelta(hours=1)
    await place.store.boards.configure(place.board.id, place.board.gpus, deadline)
    await place.submit()
    place.clock.advance(3601)
    with pytest.raises(UserError, match="closed at 2026-11-01 13:00 UTC"):
        await place.submit()
    assert len(await place.store.submissions.history(place.ada)) == 1


async def test_nothing_of_a_refused_file_is_stored(place: Place) -> None:
    for content in (b"", b"\xff", b"#!PODIUM nonsense x\n"):
        with pytest.raises(UserError):
            await place.submit(content=content)
    assert await place.store.submissions.history(place.ada) == ()


async def test_a_hidden_board_takes_submissions_of_its_guests_alone(place: Place) -> None:
    access = Access(Visibility.PRIVATE)
    await place.store.boards.restrict(place.board.id, access)
    bob = await place.person("bob")
    with pytest.raises(UserError, match="no board named 'vectoradd'"):
        await place.submit(bob)
    await place.store.boards.invite(place.board.id, frozenset({"discord-role:5"}))
    viewer = Viewer(bob, frozenset({"discord-role:5"}))
    assert (await place.submit(bob, viewer=viewer)).person == bob


class _LateKeys:
    """Submissions whose keys are found at the second look: the first one came in between."""

    def __init__(self, submissions: Submissions) -> None:
        self._submissions = submissions
        self.looks = 0

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a proxy of every operation
        return getattr(self._submissions, name)

    async def first(self, person: PersonId, key: IdempotencyKey) -> Submission | None:
        self.looks += 1
        return None if self.looks == 1 else await self._submissions.first(person, key)


async def test_of_two_at_the_same_moment_the_refused_one_gets_what_the_other_stored(
    place: Place,
) -> None:
    stored = await place.submit(key="k-1")
    await place.store.boards.configure(place.board.id, place.board.gpus, place.clock.now())
    place.clock.advance(1)

    for key, answer in (("k-1", stored), ("k-2", None)):
        late = _LateKeys(place.store.submissions)
        with patch.object(place.store, "submissions", late):
            if answer is None:
                with pytest.raises(UserError, match="closed at"):
                    await place.submit(key=key)
            else:
                assert await place.submit(key=key) == answer
        assert late.looks == 2
    assert len(await place.store.submissions.history(place.ada)) == 1
