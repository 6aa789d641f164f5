import asyncio
from datetime import timedelta
from itertools import pairwise

import pytest

from bot.domain.board import Viewer
from bot.domain.errors import StoreError, UserError
from bot.domain.ids import SubmissionId
from bot.domain.job import Notice, Topic
from bot.domain.publication import PublishRequest
from bot.domain.records import StoredEvaluation
from bot.domain.status import QueuePosition, SubmissionStatus
from bot.domain.submission import SubmissionState
from bot.services.publishing.publish import publish
from bot.services.status import read_submission, submission_status, waiting_time, watch
from bot.store.postgres import events
from bot.store.postgres.events import Subscriptions
from runners.contract.evaluation import CPU
from runners.contract.task import Mode
from runners.contract.verdict import Stage, Verdict
from tests.doubles.dispatching import failing
from tests.doubles.factories import make_task
from tests.doubles.place import Place


async def test_a_queued_submission_has_a_place_but_no_estimate_while_nothing_is_known(
    place: Place,
) -> None:
    await place.submit(await place.person("bob"))
    submission = await place.submit()
    now = await submission_status(place.store, submission.id)
    (job,) = now.jobs
    assert now.state is SubmissionState.QUEUED
    assert job.place is not None
    assert (job.place.position, job.place.estimate_s) == (2, None)


async def test_everyone_who_reads_a_report_gets_its_cost(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(place.store.costs), "prices", {CPU: 0.5})
    submission = await place.submit()
    await place.judged(submission, wall_s=8.0)
    for person in (place.ada, await place.person("bob")):
        found = await read_submission(place.store, place.clock, Viewer(person), submission.id)
        assert [each.cost for each in found.jobs] == [4.0]


async def test_the_estimate_comes_from_recent_runs_and_the_slots_in_use(place: Place) -> None:
    for _ in range(3):
        await place.judged(await place.submit(), wall_s=8.0)
    running = await place.submit()
    await place.claim()
    waiting = await place.submit()
    (job,) = (await submission_status(place.store, waiting.id)).jobs
    assert job.place is not None
    # The one that runs has half of its 8 s to go, and then this one takes 8 s.
    assert (job.place.position, job.place.estimate_s) == (1, 12.0)
    assert (await submission_status(place.store, running.id)).jobs[0].place is None


def test_waiting_grows_with_the_place_and_shrinks_with_the_slots() -> None:
    assert waiting_time([1, 100, 3], [4, 6, 5], position=4, slots=2) == 3.5 * 5 / 2 + 3
    assert waiting_time([], [4, 6, 5], position=1, slots=1) == 0.5 * 5 + 5
    assert waiting_time([], [], position=4, slots=2) is None
    assert waiting_time([1], [1, 1, 1], position=4, slots=0) is None


def test_nothing_is_estimated_from_the_first_runs_which_are_the_shortest() -> None:
    assert waiting_time([0.1], [0.1], position=7, slots=1) is None
    assert waiting_time([0.1], [0.1, 0.2], position=1, slots=1) is None


def test_the_longest_of_few_known_durations_counts() -> None:
    assert waiting_time([2, 8], [2, 8, 5], position=1, slots=1) == 0.5 * 5 + 8
    assert waiting_time([3], [2, 8, 2], position=1, slots=1) == 0.5 * 4 + 3


async def test_a_running_job_whose_worker_is_silent_says_so(place: Place) -> None:
    lease = timedelta(seconds=30)
    submission = await place.submit()
    await place.store.workers.announce("box:1", (CPU,), lease)
    job = await place.claim("box:1")
    await place.store.jobs.add_progress(job.id, job.fence, Stage.TIMING, {"done": 2, "total": 5})
    (now,) = (await submission_status(place.store, submission.id)).jobs
    assert (now.stage, now.note) == ("timing", "")
    place.clock.advance(16)
    (now,) = (await submission_status(place.store, submission.id)).jobs
    assert now.stage == "timing"
    assert "does not respond" in now.note
    await place.store.workers.announce("box:1", (CPU,), lease)
    (now,) = (await submission_status(place.store, submission.id)).jobs
    assert now.note == ""
    await place.store.workers.leave("box:1")
    (now,) = (await submission_status(place.store, submission.id)).jobs
    assert "does not respond" in now.note


async def test_the_estimate_of_a_new_board_comes_from_other_boards_of_the_gpu_type(
    place: Place,
) -> None:
    for _ in range(3):
        await place.judged(await place.submit(), wall_s=8.0)
    other = make_task(name="other")
    await publish(place.store, place.clock, PublishRequest(place.ada), other)
    await place.submit()
    await place.claim()
    waiting = await place.submit(board="other")
    (job,) = (await submission_status(place.store, waiting.id)).jobs
    assert job.place == QueuePosition(1, 12.0, running=1)


