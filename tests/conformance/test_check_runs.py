"""What every store must do with the runs of a check: jobs like others, but of no submission."""

from datetime import timedelta

from bot.domain.ids import NO_SUBMISSION, JobId, PublicationId
from bot.domain.job import CHECK_PRIORITY, Claim, Job, JobState, QueuedRun
from bot.domain.publication import NewPublication
from runners.contract.evaluation import EvaluationRequest, Progress
from runners.contract.task import Mode
from runners.contract.verdict import Stage
from tests.doubles.clock import ManualClock
from tests.doubles.factories import make_evaluation, make_task
from tests.doubles.stored import Scene

LEASE = timedelta(seconds=30)
OWNER = "engine"
TASK = "digest-1"


async def publication(scene: Scene) -> PublicationId:
    new = NewPublication("web", scene.ada.id, b"PK", "{}")
    number = await scene.store.publications.add(new)
    await scene.store.publications.claim("web", OWNER, LEASE)
    return number


def asked(source: str = "right", gpu: str = "CPU") -> EvaluationRequest:
    return EvaluationRequest(
        request_id="check-1", task=make_task(), source=source, mode=Mode.TEST, gpu=gpu
    )


async def added(scene: Scene, release: PublicationId, key: str = "k") -> JobId:
    await scene.store.check_runs.store_task(release, TASK, make_task().model_dump_json())
    job = await scene.store.check_runs.add(release, key, asked(key), TASK)
    assert job is not None
    return job


async def claimed(scene: Scene) -> Job:
    (job,) = await scene.store.jobs.claim(Claim("w", {"CPU": 1}, LEASE))
    return job


async def test_a_run_is_a_job_of_no_submission_until_it_has_its_evaluation(scene: Scene) -> None:
    number = await added(scene, await publication(scene))
    runs = scene.store.check_runs
    assert await runs.get(number) == QueuedRun(number, "CPU", JobState.QUEUED)
    job = await claimed(scene)
    assert (job.id, job.submission, job.person) == (number, NO_SUBMISSION, scene.ada.id)
    assert (job.mode, job.priority) == (Mode.TEST, CHECK_PRIORITY)
    assert job.check_run is not None
    assert job.leased.check_run == job.check_run
    assert await runs.request(job.check_run) == asked("k")
    progress = Progress(stage=Stage.TEST, done=1, total=3)
    assert await runs.save_progress(number, job.fence, progress)
    assert not await runs.save_progress(number, job.fence + 1, progress)
    assert await runs.get(number) == QueuedRun(number, "CPU", JobState.RUNNING, progress=progress)
    evaluation = make_evaluation()
    assert not await runs.accept(number, job.fence + 1, evaluation)
    assert await runs.accept(number, job.fence, evaluation)
    assert not await runs.accept(number, job.fence, evaluation)
    ended = QueuedRun(number, "CPU", JobState.SUCCEEDED, progress=progress, evaluation=evaluation)
    assert await runs.get(number) == ended
    assert await scene.store.jobs.unfinished_of(scene.ada.id) == ()


async def test_the_same_key_is_queued_once_and_of_each_publication(scene: Scene) -> None:
    release, other = await publication(scene), await publication(scene)
    first = await added(scene, release)
    assert await added(scene, release) == first
    assert len({first, await added(scene, release, "l"), await added(scene, other)}) == 3
    assert (await scene.store.jobs.backlog())["CPU"] == {"queued": 3}


async def test_what_a_publication_left_goes_when_it_ends(scene: Scene) -> None:
    kept, deleted = await publication(scene), await publication(scene)
    running = await added(scene, kept)
    job = await claimed(scene)
    waiting = await added(scene, deleted)
    assert await scene.store.publications.end(kept, OWNER)
    assert await scene.store.publications.finish(deleted, OWNER)
    for number in (running, waiting):
        assert await scene.store.check_runs.get(number) is None
        assert await scene.store.jobs.get(number) is None
    assert job.check_run is not None
    assert await scene.store.check_runs.request(job.check_run) is None
    assert await scene.store.jobs.heartbeat("w", [(job.id, job.fence)], LEASE) == ()
    assert not await scene.store.check_runs.accept(running, job.fence, make_evaluation())
    assert await scene.store.check_runs.add(kept, "k", asked(), TASK) is None
    assert await scene.store.check_runs.add(deleted, "k", asked(), TASK) is None


async def test_a_run_whose_worker_vanished_is_run_again(scene: Scene, clock: ManualClock) -> None:
    number = await added(scene, await publication(scene))
    await claimed(scene)
    clock.advance(31)
    assert await scene.store.jobs.requeue_expired() == 1
    clock.advance(61)
    again = await claimed(scene)
    assert (again.id, again.attempt, again.fence) == (number, 2, 2)
    assert await scene.store.jobs.release(number, again.fence, "broken", final=True)
    assert await scene.store.check_runs.get(number) == QueuedRun(
        number, "CPU", JobState.FAILED, "broken"
    )


async def test_the_runs_of_a_check_take_turns_with_the_ranked_jobs_of_others(scene: Scene) -> None:
    release = await publication(scene)
    runs = [await added(scene, release, key) for key in "ab"]
    bob = await scene.store.people.ensure("local:bob", "Bob")
    ranked = await scene.job((await scene.submit(bob)).id)
    test = await scene.job((await scene.submit(bob, mode=Mode.TEST)).id)
    line = [(await claimed(scene)).id for _ in range(4)]
    assert line == [test.id, runs[0], ranked.id, runs[1]]


async def test_what_a_killed_command_left_is_deleted_a_month_later(
    scene: Scene, clock: ManualClock
) -> None:
    new = NewPublication("command-line-1", scene.ada.id, b"", "{}")
    release = await scene.store.publications.add(new)
    await scene.store.publications.claim("command-line-1", "command-line-1", LEASE)
    number = await added(scene, release)
    assert await scene.store.publications.delete_ended(clock.now()) == 0
    clock.advance(32)
    assert await scene.store.publications.delete_ended(clock.now()) == 1
    assert await scene.store.check_runs.get(number) is None


async def test_a_cancelled_check_neither_queues_nor_tells_anything(scene: Scene) -> None:
    release = await publication(scene)
    number = await added(scene, release)
    assert await scene.store.publications.cancel(scene.ada.id, "by Ada") == (release,)
    assert await scene.store.check_runs.get(number) is None
    for key in ("k", "another"):
        assert await scene.store.check_runs.add(release, key, asked(), TASK) is None
