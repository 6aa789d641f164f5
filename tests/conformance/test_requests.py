"""What every store must do with requests of the evaluation server."""

import asyncio
from datetime import timedelta

import pytest

from bot.domain.accounts import Person
from bot.domain.board import Board
from bot.domain.errors import StoreError, UserError
from bot.domain.job import JobState
from bot.domain.submission import NewSubmission, RateLimit, Submission
from bot.domain.tasks.task_file import digest
from bot.ports import Store
from bot.web.compat.evaluation_server.jobs import requests_board
from runners.contract.task import Mode
from runners.contract.verdict import Stage, Verdict
from tests.doubles.clock import ManualClock
from tests.doubles.stored import Scene, make_evaluation, make_task

HOUR = timedelta(hours=1)


async def add(
    scene: Scene, board: Board, source: str = "a", name: str = "one", person: Person | None = None
) -> Submission:
    task = make_task(name)
    new = NewSubmission(
        person=(person or scene.ada).id,
        board=board.id,
        task_version=board.task_version,
        file_name="kernel.py",
        source=source,
        mode=Mode.RANKED,
        gpus=("CPU",),
        priority=20,
    )
    return await scene.store.requests.add(new, task, digest(task))


@pytest.fixture
async def board(store: Store) -> Board:
    return await requests_board(store)


async def judged(scene: Scene, made: Submission, verdict: Verdict = Verdict.PASSED) -> None:
    job = await scene.claim_one()
    assert job.submission == made.id
    evaluation = make_evaluation(verdict).model_copy(update={"durations_s": {"build": 0.5}})
    assert await scene.store.jobs.accept(job.id, job.fence, evaluation, None)


async def test_a_request_is_judged_by_a_task_of_its_own_which_equal_ones_share(
    scene: Scene, board: Board
) -> None:
    first, second = await add(scene, board), await add(scene, board, "b")
    other = await add(scene, board, name="two")
    assert first.task_version == second.task_version != other.task_version
    version = await scene.store.boards.version(other.task_version)
    assert version is not None
    assert version.definition == make_task("two")
    after = await scene.store.boards.get(board.id)
    assert after is not None
    assert after.task_version == board.task_version
    assert await scene.store.submissions.source(second.id) == "b"


async def test_the_houses_board_is_in_no_list_and_no_reference_of_it_is_timed(
    scene: Scene, board: Board
) -> None:
    await add(scene, board)
    assert [each.name for each in await scene.store.boards.all()] == ["vectoradd"]
    assert await scene.store.submissions.history(scene.ada.id) == ()
    lacking = await scene.store.references.untimed()
    assert {each.board for each in lacking} == {scene.board.id}


async def test_two_at_once_make_one_board_and_one_version(scene: Scene) -> None:
    first, second = await asyncio.gather(requests_board(scene.store), requests_board(scene.store))
    assert first.id == second.id
    made = await asyncio.gather(*(add(scene, first, str(number)) for number in range(8)))
    assert len({each.task_version for each in made}) == 1
    assert len(await scene.store.boards.versions(first.id)) == 2


async def test_limits_hold_for_requests_and_leave_nothing_behind(
    scene: Scene, board: Board
) -> None:
    await scene.store.moderation.set_limit(RateLimit(1, HOUR))
    await add(scene, board)
    with pytest.raises(UserError, match="at most 1 submission"):
        await add(scene, board, name="two")
    assert len(await scene.store.boards.versions(board.id)) == 2


async def test_a_board_that_is_gone_takes_no_request(scene: Scene, board: Board) -> None:
    await scene.store.boards.delete(board.id)
    with pytest.raises(StoreError):
        await add(scene, board)


