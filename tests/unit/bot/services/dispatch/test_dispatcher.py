import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from typing_extensions import override

from bot.domain.board import Viewer
from bot.domain.ids import EventId
from bot.domain.job import Claim, JobState
from bot.domain.submission import Submission
from bot.services.confirmations import advance
from bot.services.dispatch.config import DispatchConfig
from bot.services.dispatch.dispatcher import Dispatcher
from bot.services.dispatch.worker_queue import StoreQueue
from bot.services.standings import board_standings
from bot.services.submissions import cancel
from runners.backends import fake
from runners.contract.evaluation import Evaluation, EvaluationRequest
from runners.contract.runner import CallId, ProgressSink, Runner
from runners.contract.task import Mode
from tests.doubles.dispatching import dispatching, failing, failing_to_read, silent, until
from tests.doubles.factories import make_capabilities
from tests.doubles.place import Place

EVER = datetime(1970, 1, 1, tzinfo=UTC)


class RecordingRunner(fake.FakeRunner):
    """A fake runner that keeps every request."""

    def __init__(self) -> None:
        super().__init__("fake", make_capabilities(gpus={"CPU": 4}))
        self.requests: list[EvaluationRequest] = []

    @override
    async def start(self, request: EvaluationRequest) -> CallId:
        self.requests.append(request)
        return await super().start(request)


def source(directive: str) -> bytes:
    return f"# fake: {directive}\n".encode()


async def state(place: Place, submission: Submission) -> JobState:
    (job,) = await place.jobs(submission)
    return job.state


async def until_state(place: Place, submission: Submission, wanted: JobState) -> None:
    async def reached() -> bool:
        return await state(place, submission) is wanted

    await until(reached)


async def test_queued_jobs_are_run_scored_and_ranked(place: Place) -> None:
    for name, time_us in (("bob", 30), ("eve", 20)):
        await place.submit(await place.person(name), content=source(f"time_us={time_us}"))
    last = await place.submit(content=source("verdict=wrong_answer"))
    async with dispatching(place.store, place.clock, [fake.create()]):
        await until_state(place, last, JobState.SUCCEEDED)
        await until(lambda: confirmed(place))
    (board,) = await board_standings(place.store, Viewer(place.ada), "vectoradd")
    assert [each.score.person_name for each in board.entries] == ["eve", "bob"]
    assert [each.score.value.time_ns for each in board.entries] == pytest.approx([20_000, 30_000])
    assert [each.person_name for each in board.refused] == ["ada"]


async def confirmed(place: Place) -> bool:
    """Take the next step of what has to be confirmed; return whether nothing is left."""
    await advance(place.store, place.clock)
    return await place.store.confirmations.unfinished() == ()


async def test_each_of_many_jobs_is_run_once(place: Place) -> None:
    submissions = [await place.submit(mode=Mode.TEST) for _ in range(40)]
    runner = fake.create(slots={"CPU": 3})
    async with dispatching(place.store, place.clock, [runner]):
        for submission in submissions:
            await until_state(place, submission, JobState.SUCCEEDED)
    assert runner.started == 40


async def test_a_job_that_comes_later_is_taken_by_notice(place: Place) -> None:
    async with dispatching(place.store, place.clock, [fake.create()], poll_s=60.0):
        await asyncio.sleep(0.02)
        submission = await place.submit()
        await until_state(place, submission, JobState.SUCCEEDED)
    assert [job.attempt for job in await place.jobs(submission)] == [1]


async def test_when_a_slot_becomes_free_the_next_job_is_taken_without_waiting_for_a_poll(
    place: Place,
) -> None:
    submissions = [await place.submit(mode=Mode.TEST) for _ in range(3)]
    runner = fake.create(slots={"CPU": 1})
    store = silent(place.store)  # notices of ready jobs may be lost
    async with dispatching(store, place.clock, [runner], poll_s=60.0, refresh_s=60.0):
        for submission in submissions:
            await until_state(place, submission, JobState.SUCCEEDED)
    assert runner.started == 3


async def test_ranked_jobs_have_a_fresh_nonce_and_others_none(place: Place) -> None:
    runner = RecordingRunner()
    submissions = [await place.submit(mode=mode) for mode in (Mode.RANKED, Mode.RANKED, Mode.TEST)]
    async with dispatching(place.store, place.clock, [runner]):
        for submission in submissions:
            await until_state(place, submission, JobState.SUCCEEDED)
    nonces = [request.nonce for request in runner.requests]
    assert nonces.count(None) == 1
    assert len({nonce for nonce in nonces if nonce is not None and len(nonce) == 32}) == 2


