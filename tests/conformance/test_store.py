"""What every store must do, whatever it is made of."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from bot.domain.board import NOBODY, NewBoard
from bot.domain.errors import StoreError, UserError
from bot.domain.ids import BoardId, EventId, JobId, PersonId, SubmissionId
from bot.domain.job import MOST_ATTEMPTS, Claim, Heartbeat, JobState, Notice, Topic, Worker
from bot.domain.records import JobResult, StoredFile
from bot.domain.scoring import ScoreValue
from bot.domain.submission import Exclusion, ExclusionKind, NewSubmission, SubmissionState
from bot.ports import Store
from runners.contract.evaluation import ProfileOptions
from runners.contract.files import EvaluationFile
from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from tests.doubles.clock import ManualClock
from tests.doubles.factories import make_capabilities
from tests.doubles.stored import LEASE, Scene, make_evaluation, make_task

SCORE = ScoreValue(1500.0, 3.5)


async def test_a_person_is_made_once_and_takes_over_a_changed_name(store: Store) -> None:
    first = await store.people.ensure("local:ada", "Ada")
    again = await store.people.ensure("local:ada", "Ada L.")
    assert again.id == first.id
    assert await store.people.get(first.id) == again
    assert await store.people.find("local:ada") == again
    assert again.name == "Ada L."
    assert await store.people.find("local:bob") is None


async def test_a_taken_board_name_is_refused(scene: Scene) -> None:
    new = NewBoard("vectoradd", ("CPU",), None, scene.ada.id)
    with pytest.raises(UserError, match="vectoradd") as refusal:
        await scene.store.boards.publish(new, make_task(), "other")
    assert refusal.value.code == "board-exists"


async def test_boards_keep_their_deadline_and_gpus_and_are_listed_by_name(scene: Scene) -> None:
    boards = scene.store.boards
    deadline = datetime(2027, 1, 1, 18, tzinfo=UTC)
    other = await boards.publish(
        NewBoard("Matmul", ("H100!", "CPU"), deadline, scene.ada.id), make_task("matmul"), "d"
    )
    assert await boards.find("Matmul") == other
    assert (other.gpus, other.deadline) == (("H100!", "CPU"), deadline)
    changed = await boards.configure(other.id, ("T4",), None)
    assert (changed.gpus, changed.deadline) == (("T4",), None)
    assert [board.name for board in await boards.all()] == ["Matmul", "vectoradd"]
    assert await boards.get(BoardId(999)) is None
    with pytest.raises(StoreError):
        await boards.configure(BoardId(999), (), None)


async def test_a_new_digest_makes_the_next_version_and_a_known_one_does_not(scene: Scene) -> None:
    boards, board = scene.store.boards, scene.board
    task = make_task(description="adds \x00 two", files={"a.py": "x = '\x00\u00e9'"})
    second = await boards.add_version(board.id, task, "digest-2")
    assert second.number == 2
    assert await boards.add_version(board.id, task, "digest-2") == second
    assert await boards.version(second.id) == second
    assert second.definition == task
    stored = await boards.get(board.id)
    assert stored is not None
    assert stored.task_version == second.id
    first = await boards.add_version(board.id, make_task(), "digest-1")
    assert first.id == board.task_version
    assert [version.number for version in await boards.versions(board.id)] == [1, 2]


async def test_a_submission_keeps_what_its_door_had_to_say(scene: Scene) -> None:
    new = NewSubmission(
        scene.ada.id, scene.board.id, scene.board.task_version, "k.py", "x = (", Mode.TEST,
        ("CPU",), 0, warning="line 1\0",
    )  # fmt: skip
    stored = await scene.store.submissions.add(new)
    assert stored.warning.startswith("line 1")
    assert "\0" not in stored.warning
    assert await scene.store.submissions.get(stored.id) == stored
    assert (await scene.submit()).warning == ""


async def test_a_submission_gets_one_queued_job_per_gpu(scene: Scene, clock: ManualClock) -> None:
    submission = await scene.submit(gpus=("T4", "CPU"))
    assert submission.state is SubmissionState.QUEUED
    assert submission.gpus == ("T4", "CPU")
    assert submission.created_at == clock.now()
    assert await scene.store.submissions.get(submission.id) == submission
    jobs = await scene.store.jobs.of(submission.id)
    assert [(job.gpu, job.state, job.attempt) for job in jobs] == [
        ("CPU", JobState.QUEUED, 0),
        ("T4", JobState.QUEUED, 0),
    ]
    assert await scene.store.jobs.backlog() == {"CPU": {"queued": 1}, "T4": {"queued": 1}}


@pytest.mark.parametrize("source", ["x = 1\n", "nul \x00 inside", "lone \udc80", "é" * 50_000])
async def test_a_source_comes_back_as_it_was_submitted(scene: Scene, source: str) -> None:
    first = await scene.submit(source=source)
    second = await scene.submit(source=source)
    assert first.source_hash == second.source_hash
    assert await scene.store.submissions.source(second.id) == source


async def test_history_is_newest_first_and_pages(scene: Scene) -> None:
    made = [await scene.submit() for _ in range(3)]
    bob = await scene.store.people.ensure("local:bob", "Bob")
    await scene.submit(bob)
    history = scene.store.submissions.history
    assert await history(scene.ada.id) == tuple(reversed(made))
    assert await history(scene.ada.id, limit=1) == (made[2],)
    assert await history(scene.ada.id, before=made[1].id) == (made[0],)
    assert await history(scene.ada.id, board=BoardId(999)) == ()


async def test_several_submissions_are_read_at_once(scene: Scene) -> None:
    asked = ProfileOptions(benchmark=0, kernel_name="regex:add.*", launch_count=3)
    made = [await scene.submit(profile=each) for each in (None, asked, ProfileOptions())]
    assert [each.profile for each in made] == [None, asked, ProfileOptions()]
    wanted = [made[2].id, SubmissionId(999), made[1].id, made[1].id]
    assert await scene.store.submissions.several(wanted) == (made[1], made[2])
    assert await scene.store.submissions.several([]) == ()
    assert await scene.store.submissions.newest(2) == (made[2], made[1])


async def test_unknown_ids_are_none_or_store_errors(store: Store) -> None:
    assert await store.submissions.get(SubmissionId(9)) is None
    assert await store.people.get(PersonId(9)) is None
    assert await store.jobs.of(SubmissionId(9)) == ()
    with pytest.raises(StoreError):
        await store.submissions.source(SubmissionId(9))
    with pytest.raises(StoreError):
        await store.jobs.ahead(JobId(9))


async def test_a_claim_leases_the_job_and_raises_its_fence(
    scene: Scene, clock: ManualClock
) -> None:
    submission = await scene.submit()
    clock.advance(5)
    job = await scene.claim_one()
    assert (job.state, job.attempt, job.fence, job.worker) == (JobState.RUNNING, 1, 1, "w1")
    assert job.started_at == clock.now()
    assert await scene.claim() == ()
    assert await scene.job(submission.id) == job


async def test_a_test_is_claimed_before_an_older_ranked_run(scene: Scene) -> None:
    await scene.submit(mode=Mode.RANKED)
    await scene.submit(mode=Mode.BENCHMARK)
    await scene.submit(mode=Mode.TEST)
    assert [job.mode for job in await scene.claim(3)] == [Mode.TEST, Mode.BENCHMARK, Mode.RANKED]


async def test_everyones_kth_job_comes_before_anyones_next(scene: Scene) -> None:
    bob = await scene.store.people.ensure("local:bob", "Bob")
    for person in (scene.ada, scene.ada, scene.ada, bob, bob):
        await scene.submit(person)
    ada, bobs = scene.ada.id, bob.id
    assert [job.person for job in await scene.claim(5)] == [ada, bobs, ada, bobs, ada]


async def test_a_newcomer_waits_for_one_job_of_each_other_person_at_most(scene: Scene) -> None:
    for _ in range(9):
        await scene.submit()
    await scene.claim(4)
    bob = await scene.store.people.ensure("local:bob", "Bob")
    for _ in range(2):
        await scene.submit(bob)
    ada, bobs = scene.ada.id, bob.id
    assert [job.person for job in await scene.claim(5)] == [ada, bobs, ada, bobs, ada]


async def test_people_who_submit_again_and_again_do_not_starve_a_backlog(scene: Scene) -> None:
    backlog = [await scene.submit() for _ in range(4)]
    others = [await scene.store.people.ensure(f"local:{n}", f"{n}") for n in range(3)]
    order = []
    for other in others * 4:
        await scene.submit(other)
        order.append((await scene.claim_one()).submission)
    assert [one.id for one in backlog if one.id in order] == [one.id for one in backlog]


async def test_a_cancelled_job_leaves_no_debt(scene: Scene) -> None:
    bob = await scene.store.people.ensure("local:bob", "Bob")
    for cancelled in [await scene.submit(bob) for _ in range(5)]:
        await scene.store.jobs.request_cancel(cancelled.id)
    await scene.submit()
    await scene.submit()
    await scene.submit(bob)
    ada, bobs = scene.ada.id, bob.id
    assert [job.person for job in await scene.claim(3)] == [ada, bobs, ada]


async def test_a_requeued_job_keeps_its_turn(scene: Scene, clock: ManualClock) -> None:
    first = await scene.submit()
    for _ in range(3):
        await scene.submit()
    held = await scene.claim_one()
    await scene.claim(1)
    await scene.store.jobs.release(held.id, held.fence, "lost", final=False)
    clock.advance(2)
    again = await scene.claim_one()
    assert (again.submission, again.turn) == (first.id, held.turn)


async def test_a_requeued_job_does_not_turn_time_back(scene: Scene, clock: ManualClock) -> None:
    for _ in range(4):
        await scene.submit()
    held = await scene.claim_one()
    await scene.claim(3)
    await scene.store.jobs.release(held.id, held.fence, "lost", final=False)
    clock.advance(2)
    assert (await scene.claim_one()).turn == 1
    bob = await scene.store.people.ensure("local:bob", "Bob")
    newcomer = await scene.submit(bob)
    assert (await scene.job(newcomer.id)).turn == 5


async def test_turns_of_a_priority_and_of_a_gpu_type_are_their_own(scene: Scene) -> None:
    for _ in range(3):
        await scene.submit()
    test = await scene.submit(mode=Mode.TEST)
    elsewhere = await scene.submit(gpus=("T4",))
    assert [(await scene.job(one.id)).turn for one in (test, elsewhere)] == [1, 1]


async def test_jobs_that_wait_out_a_backoff_hold_up_nobody(scene: Scene) -> None:
    for _ in range(4):
        await scene.submit()
    for job in await scene.claim(3):
        await scene.store.jobs.release(job.id, job.fence, "lost", final=False)
    assert (await scene.claim_one()).turn == 4


async def test_a_pools_limit_holds_over_all_workers(scene: Scene) -> None:
    for _ in range(5):
        await scene.submit()
    await scene.store.jobs.limit("CPU", 3)
    claims = await asyncio.gather(*(scene.claim(2, worker=f"w{n}") for n in range(4)))
    claimed = [job for claim in claims for job in claim]
    assert len(claimed) == 3
    assert len({job.id for job in claimed}) == 3
    await scene.store.jobs.limit("CPU", None)
    assert len(await scene.claim(9)) == 2


async def test_a_paused_pool_gives_nothing(scene: Scene) -> None:
    await scene.submit()
    await scene.store.jobs.limit("CPU", None, paused=True)
    assert await scene.claim() == ()
    assert await scene.claim(gpu="unheard-of") == ()


async def test_a_stale_fence_is_refused_by_every_write(scene: Scene, clock: ManualClock) -> None:
    submission = await scene.submit()
    lost = await scene.claim_one()
    clock.advance(31)
    assert await scene.store.jobs.requeue_expired() == 1
    clock.advance(60)
    job = await scene.claim_one(worker="w2")
    assert job.fence == lost.fence + 1
    jobs, old = scene.store.jobs, (lost.id, lost.fence)
    assert not await jobs.attach(*old, "call")
    assert not await jobs.accept(*old, make_evaluation(), SCORE)
    assert not await jobs.release(*old, "late", final=True)
    assert not await jobs.return_to_queue(*old)
    assert not await jobs.end_cancelled(*old)
    assert not await jobs.add_progress(*old, "test", {})
    assert await jobs.heartbeat("w1", [old], LEASE) == ()
    assert await scene.job(submission.id) == job
    assert await scene.store.results.evaluations(submission.id) == ()


async def test_a_heartbeat_keeps_the_lease(scene: Scene, clock: ManualClock) -> None:
    await scene.submit()
    job = await scene.claim_one()
    clock.advance(20)
    beats = await scene.store.jobs.heartbeat("w1", [(job.id, job.fence), (JobId(99), 1)], LEASE)
    assert beats == (Heartbeat(job.id, cancel_requested=False),)
    clock.advance(20)
    assert await scene.store.jobs.requeue_expired() == 0
    assert await scene.store.jobs.heartbeat("w2", [(job.id, job.fence)], LEASE) == ()
    clock.advance(11)
    assert await scene.store.jobs.requeue_expired() == 1


async def test_a_reaped_job_keeps_its_call_and_waits_out_its_backoff(
    scene: Scene, clock: ManualClock
) -> None:
    submission = await scene.submit()
    job = await scene.claim_one()
    assert await scene.store.jobs.attach(job.id, job.fence, "call-1")
    clock.advance(31)
    await scene.store.jobs.requeue_expired()
    reaped = await scene.job(submission.id)
    assert (reaped.state, reaped.call, reaped.worker) == (JobState.QUEUED, "call-1", None)
    assert reaped.run_at == clock.now() + timedelta(seconds=2)
    assert reaped.error == "the worker vanished during attempt 1"
    clock.advance(1.9)
    assert await scene.claim() == ()
    clock.advance(0.1)
    assert (await scene.claim_one()).call == "call-1"


async def test_a_job_fails_after_its_last_attempt_with_growing_backoff(
    scene: Scene, clock: ManualClock
) -> None:
    submission = await scene.submit()
    for backoff_s in (2, 4):
        job = await scene.claim_one()
        await scene.store.jobs.attach(job.id, job.fence, "call")
        assert await scene.store.jobs.release(job.id, job.fence, "lost \x00", final=False)
        released = await scene.job(submission.id)
        assert released.run_at - clock.now() == timedelta(seconds=backoff_s)
        assert (released.call, released.error) == (None, "lost \u2400")
        clock.advance(backoff_s)
    job = await scene.claim_one()
    assert await scene.store.jobs.release(job.id, job.fence, "gone", final=False)
    ended = await scene.job(submission.id)
    assert (ended.state, ended.attempt, ended.error) == (JobState.FAILED, 3, "gone")
    assert ended.finished_at == clock.now()
    stored = await scene.store.submissions.get(submission.id)
    assert stored is not None
    assert stored.state is SubmissionState.FAILED


@pytest.mark.parametrize("told", [True, False])
async def test_a_lost_attempt_is_replaced_until_there_were_too_many(
    scene: Scene, clock: ManualClock, *, told: bool
) -> None:
    submission = await scene.submit()
    for lost in range(1, MOST_ATTEMPTS + 1):
        job = await scene.claim_one()
        assert (job.attempt, job.max_attempts) == (lost, min(lost + 2, MOST_ATTEMPTS))
        if told:
            assert await scene.store.jobs.mark_lost(job.id, job.fence, "runner gone \x00")
            assert not await scene.store.jobs.mark_lost(job.id, job.fence, "runner gone")
        clock.advance(100)
        assert await scene.store.jobs.requeue_expired() == (0 if told else 1)
        clock.advance(100)
    ended = await scene.job(submission.id)
    assert (ended.state, ended.attempt) == (JobState.FAILED, MOST_ATTEMPTS)
    assert not told or ended.error == "runner gone \u2400"


async def test_a_final_release_ends_the_job_at_once(scene: Scene) -> None:
    submission = await scene.submit()
    job = await scene.claim_one()
    assert await scene.store.jobs.release(job.id, job.fence, "no such GPU", final=True)
    assert (await scene.job(submission.id)).state is JobState.FAILED


async def test_a_job_given_back_is_claimable_at_once_without_a_lost_attempt(scene: Scene) -> None:
    submission = await scene.submit()
    job = await scene.claim_one()
    assert await scene.store.jobs.return_to_queue(job.id, job.fence)
    assert (await scene.job(submission.id)).attempt == 0
    again = await scene.claim_one()
    assert (again.attempt, again.fence) == (1, 2)


async def test_an_accepted_evaluation_is_kept_whole_and_ends_the_job(
    scene: Scene, clock: ManualClock
) -> None:
    submission = await scene.submit()
    job = await scene.claim_one()
    evaluation = make_evaluation(message="nul \x00 kept")
    assert await scene.store.jobs.accept(job.id, job.fence, evaluation, SCORE)
    assert not await scene.store.jobs.accept(job.id, job.fence, evaluation, SCORE)
    (stored,) = await scene.store.results.evaluations(submission.id)
    assert (stored.job, stored.gpu, stored.at) == (job.id, "CPU", clock.now())
    assert stored.evaluation == evaluation
    (score,) = await scene.store.results.scores(scene.board.task_version, "CPU")
    assert (score.value, score.person_name, score.submission) == (SCORE, "Ada", submission.id)
    assert score.submitted_at == submission.created_at
    assert await scene.store.results.scores(scene.board.task_version, "T4") == ()
    ended = await scene.job(submission.id)
    assert (ended.state, ended.finished_at) == (JobState.SUCCEEDED, clock.now())
    stored_submission = await scene.store.submissions.get(submission.id)
    assert stored_submission is not None
    assert stored_submission.state is SubmissionState.FINISHED


async def test_a_success_clears_the_error_of_an_earlier_attempt(
    scene: Scene, clock: ManualClock
) -> None:
    submission = await scene.submit()
    job = await scene.claim_one()
    await scene.store.jobs.release(job.id, job.fence, "lost", final=False)
    clock.advance(100)
    job = await scene.claim_one()
    await scene.store.jobs.accept(job.id, job.fence, make_evaluation(), SCORE)
    ended = await scene.job(submission.id)
    assert (ended.state, ended.error, ended.finished_at) == (JobState.SUCCEEDED, None, clock.now())


async def test_only_ranked_runs_that_did_not_pass_are_refusals(scene: Scene) -> None:
    made = []
    for mode, verdict in (
        (Mode.RANKED, Verdict.WRONG_ANSWER),
        (Mode.RANKED, Verdict.PASSED),
        (Mode.TEST, Verdict.CRASHED),
        (Mode.RANKED, Verdict.TIMED_OUT),
    ):
        made.append(await scene.submit(mode=mode))
        job = await scene.claim_one()
        evaluation = make_evaluation(verdict, "case 1 \x00", mode)
        assert await scene.store.jobs.accept(job.id, job.fence, evaluation, None)
    refusals = await scene.store.results.refusals(scene.board.task_version, "CPU")
    assert [(one.submission, one.verdict) for one in refusals] == [(made[3].id, "timed_out")]
    newest = refusals[0]
    assert (newest.message, newest.stage) == ("case 1 \u2400", "test")
    assert (newest.person, newest.person_name) == (scene.ada.id, "Ada")
    assert await scene.store.results.scores(scene.board.task_version, "CPU") == ()


async def test_nobody_s_many_refusals_push_out_another_s(scene: Scene) -> None:
    bob = await scene.store.people.ensure("local:bob", "Bob")
    made = [await scene.submit(person) for person in (bob, *[scene.ada] * 201)]
    for job in await scene.claim(len(made)):
        evaluation = make_evaluation(Verdict.CRASHED)
        assert await scene.store.jobs.accept(job.id, job.fence, evaluation, None)
    refusals = await scene.store.results.refusals(scene.board.task_version, "CPU")
    assert [one.submission for one in refusals] == [made[-1].id, made[0].id]


async def test_outcomes_tell_how_many_submissions_ended(scene: Scene) -> None:
    passed, failed, waiting = [await scene.submit() for _ in range(3)]
    for verdict, score in ((Verdict.PASSED, SCORE), (Verdict.CRASHED, None)):
        job = await scene.claim_one()
        assert await scene.store.jobs.accept(job.id, job.fence, make_evaluation(verdict), score)
    wanted = [waiting.id, failed.id, passed.id]
    assert await scene.store.results.outcomes(wanted) == (
        JobResult(passed.id, "CPU", Verdict.PASSED, SCORE),
        JobResult(failed.id, "CPU", Verdict.CRASHED, None),
    )
    assert await scene.store.results.outcomes([]) == ()
    off = Exclusion(passed.id, ExclusionKind.WITHDRAWN, "")
    await scene.store.moderation.exclude(off)
    (found,) = await scene.store.results.outcomes([passed.id])
    assert (found.score, found.exclusion) == (SCORE, ExclusionKind.WITHDRAWN)


async def test_a_worker_lives_until_it_leaves_or_its_lease_runs_out(
    store: Store, clock: ManualClock
) -> None:
    await store.workers.announce("b", None, LEASE)
    await store.workers.announce("a", ("H100", "CPU"), LEASE)
    assert await store.workers.alive() == (Worker("a", ("H100", "CPU")), Worker("b", None))
    clock.advance(20)
    await store.workers.announce("b", ("T4",), LEASE)
    clock.advance(11)
    assert await store.workers.alive() == (Worker("b", ("T4",)),)
    await store.workers.leave("b")
    assert await store.workers.alive() == ()


async def test_a_worker_is_shown_with_its_offers_its_last_sign_and_what_it_runs(
    scene: Scene, clock: ManualClock
) -> None:
    offer = make_capabilities(gpus={"CPU": 2})
    await scene.store.workers.announce("w1", ("CPU",), LEASE, {"local": offer})
    clock.advance(3)
    await scene.store.workers.announce("w1", ("CPU",), LEASE, {"local": offer})
    await scene.submit()
    job = await scene.claim_one()
    (worker,) = await scene.store.workers.alive()
    assert worker.offers == {"local": offer}
    assert (worker.seen_at, worker.running) == (clock.now(), 1)
    found = await scene.store.jobs.get(job.id)
    assert found is not None
    assert (found.worker, found.fence) == ("w1", job.fence)
    assert await scene.store.jobs.get(JobId(999)) is None


async def test_files_are_kept_apart_and_read_when_asked_for(scene: Scene) -> None:
    submission = await scene.submit(mode=Mode.PROFILE)
    job = await scene.claim_one()
    files = tuple(
        EvaluationFile.of(name, content)
        for name, content in (("case-2.ncu-rep", b"\x00two"), ("case-1.ncu-rep", b""))
    )
    evaluation = make_evaluation(mode=Mode.PROFILE).model_copy(update={"files": files})
    assert await scene.store.results.files(submission.id) == ()
    assert await scene.store.jobs.accept(job.id, job.fence, evaluation, None)
    assert not await scene.store.jobs.accept(job.id, job.fence, evaluation, None)
    (stored,) = await scene.store.results.evaluations(submission.id)
    assert stored.evaluation == evaluation.model_copy(update={"files": ()})
    found = await scene.store.results.files(submission.id)
    assert found == tuple(StoredFile("CPU", file) for file in reversed(files))
    other = await scene.submit()
    assert await scene.store.results.files(other.id) == ()


async def test_durations_are_of_the_newest_evaluations_of_one_version_and_gpu_type(
    scene: Scene, clock: ManualClock
) -> None:
    for wall_s, mode, verdict in (
        (1.0, Mode.RANKED, Verdict.PASSED),
        (2.0, Mode.TEST, Verdict.CRASHED),
        (3.0, Mode.RANKED, Verdict.PASSED),
    ):
        await scene.submit(mode=mode)
        job = await scene.claim_one()
        evaluation = make_evaluation(verdict, mode=mode).model_copy(update={"wall_s": wall_s})
        assert await scene.store.jobs.accept(job.id, job.fence, evaluation, None)
        clock.advance(1)
    durations, version = scene.store.results.durations, scene.board.task_version
    assert await durations(version, "CPU", 2) == (3.0, 2.0)
    assert await durations(version, "T4", 2) == ()
    newer = await scene.store.boards.add_version(scene.board.id, make_task(description="x"), "d2")
    assert await durations(newer.id, "CPU", 2) == ()
    assert await scene.store.results.gpu_durations("CPU", 2) == (3.0, 2.0)
    assert await scene.store.results.gpu_durations("T4", 2) == ()


async def test_a_cancel_ends_queued_jobs_and_asks_for_running_ones(scene: Scene) -> None:
    submission = await scene.submit(gpus=("CPU", "T4"))
    running = await scene.claim_one("CPU")
    assert await scene.store.jobs.request_cancel(submission.id) == 2
    assert await scene.store.jobs.request_cancel(submission.id) == 0
    cpu, t4 = await scene.store.jobs.of(submission.id)
    assert (cpu.state, cpu.cancel_requested) == (JobState.RUNNING, True)
    assert t4.state is JobState.CANCELLED
    beats = await scene.store.jobs.heartbeat("w1", [(running.id, running.fence)], LEASE)
    assert beats == (Heartbeat(running.id, cancel_requested=True),)
    assert await scene.store.jobs.end_cancelled(running.id, running.fence)
    stored = await scene.store.submissions.get(submission.id)
    assert stored is not None
    assert stored.state is SubmissionState.CANCELLED


@pytest.mark.parametrize("ending", ["release", "return_to_queue", "requeue_expired"])
async def test_a_job_that_should_stop_is_never_queued_again(
    scene: Scene, clock: ManualClock, ending: str
) -> None:
    submission = await scene.submit()
    job = await scene.claim_one()
    await scene.store.jobs.request_cancel(submission.id)
    match ending:
        case "release":
            await scene.store.jobs.release(job.id, job.fence, "lost", final=False)
        case "return_to_queue":
            await scene.store.jobs.return_to_queue(job.id, job.fence)
        case _:
            clock.advance(31)
            await scene.store.jobs.requeue_expired()
    assert (await scene.job(submission.id)).state is JobState.CANCELLED


async def test_events_tell_every_step_in_order(scene: Scene, clock: ManualClock) -> None:
    submission = await scene.submit()
    job = await scene.claim_one()
    clock.advance(1)
    assert await scene.store.jobs.add_progress(
        job.id, job.fence, "test", {"done": 1, "note": "a\x00"}
    )
    await scene.store.jobs.release(job.id, job.fence, "lost", final=True)
    events = await scene.store.jobs.events(submission.id, EventId(0))
    assert [(event.kind, event.body) for event in events] == [
        ("queued", {"gpu": "CPU", "attempt": 0}),
        ("running", {"gpu": "CPU", "attempt": 1}),
        ("test", {"done": 1, "note": "a\x00"}),
        ("failed", {"gpu": "CPU", "attempt": 1, "error": "lost"}),
    ]
    assert events[2].at == clock.now()
    assert await scene.store.jobs.events(submission.id, events[2].id) == events[3:]
    assert {event.job for event in events} == {job.id}


async def test_the_latest_event_of_each_running_job_is_given(scene: Scene) -> None:
    submission = await scene.submit(gpus=("CPU", "L4", "T4"))
    cpu, l4 = [await scene.claim_one(gpu) for gpu in ("CPU", "L4")]
    for done in range(3):
        assert await scene.store.jobs.add_progress(cpu.id, cpu.fence, "test", {"done": done})
    latest = {event.job: event for event in await scene.store.jobs.latest(submission.id)}
    assert set(latest) == {cpu.id, l4.id}
    assert (latest[cpu.id].kind, latest[cpu.id].body) == ("test", {"done": 2})
    assert latest[l4.id].kind == "running"


async def test_events_are_forgotten_once_their_job_has_ended_long_ago(
    scene: Scene, clock: ManualClock
) -> None:
    ended, unfinished = [await scene.submit() for _ in range(2)]
    job = await scene.claim_one()
    assert await scene.store.jobs.accept(job.id, job.fence, make_evaluation(), None)
    assert await scene.store.jobs.delete_events(timedelta(days=7)) == 0
    clock.advance(8 * 24 * 3600)
    assert await scene.store.jobs.delete_events(timedelta(days=7)) == 3
    assert await scene.store.jobs.events(ended.id, EventId(0)) == ()
    assert len(await scene.store.jobs.events(unfinished.id, EventId(0))) == 1
    assert len(await scene.store.results.evaluations(ended.id)) == 1


async def test_ahead_counts_the_jobs_that_are_claimed_first(scene: Scene) -> None:
    made = [await scene.submit() for _ in range(3)]
    bob = await scene.store.people.ensure("local:bob", "Bob")
    bobs = await scene.submit(bob)
    await scene.submit(bob, mode=Mode.TEST)
    ahead = scene.store.jobs.ahead
    assert await ahead((await scene.job(made[-1].id)).id) == 4
    assert await ahead((await scene.job(bobs.id)).id) == 2
    line = await scene.claim(5)
    assert [job.submission for job in line][2] == bobs.id
    assert await ahead(line[-1].id) == 0


async def _heard(notices: AsyncIterator[Notice | None]) -> Notice:
    """The next notice; the ticks between are not told by anybody."""
    while (notice := await anext(notices)) is None:
        pass
    return notice


async def test_notices_reach_those_who_wait_for_their_topic(scene: Scene) -> None:
    async with scene.store.events.subscribe(frozenset(Topic)) as notices:
        submission = await scene.submit()
        heard = {await _heard(notices) for _ in range(2)}
        progress = Notice(Topic.PROGRESS, str(submission.id))
        assert heard == {Notice(Topic.READY, "CPU"), progress}
        job = await scene.claim_one()
        assert await _heard(notices) == progress
        await scene.store.jobs.request_cancel(submission.id)
        assert await _heard(notices) == Notice(Topic.CANCEL, str(job.id))
        await scene.store.jobs.end_cancelled(job.id, job.fence)
        assert {await _heard(notices) for _ in range(2)} == heard


async def test_a_subscriber_is_told_to_look_when_nothing_is_heard(store: Store) -> None:
    async with store.events.subscribe(frozenset({Topic.CANCEL})) as notices:
        await store.jobs.limit("CPU", 1)
        async with asyncio.timeout(5):
            assert await anext(notices) is None


async def test_audit_rows_come_back_newest_first(scene: Scene, clock: ManualClock) -> None:
    await scene.store.audit.record(scene.ada.id, "close", "board 1", "season \x00 over")
    await scene.store.audit.record(None, "reap", "job 2", "")
    newest, oldest = await scene.store.audit.rows()
    assert (newest.actor, newest.action) == (None, "reap")
    assert (oldest.actor, oldest.reason) == (scene.ada.id, "season \u2400 over")
    assert oldest.at == clock.now()
    assert await scene.store.audit.rows(limit=1) == (newest,)


async def test_a_big_backlog_does_not_hold_up_others(scene: Scene) -> None:
    for _ in range(300):
        await scene.submit()
    bob = await scene.store.people.ensure("local:bob", "Bob")
    await scene.submit(bob)
    claimed = await scene.store.jobs.claim(Claim("w1", {"CPU": 2}, LEASE))
    assert [job.person for job in claimed] == [scene.ada.id, bob.id]


async def test_no_account_has_the_number_of_a_reader_without_one(store: Store) -> None:
    first = await store.people.ensure("local:first", "first")
    second = await store.people.ensure("local:second", "second")
    assert NOBODY not in {first.id, second.id}
