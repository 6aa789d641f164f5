"""Tests of how references come to their times."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest
from typing_extensions import override

from bot.domain.board import TaskVersion, Viewer
from bot.domain.errors import StoreError, UserError
from bot.domain.ids import PersonId, SubmissionId, TaskVersionId, is_system_submission
from bot.domain.job import JobState
from bot.domain.leaderboard import BoardStandings
from bot.domain.publication import PublishRequest
from bot.domain.reference_times import Reference
from bot.services.history import submission_history
from bot.services.lookup import visible_submission
from bot.services.maintenance import RETRY_AFTER, queue_references, time_references
from bot.services.moderation import Decision
from bot.services.parser_process import ParserProcess
from bot.services.publishing.publish import publish
from bot.services.standings import board_standings
from bot.services.submissions import rejudge_submission
from runners.backends import fake
from runners.contract.evaluation import EvaluationRequest, RoundPolicy
from runners.contract.runner import CallId, RunnerError
from runners.contract.task import Mode
from tests.doubles.dispatching import dispatching, failing, until
from tests.doubles.factories import make_capabilities, make_task
from tests.doubles.place import Place

SORTED = {"reference.py": "def ref_kernel(data): ...\n", "sizes.py": "", "task.py": ""}


class KeepingRunner(fake.FakeRunner):
    """A fake runner that keeps its requests and answers them as it is told."""

    def __init__(self, directives: Sequence[str] = ()) -> None:
        super().__init__("fake", make_capabilities(gpus={"CPU": 1, "H100": 1}))
        self.requests: list[EvaluationRequest] = []
        self.directives = list(directives)

    @override
    async def start(self, request: EvaluationRequest) -> CallId:
        self.requests.append(request)
        if not self.directives:
            return await super().start(request)
        directive = self.directives.pop(0)
        if directive == "away":
            raise RunnerError("away")
        source = f"{request.source}# fake: {directive}\n"
        return await super().start(request.model_copy(update={"source": source}))


async def publish_sort(place: Place, gpus: tuple[str, ...] = ("CPU",)) -> None:
    task = make_task(name="sort", files=SORTED, shared_files=("task.py",), gpus=gpus)
    await publish(place.store, place.clock, PublishRequest(place.ada), task)


async def shown(place: Place, viewer: PersonId | None = None) -> BoardStandings:
    (board,) = await board_standings(place.store, Viewer(viewer or place.ada), "sort", "CPU")
    return board


async def reference(place: Place, gpu: str = "CPU") -> Reference | None:
    board = await place.store.boards.find("sort")
    assert board is not None
    return await place.store.references.of(board.task_version, gpu)


async def run(place: Place, runner: KeepingRunner, **config: object) -> None:
    """Order, and let a dispatcher work until every reference has ended."""

    async def ended() -> bool:
        return not await place.store.jobs.backlog()

    await queue_references(place.store)
    async with dispatching(place.store, place.clock, [runner], **config):
        await until(ended)


async def test_the_reference_is_timed_by_the_ranked_run_of_a_candidate_that_sees_the_task(
    place: Place,
) -> None:
    await publish_sort(place, ("CPU", "H100"))
    runner = KeepingRunner(["time_us=812"] * 2)
    await run(place, runner)
    first, second = runner.requests
    assert {first.gpu, second.gpu} == {"CPU", "H100"}
    assert first.source == "from reference import ref_kernel as custom_kernel\n"
    assert (first.mode, first.rounds) == (Mode.RANKED, None)
    assert set(first.task.shared_files) == set(SORTED)
    value = (await shown(place)).reference
    assert value is not None
    assert value.time_ns == 812_000


async def test_a_reference_that_takes_minutes_to_parse_goes_untimed_and_nobody_waits_for_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.services.maintenance.TASKS", ParserProcess(0.6, 60))
    fields = "{data}" * 300_000
    files = {"reference.py": f'{SORTED["reference.py"]}x = f"{fields}"\n'}
    task = make_task(name="sort", files=files, shared_files=(), gpus=("CPU",))
    await publish(place.store, place.clock, PublishRequest(place.ada), task)
    turns = 0
    ordering = asyncio.create_task(queue_references(place.store))
    while not ordering.done():
        await asyncio.sleep(0.01)
        turns += 1
    assert await ordering == 0
    assert turns > 10
    found = await reference(place)
    assert found is not None
    assert found.submission is None


async def test_a_person_s_candidate_never_sees_the_reference(place: Place) -> None:
    await publish_sort(place)
    await place.submit(board="sort")
    runner = KeepingRunner()
    await run(place, runner)
    people, house = runner.requests
    assert people.task.shared_files == ("task.py",)
    assert house.task.name == "sort"


async def test_fewer_rounds_hold_for_people_and_never_for_what_is_kept(place: Place) -> None:
    await publish_sort(place)
    runner = KeepingRunner()
    few = RoundPolicy(looks=(2,))
    await place.submit(board="sort")
    await run(place, runner, rounds=few)
    assert [each.rounds for each in runner.requests] == [few, None]


async def test_nobody_is_ranked_by_it_and_nobody_s_history_has_it(place: Place) -> None:
    await publish_sort(place)
    await run(place, KeepingRunner())
    board = await shown(place)
    assert (board.entries, board.refused) == ((), ())
    assert await submission_history(place.store, Viewer(place.ada)) == ()


async def test_it_is_ordered_once_however_often_and_by_however_many(place: Place) -> None:
    await publish_sort(place)
    counts = await asyncio.gather(*(queue_references(place.store) for _ in range(3)))
    assert sum(counts) == 1
    assert await queue_references(place.store) == 0


async def test_a_task_without_a_reference_is_asked_once(place: Place) -> None:
    assert await queue_references(place.store) == 0
    assert await place.store.references.untimed() == ()
    (board,) = await board_standings(place.store, Viewer(place.ada), "vectoradd")
    assert (board.reference, board.reference_failure) == (None, "")


async def test_an_attempt_that_fails_is_made_again(place: Place) -> None:
    await publish_sort(place)
    await queue_references(place.store)
    runner = KeepingRunner(["away", "time_us=7"])
    async with dispatching(place.store, place.clock, [runner]):
        await until(lambda: _failed_once(place))
        place.clock.advance(60)
        await until(lambda: _timed(place))
    found = await reference(place)
    assert found is not None
    assert found.value is not None
    assert found.value.time_ns == 7_000


async def _failed_once(place: Place) -> bool:
    found = await reference(place)
    assert found is not None
    assert found.submission is not None
    (job,) = await place.store.jobs.of(found.submission)
    return (job.state, job.error) == (JobState.QUEUED, "away")


async def _timed(place: Place) -> bool:
    found = await reference(place)
    return found is not None and found.value is not None


async def test_a_stop_hands_it_back_at_once_and_uncounted(place: Place) -> None:
    await publish_sort(place)
    await queue_references(place.store)
    runner = KeepingRunner(["seconds=60"])
    async with dispatching(place.store, place.clock, [runner], drain_s=60.0) as running:
        await until(lambda: _started(runner))
        await asyncio.wait_for(running.end(), 5)
    job = await place.claim()
    assert (is_system_submission(job.submission), job.attempt) == (True, 1)


async def _started(runner: KeepingRunner) -> bool:
    return runner.started == 1


async def test_its_failure_is_told_to_the_board_s_creator_alone(place: Place) -> None:
    await publish_sort(place)
    await run(place, KeepingRunner(["verdict=crashed message=exit_1"]))
    assert (await shown(place)).reference_failure == "crashed: exit 1"
    assert (await shown(place, await place.person("bob"))).reference_failure == ""


async def test_its_report_is_for_the_creator_and_it_cannot_be_judged_again(place: Place) -> None:
    await publish_sort(place)
    await queue_references(place.store)
    found = await reference(place)
    assert found is not None
    assert found.submission is not None
    assert (await visible_submission(place.store, Viewer(place.ada), found.submission)).gpus
    bob = Viewer(await place.person("bob"))
    with pytest.raises(UserError, match="there is no submission"):
        await visible_submission(place.store, bob, found.submission)
    with pytest.raises(UserError, match="is never ranked"):
        await rejudge_submission(place.store, Decision(place.ada, "again"), found.submission)


async def test_the_loop_orders_notes_and_outlives_a_database_that_is_away(place: Place) -> None:
    await publish_sort(place)
    away = {"untimed": 1}
    unsteady = replace(place, store=failing(place.store, away, "references"))
    stop = asyncio.Event()
    loop = asyncio.create_task(time_references(unsteady.store, stop, every_s=0.01))
    async with dispatching(place.store, place.clock, [KeepingRunner(["verdict=crashed"])]):
        await until(lambda: _noted(place))
    stop.set()
    await asyncio.wait_for(loop, 1)
    assert away == {"untimed": 0}


async def _noted(place: Place) -> bool:
    return any(row.action == "reference-failed" for row in await place.store.audit.rows())


async def test_a_failure_is_noted_also_when_nobody_looked_before_it_is_tried_again(
    place: Place,
) -> None:
    await publish_sort(place)
    await queue_references(place.store)
    job = await place.claim()
    await place.store.jobs.release(job.id, job.fence, "no runner", final=True)
    place.clock.advance(2 * RETRY_AFTER.total_seconds())
    stop = asyncio.Event()
    loop = asyncio.create_task(time_references(place.store, stop, every_s=0.01))
    await until(lambda: _noted(place))
    await until(lambda: _queued_again(place, job.submission))
    stop.set()
    await asyncio.wait_for(loop, 1)
    rows = [row for row in await place.store.audit.rows() if row.action == "reference-failed"]
    assert len(rows) == 1


async def _queued_again(place: Place, before: SubmissionId) -> bool:
    found = await reference(place)
    return found is not None and found.submission not in {None, before}


async def test_a_task_that_cannot_be_read_keeps_no_other_from_being_timed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = place.board.task_version

    async def version(number: TaskVersionId) -> TaskVersion | None:
        if number == broken:
            raise ValueError("a definition that this release does not know")
        return await read(number)

    read = place.store.boards.version
    monkeypatch.setattr(place.store.boards, "version", version)
    await publish_sort(place)
    assert await queue_references(place.store) == 1
    assert await place.store.references.untimed() == ()


async def test_a_task_that_could_not_be_read_for_a_moment_is_timed_later(place: Place) -> None:
    await publish_sort(place)
    untimed = await place.store.references.untimed()
    unsteady = replace(place, store=failing(place.store, {"version": 1}, "boards"))
    with pytest.raises(StoreError):
        await queue_references(unsteady.store)
    assert await place.store.references.untimed() == untimed
    assert await queue_references(unsteady.store) == 1
