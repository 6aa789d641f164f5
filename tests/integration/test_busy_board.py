"""A board is deleted while its jobs end, are told of, shown and taken back: nobody's turn fails."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable
from datetime import timedelta

import pytest

from bot.app.context import SystemClock
from bot.domain.board import NewBoard
from bot.domain.scoring import ScoreValue
from bot.domain.submission import Exclusion, ExclusionKind, NewDisplay, NewSubmission
from bot.store.postgres import open_store
from runners.contract.task import Mode
from tests.doubles.databases import fresh_database
from tests.doubles.stored import Scene, make_evaluation, make_task, set_up

BOARDS, SUBMISSIONS = 12, 6
SOON_S = 0.008
"""In so many seconds of each other all of them happen."""


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    async with fresh_database() as dsn, open_store(dsn, SystemClock()) as store:
        yield await set_up(store)


async def test_nothing_that_goes_on_stands_in_the_way_of_a_deletion(scene: Scene) -> None:
    for number in range(BOARDS):
        name = f"board-{number}"
        new = NewBoard(name, ("CPU",), None, scene.ada.id)
        board = await scene.store.boards.publish(new, make_task(name), f"digest-{number}")
        own = Scene(scene.store, board, scene.ada)
        deeds = [deed async for deed in _what_goes_on(own)]
        gone, *ended = await asyncio.gather(
            _soon(scene.store.boards.delete(board.id)), *map(_soon, deeds), return_exceptions=True
        )
        assert [each for each in ended if isinstance(each, BaseException)] == []
        assert gone is True
        assert await scene.store.boards.get(board.id) is None


async def _what_goes_on(scene: Scene) -> AsyncIterator[Awaitable[object]]:
    """For each of some running jobs what its worker, its door and its owner do."""
    store, lease = scene.store, timedelta(seconds=30)
    for number in range(SUBMISSIONS):
        submission = (await store.submissions.add(_shown(scene, number))).id
        job = await scene.claim_one()
        yield store.jobs.accept(job.id, job.fence, make_evaluation(), ScoreValue(1 + number, 0.1))
        yield store.jobs.add_progress(job.id, job.fence, "test", {"done": 1})
        yield store.jobs.request_cancel(submission)
        yield store.displays.claim("discord", "me", lease)
        yield store.displays.renew("me", lease)
        yield store.moderation.exclude(Exclusion(submission, ExclusionKind.WITHDRAWN, ""))


async def _soon(deed: Awaitable[object]) -> object:
    await asyncio.sleep(random.random() * SOON_S)  # noqa: S311 - no secret
    return await deed


def _shown(scene: Scene, number: int) -> NewSubmission:
    return NewSubmission(
        person=scene.ada.id,
        board=scene.board.id,
        task_version=scene.board.task_version,
        file_name="kernel.py",
        source=f"# {number}",
        mode=Mode.RANKED,
        gpus=("CPU",),
        priority=1,
        display=NewDisplay("discord", "here"),
    )