async def test_progress_is_stored_as_events(place: Place) -> None:
    submission = await place.submit(content=source("seconds=0.06"))
    async with dispatching(place.store, place.clock, [fake.create()]):
        await until_state(place, submission, JobState.SUCCEEDED)
    events = await place.store.jobs.events(submission.id, EventId(0))
    kinds = [event.kind for event in events]
    assert [kind for kind in kinds if kind in {"build", "test", "timing"}] == [
        "build",
        "test",
        "timing",
    ]


async def test_a_failing_runner_is_tried_again_after_a_while_and_given_up_at_last(
    place: Place,
) -> None:
    submission = await place.submit(content=source("error=boom"))
    async with dispatching(place.store, place.clock, [fake.create()]):
        for attempt in (1, 2):
            await until_attempt(place, submission, attempt)
            (job,) = await place.jobs(submission)
            assert (job.state, job.error) == (JobState.QUEUED, "boom")
            place.clock.advance(20)
        await until_attempt(place, submission, 3)
    assert await state(place, submission) is JobState.FAILED


async def test_the_next_attempt_is_told_what_the_failed_one_used(place: Place) -> None:
    submission = await place.submit(content=source("error=boom seconds=0.05"))
    runner = RecordingRunner()
    async with dispatching(place.store, place.clock, [runner]):
        for attempt in (1, 2):
            await until_attempt(place, submission, attempt)
            place.clock.advance(20)
        await until_state(place, submission, JobState.FAILED)
    used = [request.used_s for request in runner.requests]
    assert used[0] == 0
    slept = 0.04  # the event loop may end a sleep slightly early
    assert used[1] > slept
    assert used[2] > used[1] + slept


async def test_a_job_has_no_further_attempt_once_its_attempts_have_used_the_limit(
    place: Place,
) -> None:
    submission = await place.submit(content=source("error=boom seconds=0.05"))
    (job,) = await place.store.jobs.claim(Claim("other", {"CPU": 1}, timedelta(seconds=9)))
    limit_s = 2 * 180
    await place.store.jobs.release(job.id, job.fence, "bang", final=False, used_s=limit_s - 0.01)
    place.clock.advance(20)

    async with dispatching(place.store, place.clock, [fake.create()]):
        await until_state(place, submission, JobState.FAILED)

    (job,) = await place.jobs(submission)
    assert (job.attempt, job.max_attempts, job.error) == (2, 3, "boom")
    assert job.used_s > limit_s


async def test_an_attempt_that_was_lost_has_used_nothing(place: Place) -> None:
    submission = await place.submit(content=source("lost seconds=0.05"))
    async with dispatching(place.store, place.clock, [fake.create()]):
        await until_attempt(place, submission, 1)
    (job,) = await place.jobs(submission)
    assert job.used_s == 0


@pytest.mark.parametrize("away", ["machine", "database"])
async def test_an_attempt_that_is_lost_with_machine_or_database_is_replaced(
    place: Place, away: str
) -> None:
    submission = await place.submit(content=source("lost" if away == "machine" else "time_us=1"))
    store = failing_to_read(place.store) if away == "database" else place.store
    async with dispatching(store, place.clock, [fake.create()]):
        await until_attempt(place, submission, 1)
    (job,) = await place.jobs(submission)
    assert (job.state, job.max_attempts) == (JobState.QUEUED, 4)
    assert "lost" in (job.error or "") if away == "machine" else "away" in (job.error or "")


async def until_attempt(place: Place, submission: Submission, attempt: int) -> None:
    async def reached() -> bool:
        (job,) = await place.jobs(submission)
        return job.attempt == attempt and job.state is not JobState.RUNNING

    await until(reached)


async def test_a_task_that_no_runner_can_serve_fails_at_once_and_says_why(place: Place) -> None:
    submission = await place.submit()
    runner = fake.create(capabilities=make_capabilities(languages=()))
    async with dispatching(place.store, place.clock, [runner]):
        await until_state(place, submission, JobState.FAILED)
    (job,) = await place.jobs(submission)
    assert (job.attempt, job.error) == (1, "no runner can run this task: missing language py")