async def test_place_and_estimate_shrink_as_the_queue_moves(place: Place) -> None:
    for _ in range(3):
        await place.judged(await place.submit(), wall_s=8.0)
    running = await place.submit(await place.person("bob"))
    await place.claim()
    ahead = await place.submit(await place.person("bob"))
    last = await place.submit(await place.person("eve"), mode=Mode.TEST)
    seen = []
    for _ in range(2):
        (job,) = (await submission_status(place.store, ahead.id)).jobs
        assert job.place is not None
        seen.append((job.place.position, job.place.estimate_s))
        await place.store.jobs.request_cancel(last.id)
    assert seen == [(2, 20.0), (1, 12.0)]
    assert not (await submission_status(place.store, running.id)).is_final


async def test_a_running_job_shows_its_latest_stage(place: Place) -> None:
    submission = await place.submit()
    await place.store.workers.announce("test", (CPU,), timedelta(seconds=30))
    job = await place.claim()
    assert (await submission_status(place.store, submission.id)).jobs[0].stage is None
    await place.store.jobs.add_progress(job.id, job.fence, Stage.BUILD, {})
    body: dict[str, str | int] = {"done": 1, "total": 2, "note": "hot"}
    await place.store.jobs.add_progress(job.id, job.fence, Stage.TEST, body)
    (shown,) = (await submission_status(place.store, submission.id)).jobs
    assert (shown.stage, shown.done, shown.total, shown.note) == ("test", 1, 2, "hot")


async def test_an_ended_job_shows_what_may_be_seen_of_its_evaluation(place: Place) -> None:
    submission = await place.submit()
    await place.judged(
        submission, verdict=Verdict.CRASHED, stage=Stage.TIMING, message="x", log="seed"
    )
    now = await submission_status(place.store, submission.id)
    assert now.is_final
    assert now.state is SubmissionState.FINISHED
    evaluation = now.jobs[0].evaluation
    assert evaluation is not None
    assert (evaluation.verdict, evaluation.log) == (Verdict.CRASHED, "")


async def test_a_job_that_ends_while_it_is_read_has_not_ended_yet(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    submission = await place.submit()
    read = place.store.results.evaluations

    async def after_its_end(of: SubmissionId) -> tuple[StoredEvaluation, ...]:
        monkeypatch.setattr(place.store.results, "evaluations", read)
        await place.judged(submission)
        return await read(of)

    monkeypatch.setattr(place.store.results, "evaluations", after_its_end)
    now = await submission_status(place.store, submission.id)
    assert (now.is_final, now.jobs[0].evaluation) == (False, None)
    now = await submission_status(place.store, submission.id)
    assert now.is_final
    assert now.jobs[0].evaluation is not None


async def test_an_unknown_submission_is_refused(place: Place) -> None:
    with pytest.raises(UserError, match="no submission 99"):
        await submission_status(place.store, SubmissionId(99))


async def collect(place: Place, submission: SubmissionId) -> list[SubmissionStatus]:
    return [each async for each in watch(place.store, submission)]


async def test_watching_tells_every_change_once_and_ends_with_the_last(place: Place) -> None:
    submission = await place.submit()
    watching = asyncio.create_task(collect(place, submission.id))
    await asyncio.sleep(0.02)
    job = await place.claim()
    await asyncio.sleep(0.02)
    await place.store.jobs.add_progress(job.id, job.fence, Stage.TEST, {"done": 1})
    await asyncio.sleep(0.02)
    await place.store.jobs.release(job.id, job.fence, "lost", final=True)
    seen = await asyncio.wait_for(watching, 5)
    assert [each.state for each in seen][-1] is SubmissionState.FAILED
    assert "test" in [each.jobs[0].stage for each in seen]
    assert all(one != other for one, other in pairwise(seen))


async def test_watching_in_a_busy_queue_survives_the_loss_of_the_last_notice(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "TICK_S", 0.05)
    submission = await place.submit()
    publish = Subscriptions.publish

    def lossy(hub: Subscriptions, notice: Notice) -> None:
        if notice.payload != str(submission.id):
            publish(hub, notice)

    async def chatter() -> None:
        while True:
            publish(place.store.events, Notice(Topic.PROGRESS, "0"))
            await asyncio.sleep(0.01)

    watching = asyncio.create_task(collect(place, submission.id))
    chatting = asyncio.create_task(chatter())
    await asyncio.sleep(0.02)
    monkeypatch.setattr(Subscriptions, "publish", lossy)
    await place.judged(submission)
    await asyncio.wait({watching}, timeout=2)
    chatting.cancel()
    assert watching.done()


async def test_watching_what_has_ended_gives_one_status(place: Place) -> None:
    submission = await place.submit()
    await place.judged(submission)
    assert len(await asyncio.wait_for(collect(place, submission.id), 5)) == 1


async def test_watching_outlives_a_database_that_is_away_for_a_moment(place: Place) -> None:
    submission = await place.submit()
    await place.judged(submission)
    store = failing(place.store, {"of": 1})
    seen = [each async for each in watch(store, submission.id, patience_s=5)]
    assert [each.state for each in seen] == [SubmissionState.FINISHED]


async def test_watching_gives_up_on_a_database_that_stays_away(place: Place) -> None:
    submission = await place.submit()
    store = failing(place.store, {"of": 1_000})
    with pytest.raises(StoreError):
        _ = [each async for each in watch(store, submission.id, patience_s=0.05)]
