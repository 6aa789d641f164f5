"""Quotas and bans at one and the same moment, on real Postgres and over several processes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta

import pytest

from bot.domain.board import Viewer
from bot.domain.errors import StoreError, UserError
from bot.domain.submission import (
    LONGEST_KEY,
    RateLimit,
    Submission,
    SubmissionRequest,
    SubmissionState,
)
from bot.services import moderation
from bot.services.moderation import Decision
from bot.services.submissions import rejudge_submission, submit
from bot.store.postgres import PostgresStore, open_store
from runners.contract.task import Mode
from tests.doubles.clock import ManualClock
from tests.doubles.stored import Scene, set_up

pytestmark = pytest.mark.postgres

HOUR = timedelta(hours=1)
COPIES = 3
KERNEL = b"def custom_kernel(data):\n    return data\n"


@pytest.fixture
async def copies(postgres_dsn: str, clock: ManualClock) -> AsyncIterator[list[PostgresStore]]:
    """The same database as several processes have it, each with connections of its own."""
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(open_store(postgres_dsn, clock)) for _ in range(COPIES)
        ]


async def rush(
    scene: Scene, copies: list[PostgresStore], clock: ManualClock, *modes: Mode
) -> list[Submission | BaseException]:
    """As many submissions as there are modes, all at once and of one person."""
    viewer = Viewer(scene.ada.id)
    requests = [SubmissionRequest(viewer, "a.py", KERNEL, mode, scene.board.name) for mode in modes]
    return await asyncio.gather(
        *(submit(copies[n % COPIES], clock, each) for n, each in enumerate(requests)),
        return_exceptions=True,
    )


def codes(answers: list[Submission | BaseException]) -> list[str]:
    """The refusals among the answers; anything else that was raised is a fault of ours."""
    raised = [each for each in answers if isinstance(each, BaseException)]
    refused = [each for each in raised if isinstance(each, UserError)]
    assert refused == raised
    return [each.code for each in refused]


async def test_of_fifty_at_one_moment_a_quota_of_five_admits_exactly_five(
    postgres_store: PostgresStore, copies: list[PostgresStore], clock: ManualClock
) -> None:
    scene = await set_up(postgres_store)
    await postgres_store.moderation.set_limit(RateLimit(5, HOUR))
    answers = await rush(scene, copies, clock, *[Mode.RANKED] * 50)
    assert codes(answers) == ["rate-limit"] * 45
    assert len(await postgres_store.submissions.history(scene.ada.id, limit=100)) == 5


async def test_each_mode_has_its_own_quota_and_one_person_takes_none_from_another(
    postgres_store: PostgresStore, copies: list[PostgresStore], clock: ManualClock
) -> None:
    scene = await set_up(postgres_store)
    bob = await postgres_store.people.ensure("local:bob", "Bob")
    board = scene.board.id
    await postgres_store.moderation.set_limit(RateLimit(2, HOUR, board, Mode.RANKED))
    await postgres_store.moderation.set_limit(RateLimit(3, HOUR, board, Mode.TEST))
    both = await asyncio.gather(
        *(
            rush(Scene(postgres_store, scene.board, who), copies, clock, *modes)
            for who in (scene.ada, bob)
            for modes in ([Mode.RANKED] * 10, [Mode.TEST] * 10)
        )
    )
    assert [len(codes(each)) for each in both] == [8, 7, 8, 7]


async def test_a_ban_at_the_moment_of_a_rush_leaves_nothing_to_run(
    postgres_store: PostgresStore, copies: list[PostgresStore], clock: ManualClock
) -> None:
    scene = await set_up(postgres_store)
    carol = await postgres_store.people.ensure("local:carol", "carol")
    deed = Decision(carol.id, "floods the queue")
    answers, _ = await asyncio.gather(
        rush(scene, copies, clock, *[Mode.TEST] * 40),
        moderation.ban(postgres_store, deed, scene.ada.identity),
    )
    assert set(codes(answers)) <= {"banned"}
    kept = await postgres_store.submissions.history(scene.ada.id, limit=100)
    assert {each.state for each in kept} <= {SubmissionState.CANCELLED}
    assert codes(await rush(scene, copies, clock, Mode.TEST)) == ["banned"]


async def test_what_an_admin_has_judged_again_counts_for_no_quota(
    postgres_store: PostgresStore, copies: list[PostgresStore], clock: ManualClock
) -> None:
    scene = await set_up(postgres_store)
    await postgres_store.moderation.set_limit(RateLimit(2, HOUR))
    first = await scene.submit()
    for _ in range(3):
        await rejudge_submission(postgres_store, Decision(scene.ada.id, "a new driver"), first.id)
    answers = await rush(scene, copies, clock, Mode.RANKED, Mode.RANKED)
    assert codes(answers) == ["rate-limit"]


async def test_several_processes_that_get_one_key_make_one_submission(
    postgres_store: PostgresStore, copies: list[PostgresStore], clock: ManualClock
) -> None:
    scene = await set_up(postgres_store)
    await postgres_store.moderation.set_limit(RateLimit(1, HOUR, scene.board.id))
    request = _keyed(scene, "k")
    made = await asyncio.gather(*(submit(copies[n % COPIES], clock, request) for n in range(12)))
    (stored,) = await postgres_store.submissions.to(scene.board.id)
    assert {each.id for each in made} == {stored.id}


async def test_a_submission_whose_key_cannot_be_kept_is_not_stored_either(
    postgres_store: PostgresStore, clock: ManualClock
) -> None:
    scene = await set_up(postgres_store)
    with pytest.raises(StoreError):
        await submit(postgres_store, clock, _keyed(scene, "k" * (LONGEST_KEY + 1)))
    assert await postgres_store.submissions.to(scene.board.id) == ()


def _keyed(scene: Scene, key: str) -> SubmissionRequest:
    viewer = Viewer(scene.ada.id)
    return SubmissionRequest(viewer, "a.py", KERNEL, Mode.TEST, scene.board.name, key=key)