async def test_requests_are_counted_with_what_became_of_them(
    scene: Scene, board: Board, clock: ManualClock
) -> None:
    assert await scene.store.requests.tallies(board.id) == {}
    wrong, waits = await add(scene, board), await add(scene, board, "b")
    clock.advance(10)
    await judged(scene, wrong, Verdict.WRONG_ANSWER)
    await scene.submit()
    tallies = await scene.store.requests.tallies(board.id)
    assert {state: each.requests for state, each in tallies.items()} == {
        JobState.QUEUED: 1,
        JobState.SUCCEEDED: 1,
    }
    assert [each.age_s for each in tallies.values()] == pytest.approx([10, 10])
    newest, oldest = await scene.store.requests.newest(board.id, 10)
    assert (newest.state, newest.verdict, newest.started_at) == (JobState.QUEUED, None, None)
    assert newest.created_at == waits.created_at
    assert (oldest.verdict, oldest.stage) == (Verdict.WRONG_ANSWER, Stage.TEST)
    assert (oldest.used_s, oldest.durations_s) == (1.5, {"build": 0.5})
    assert oldest.started_at == oldest.finished_at == clock.now()
    assert len(await scene.store.requests.newest(board.id, 1)) == 1


async def test_what_ended_long_ago_is_forgotten_with_its_version_and_source(
    scene: Scene, board: Board, clock: ManualClock
) -> None:
    old, shared = await add(scene, board, "old", "old"), await add(scene, board, "shared")
    await judged(scene, old)
    await judged(scene, shared)
    kept = await scene.submit(source="shared", judged_again=True)
    clock.advance(3601)
    young, waits = await add(scene, board, "young"), await add(scene, board, "waits")
    await scene.claim_one()
    job = await scene.job(kept.id)
    await scene.store.jobs.release(job.id, job.fence, "", final=True)
    assert await scene.store.requests.delete_ended(board.id, HOUR) == 2
    for gone in (old, shared):
        assert await scene.store.submissions.get(gone.id) is None
        with pytest.raises(StoreError):
            await scene.store.submissions.source(gone.id)
    assert await scene.store.boards.version(old.task_version) is None
    assert await scene.store.boards.version(young.task_version) is not None
    assert await scene.store.boards.version(board.task_version) is not None
    assert await scene.store.submissions.source(kept.id) == "shared"
    assert await scene.store.submissions.get(waits.id) is not None
    assert await scene.store.requests.delete_ended(board.id, HOUR) == 0


async def test_one_person_forgets_only_their_own(
    scene: Scene, board: Board, clock: ManualClock
) -> None:
    bob = await scene.store.people.ensure("local:bob", "Bob")
    mine, theirs = await add(scene, board), await add(scene, board, "b", person=bob)
    await judged(scene, mine)
    await judged(scene, theirs)
    clock.advance(3601)
    assert await scene.store.requests.delete_ended(board.id, HOUR, bob.id) == 1
    assert await scene.store.submissions.get(mine.id) is not None
    assert await scene.store.submissions.get(theirs.id) is None


async def test_an_equal_request_while_old_ones_are_forgotten_keeps_its_version(
    scene: Scene, board: Board, clock: ManualClock
) -> None:
    for number in range(5):
        old = await add(scene, board, str(number))
        await judged(scene, old)
        clock.advance(3601)
        forgotten, made = await asyncio.gather(
            scene.store.requests.delete_ended(board.id, HOUR), add(scene, board, f"new {number}")
        )
        assert forgotten == min(2, 1 + number)
        assert await scene.store.boards.version(made.task_version) is not None
        await judged(scene, made)


async def test_what_was_asked_long_ago_and_has_not_ended_is_overdue(
    scene: Scene, board: Board, clock: ManualClock
) -> None:
    runs, waits = await add(scene, board), await add(scene, board, "b")
    await scene.claim_one()
    ended = await add(scene, board, "c")
    await scene.store.jobs.request_cancel(ended.id)
    await scene.submit()
    clock.advance(3600)
    assert await scene.store.requests.overdue(board.id, HOUR) == ()
    clock.advance(1)
    await add(scene, board, "young")
    assert await scene.store.requests.overdue(board.id, HOUR) == (runs.id, waits.id)