@pytest.mark.parametrize("told_by", ["notice", "heartbeat"])
async def test_a_running_job_stops_when_its_person_asks(place: Place, told_by: str) -> None:
    notified = told_by == "notice"
    store = place.store if notified else silent(place.store)
    submission = await place.submit(content=source("seconds=60"))
    heartbeat_s = 60.0 if notified else 0.01
    runner = fake.create()
    async with dispatching(store, place.clock, [runner], heartbeat_s=heartbeat_s):
        await until_state(place, submission, JobState.RUNNING)
        await asyncio.sleep(0.02)
        await cancel(place.store, Viewer(place.ada), submission.id)
        await until_state(place, submission, JobState.CANCELLED)
        await until_state(place, await place.submit(), JobState.SUCCEEDED)
    assert runner.started == 2
    _, cancelled = sorted(each.used_s for each in await place.store.costs.counted(EVER))
    assert 0 < cancelled < 60


async def test_work_whose_lease_was_lost_is_stopped_and_its_result_dropped(place: Place) -> None:
    submission = await place.submit(content=source("seconds=60"))
    async with dispatching(place.store, place.clock, [fake.create()], heartbeat_s=0.05):
        await until_state(place, submission, JobState.RUNNING)
        await place.store.jobs.limit("CPU", 0)
        place.clock.advance(31)
        assert await place.store.jobs.requeue_expired() == 1
        await place.store.jobs.limit("CPU", 1)
        other = await place.submit(await place.person("bob"), mode=Mode.TEST)
        await until_state(place, other, JobState.SUCCEEDED)
    assert await place.store.results.evaluations(submission.id) == ()


async def abandoned(
    place: Place, runner: Runner, directive: str, **changes: object
) -> tuple[Submission, CallId]:
    """A job whose worker started a call and vanished; `changes` are those of the call's request."""
    submission = await place.submit(content=source(directive))
    recording = RecordingRunner()
    async with dispatching(place.store, place.clock, [recording], drain_s=0.0):
        await until_state(place, submission, JobState.RUNNING)
        await until_started(recording)
    place.clock.advance(20)
    call = await runner.start(recording.requests[0].model_copy(update=changes))
    claim = Claim("dead", {"CPU": 1}, timedelta(seconds=30))
    (job,) = await place.store.jobs.claim(claim)
    assert await place.store.jobs.attach(job.id, job.fence, f"{runner.name}/{call}")
    place.clock.advance(31)
    assert await place.store.jobs.requeue_expired() == 1
    place.clock.advance(20)
    return submission, call


async def until_started(runner: RecordingRunner) -> None:
    async def started() -> bool:
        return bool(runner.requests)

    await until(started)


async def test_a_call_that_still_runs_is_joined_and_not_run_twice(place: Place) -> None:
    runner = fake.create()
    submission, _ = await abandoned(place, runner, "seconds=0.1 time_us=9")
    async with dispatching(place.store, place.clock, [runner]):
        await until_state(place, submission, JobState.SUCCEEDED)
    assert runner.started == 1


async def test_a_call_that_is_gone_is_started_anew(place: Place) -> None:
    runner = fake.create()
    submission, call = await abandoned(place, runner, "seconds=0.1")
    await runner.cancel(call)
    async with dispatching(place.store, place.clock, [runner]):
        await until_state(place, submission, JobState.SUCCEEDED)
    assert runner.started == 2


async def test_a_joined_call_that_answers_another_request_is_started_anew(place: Place) -> None:
    runner = fake.create()
    submission, _ = await abandoned(place, runner, "seconds=0.1", request_id="another")
    async with dispatching(place.store, place.clock, [runner]):
        await until_state(place, submission, JobState.SUCCEEDED)
    assert runner.started == 2
    (stored,) = await place.store.results.evaluations(submission.id)
    assert stored.evaluation.request_id != "another"


async def test_a_call_of_a_runner_that_is_not_ours_is_started_anew(place: Place) -> None:
    runner = fake.create(name="elsewhere")
    submission, _ = await abandoned(place, runner, "seconds=0.01")
    ours = fake.create(name="ours")
    async with dispatching(place.store, place.clock, [ours]):
        await until_state(place, submission, JobState.SUCCEEDED)
    await runner.aclose()
    assert ours.started == 1


@pytest.mark.parametrize("operation", ["accept", "attach", "claim", "heartbeat", "add_progress"])
async def test_a_database_that_is_away_for_a_while_loses_nothing(
    place: Place, operation: str
) -> None:
    failures = {operation: 3}
    store = failing(place.store, failures)
    submission = await place.submit(content=source("seconds=0.1"))
    runner = fake.create()
    async with dispatching(store, place.clock, [runner]):
        await until_state(place, submission, JobState.SUCCEEDED)
    assert failures[operation] == 0
    assert runner.started == 1


class BuggyRunner(fake.FakeRunner):
    """A runner with a bug that a word in the source brings out."""

    def __init__(self) -> None:
        super().__init__("buggy", make_capabilities())
        self.buggy: set[CallId] = set()

    @override
    async def start(self, request: EvaluationRequest) -> CallId:
        call = await super().start(request)
        if "bug" in request.source:
            self.buggy.add(call)
        return call

    @override
    async def wait(self, call: CallId, progress: ProgressSink) -> Evaluation:
        if call in self.buggy:
            raise ZeroDivisionError("very secret detail")
        return await super().wait(call, progress)


async def test_a_bug_in_one_job_stops_no_other_and_leaves_an_incident_number(place: Place) -> None:
    bad = await place.submit(content=b"# bug\n")
    good = await place.submit()
    async with dispatching(place.store, place.clock, [BuggyRunner()]):
        await until_state(place, good, JobState.SUCCEEDED)
        await until_attempt(place, bad, 1)
    (job,) = await place.jobs(bad)
    assert job.error is not None
    assert job.error.startswith("internal error, incident ")
    assert "secret" not in job.error


class MuteRunner(fake.FakeRunner):
    """A runner that answers another request than the one asked, or never starts."""

    def __init__(self, *, starts: bool) -> None:
        super().__init__("mute", make_capabilities())
        self._starts = starts

    @override
    async def start(self, request: EvaluationRequest) -> CallId:
        if not self._starts:
            await asyncio.sleep(60)
        return await super().start(request.model_copy(update={"request_id": "another"}))


@pytest.mark.parametrize(
    ("runner", "part"),
    [
        (MuteRunner(starts=False), "did not start the call"),
        (MuteRunner(starts=True), "asked for request_id"),
    ],
)
async def test_a_runner_that_misbehaves_costs_an_attempt(
    place: Place, runner: Runner, part: str
) -> None:
    submission = await place.submit()
    async with dispatching(place.store, place.clock, [runner], call_s=0.05):
        await until_attempt(place, submission, 1)
    (job,) = await place.jobs(submission)
    assert job.error is not None
    assert part in job.error


async def test_a_runner_that_never_answers_is_given_up(place: Place) -> None:
    submission = await place.submit(content=source("seconds=170"))
    async with dispatching(place.store, place.clock, [fake.create()], grace_s=-359.9):
        await until_attempt(place, submission, 1)
    (job,) = await place.jobs(submission)
    assert job.error is not None
    assert "did not answer" in job.error


async def test_a_drain_finishes_the_short_gives_back_the_waiting_and_releases_the_long(
    place: Place,
) -> None:
    short = await place.submit(content=source("seconds=0.2"))
    long = await place.submit(content=source("seconds=60"))
    runner = fake.create(slots={"CPU": 2})
    async with dispatching(place.store, place.clock, [runner], drain_s=0.5) as running:
        await until_state(place, long, JobState.RUNNING)
        await asyncio.sleep(0.05)
        late = await place.submit()
        await running.end()
    assert await state(place, short) is JobState.SUCCEEDED
    (stopped,) = await place.jobs(long)
    assert (stopped.state, stopped.error) == (JobState.QUEUED, "the worker was stopped")
    assert stopped.max_attempts == 4
    (waiting,) = await place.jobs(late)
    assert (waiting.state, waiting.attempt) == (JobState.QUEUED, 0)


async def test_a_cancelled_dispatcher_gives_its_jobs_back_at_once(place: Place) -> None:
    long = await place.submit(content=source("seconds=60"))
    runner = fake.create()
    config = DispatchConfig(poll_s=0.01)
    dispatcher = Dispatcher(StoreQueue(place.store, config), [runner], place.clock, config)
    task = asyncio.create_task(dispatcher.run(asyncio.Event()))
    await until_state(place, long, JobState.RUNNING)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)
    assert await state(place, long) is JobState.QUEUED
    await runner.aclose()


async def test_a_claimed_job_without_a_slot_is_given_back_uncounted(place: Place) -> None:
    rich = fake.create(name="rich", capabilities=make_capabilities(gpus={"CPU": 1}))
    poor = fake.create(name="poor", capabilities=make_capabilities(gpus={"CPU": 1}, languages=()))
    submissions = [await place.submit(content=source("seconds=60")) for _ in range(2)]
    async with dispatching(place.store, place.clock, [rich, poor]) as running:
        for submission in submissions:
            await until_state(place, submission, JobState.RUNNING)
        await asyncio.sleep(0.05)
        await running.end()
    attempts = sorted([(await place.jobs(each))[0].attempt for each in submissions])
    assert attempts == [0, 1]
    assert rich.started == 1
