"""What is accepted, how it is followed to its end, and when it is deleted."""

import asyncio
from datetime import timedelta

import pytest

from bot.domain.board import Viewer
from bot.domain.errors import UserError
from bot.domain.ids import PersonId
from bot.domain.job import JobState
from bot.domain.submission import Ban, Submission
from bot.services.dispatch.config import DispatchConfig
from bot.services.dispatch.worker_queue import StoreQueue
from bot.services.lookup import find_board, visible_boards, visible_submission
from bot.web.app import maintaining
from bot.web.compat.evaluation_server import jobs
from bot.web.compat.evaluation_server.jobs import (
    BOARD,
    ClosingError,
    NoRunnerError,
    accept,
    delete_ended,
    find_request,
    margin_s,
    upkeep,
    wait,
)
from bot.web.compat.evaluation_server.requests import BadRequestError, EvaluateRequest
from bot.web.compat.evaluation_server.translate import RECORD, rounds_of
from runners.contract.evaluation import CPU
from runners.contract.task import Mode, TaskFormat
from runners.contract.verdict import Stage
from tests.doubles.clock import ManualClock
from tests.doubles.dispatching import failing, until
from tests.doubles.eval_server import EvalServer, eval_server, kernel, make_request
from tests.doubles.factories import make_capabilities
from tests.doubles.memory_store import MemoryStore
from tests.doubles.place import make_place

ALL = tuple(TaskFormat)


async def offer(store: MemoryStore, clock: ManualClock, **gpus: int) -> None:
    offered = make_capabilities(gpus=gpus, formats=ALL)
    lease = timedelta(hours=1)
    await store.workers.announce("w", tuple(gpus), lease, {"local": offered})


@pytest.fixture
async def ada(memory_store: MemoryStore) -> PersonId:
    return (await memory_store.people.ensure("local:ada", "Ada")).id


async def test_a_request_is_a_submission_with_one_job_that_goes_before_ranked_ones(
    memory_store: MemoryStore, clock: ManualClock, ada: PersonId
) -> None:
    await offer(memory_store, clock, CPU=1)
    made = await accept(memory_store, clock, ada, make_request())
    (job,) = await memory_store.jobs.of(made.id)
    assert (job.person, job.gpu, job.mode, job.priority) == (ada, "CPU", Mode.RANKED, 20)
    version = await memory_store.boards.version(made.task_version)
    assert version is not None
    assert RECORD in version.definition.files
    assert version.definition.limit_s(Mode.RANKED) < 28  # 2 s before its caller hangs up


async def test_its_board_is_nobodys_to_see_and_its_submission_its_owners(
    memory_store: MemoryStore, clock: ManualClock, ada: PersonId
) -> None:
    await offer(memory_store, clock, CPU=1)
    made = await accept(memory_store, clock, ada, make_request())
    admin = Viewer(PersonId(99), sees_all=True)
    assert await visible_boards(memory_store, admin) == ()
    with pytest.raises(UserError, match="no board named"):
        await find_board(memory_store, admin, BOARD)
    assert await visible_submission(memory_store, Viewer(ada), made.id) == made
    with pytest.raises(UserError, match="no submission"):
        await visible_submission(memory_store, Viewer(PersonId(98)), made.id)


@pytest.mark.parametrize(
    ("gpus", "wanted", "chosen"),
    [
        ({"CPU": 1}, None, "CPU"),
        ({"CPU": 1, "H100": 1, "L4": 2}, None, "H100"),
        ({"CPU": 1, "H100": 1}, "cpu", "CPU"),
        ({"H100": 1, "L4": 1}, "l4", "L4"),
    ],
)
async def test_the_gpu_type_is_the_one_asked_for_or_the_first_that_is_there(
    memory_store: MemoryStore, clock: ManualClock, ada: PersonId,
    gpus: dict[str, int], wanted: str | None, chosen: str,
) -> None:  # fmt: skip
    await offer(memory_store, clock, **gpus)
    made = await accept(memory_store, clock, ada, make_request(gpu=wanted))
    assert made.gpus == (chosen,)


async def test_a_gpu_type_that_is_not_there_is_refused_with_those_that_are(
    memory_store: MemoryStore, clock: ManualClock, ada: PersonId
) -> None:
    await offer(memory_store, clock, H100=1)
    with pytest.raises(UserError, match="H100"):
        await accept(memory_store, clock, ada, make_request(gpu="H10"))


async def test_what_no_runner_can_judge_is_not_taken_in(
    memory_store: MemoryStore, clock: ManualClock, ada: PersonId
) -> None:
    with pytest.raises(NoRunnerError) as refused:
        await accept(memory_store, clock, ada, make_request())
    assert not refused.value.has_runners
    await offer(memory_store, clock, CPU=1)
    io = {"args": [{"name": "n", "type": "int", "value": 1}]}
    cuda = EvaluateRequest.model_validate({"kernel": kernel(kernel_type="cuda", io=io)})
    with pytest.raises(NoRunnerError, match="missing the device cuda") as refused:
        await accept(memory_store, clock, ada, cuda)
    assert refused.value.has_runners


@pytest.mark.parametrize(
    ("source", "code"),
    [("", "empty"), ("a\0b", "not-text"), ("\ud800", "not-utf8"), ("x" * 1_000_001, "too-large")],
)
async def test_a_source_that_is_none_is_refused(
    memory_store: MemoryStore, clock: ManualClock, ada: PersonId, source: str, code: str
) -> None:
    await offer(memory_store, clock, CPU=1)
    request = make_request()
    changed = request.kernel.model_copy(update={"source_code": source})
    with pytest.raises(UserError) as refused:
        await accept(memory_store, clock, ada, request.model_copy(update={"kernel": changed}))
    assert refused.value.code == code


async def test_a_number_out_of_range_a_ban_and_a_pause_keep_it_out(
    memory_store: MemoryStore, clock: ManualClock, ada: PersonId
) -> None:
    await offer(memory_store, clock, CPU=1)
    with pytest.raises(BadRequestError):
        await accept(memory_store, clock, ada, make_request(timeout=4))
    await memory_store.moderation.ban(ada, Ban("forging"))
    with pytest.raises(UserError, match="banned"):
        await accept(memory_store, clock, ada, make_request())
    await memory_store.moderation.unban(ada)
    await memory_store.moderation.pause("moving")
    with pytest.raises(UserError, match="moving"):
        await accept(memory_store, clock, ada, make_request())


def never() -> bool:
    return False


def soon(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


async def taken(server: EvalServer, directive: str) -> tuple[Submission, Viewer]:
    ada = await server.store.people.ensure("local:ada", "Ada")
    made = await accept(server.store, server.clock, ada.id, make_request(directive))
    return made, Viewer(ada.id)


async def test_a_request_is_waited_for_until_it_is_judged(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    async with eval_server(memory_store, clock) as server:
        made, ada = await taken(server, "seconds=0.1")
        await wait(memory_store, made.id, soon(20), never)
        found = await find_request(memory_store, ada, made.id)
    assert (found.job.state, found.is_final) == (JobState.SUCCEEDED, True)
    assert found.evaluation is not None
    assert found.request.num_trials == 20


async def test_the_job_of_a_caller_whose_time_is_over_is_killed_and_its_slot_is_free(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    """The evaluation server let it run on, and all that waited behind it timed out as well."""
    async with eval_server(memory_store, clock) as server:
        endless, ada = await taken(server, "seconds=1000")
        behind, _ = await taken(server, "seconds=0")
        begun = asyncio.get_running_loop().time()
        await wait(memory_store, endless.id, soon(0.2), never)
        assert asyncio.get_running_loop().time() - begun < 2
        await wait(memory_store, behind.id, soon(10), never)
        assert (await find_request(memory_store, ada, behind.id)).job.state is JobState.SUCCEEDED
        killed = await find_request(memory_store, ada, endless.id)
    assert killed.job.state is JobState.CANCELLED
    assert killed.evaluation is None


async def test_a_stopped_request_ran_out_only_if_its_time_was_over(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    async with eval_server(memory_store, clock, {"CPU": 1}) as server:
        (early, ada), (late, _) = await taken(server, "seconds=99"), await taken(server, "")
        await memory_store.jobs.request_cancel(late.id)
        assert not (await find_request(memory_store, ada, late.id)).timed_out
        clock.advance(28)
        await memory_store.jobs.request_cancel(early.id)

        async def is_final() -> bool:
            return (await find_request(memory_store, ada, early.id)).is_final

        await until(is_final)
        assert (await find_request(memory_store, ada, early.id)).timed_out


async def test_a_database_that_is_away_for_a_moment_is_waited_for(
    memory_store: MemoryStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "_RETRY_S", 0.02)
    async with eval_server(memory_store, clock) as server:
        made, _ = await taken(server, "seconds=0")
        await wait(failing(memory_store, {"of": 2}), made.id, soon(10), never)
        (job,) = await memory_store.jobs.of(made.id)
    assert job.state is JobState.SUCCEEDED


async def test_who_waits_is_told_when_the_door_closes_and_the_job_goes_on(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    async with eval_server(memory_store, clock) as server:
        made, _ = await taken(server, "seconds=99")
        with pytest.raises(ClosingError):
            await wait(memory_store, made.id, soon(20), lambda: True)
        (job,) = await memory_store.jobs.of(made.id)
        assert not job.cancel_requested


async def test_a_running_request_says_what_it_does(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    async with eval_server(memory_store, clock) as server:
        made, ada = await taken(server, "seconds=99")

        async def is_running() -> bool:
            return (await find_request(memory_store, ada, made.id)).stage is not None

        await until(is_running)
        assert (await find_request(memory_store, ada, made.id)).stage in set(Stage)


async def test_what_the_profiler_counted_is_there_for_who_asked_for_it(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    ada = await memory_store.people.ensure("local:ada", "Ada")
    async with eval_server(memory_store, clock):
        for asked, names in ((True, ["custom.csv"]), (False, [])):
            request = make_request("file=custom.csv", device_metrics=asked)
            made = await accept(memory_store, clock, ada.id, request)
            await wait(memory_store, made.id, soon(20), never)
            found = await find_request(memory_store, Viewer(ada.id), made.id)
            assert found.evaluation is not None
            assert [each.name for each in found.evaluation.files] == names


async def test_a_request_that_was_forgotten_meanwhile_is_unknown(
    memory_store: MemoryStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def none_of(_: object) -> tuple[()]:
        return ()

    async with eval_server(memory_store, clock) as server:
        made, ada = await taken(server, "seconds=0")
        monkeypatch.setattr(memory_store.jobs, "of", none_of)
        with pytest.raises(UserError, match="not found"):
            await find_request(memory_store, ada, made.id)


async def test_only_ones_own_requests_are_found_and_nothing_that_is_none(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    place = await make_place(memory_store, clock)
    other = await place.submit()
    async with eval_server(memory_store, clock) as server:
        made, ada = await taken(server, "seconds=0")
        bob = Viewer(await place.person("bob"))
        for viewer, number in ((bob, made.id), (Viewer(place.ada), other.id), (ada, other.id)):
            with pytest.raises(UserError, match=f"Job {number} not found"):
                await find_request(memory_store, viewer, number)
        admin = Viewer(bob.person, sees_all=True)
        assert (await find_request(memory_store, admin, made.id)).submission.id == made.id


@pytest.mark.parametrize(("timeout", "margin"), [(5, 0.5), (10, 1.0), (120, 2.0), (600, 2.0)])
def test_the_answer_is_sent_before_the_caller_hangs_up(timeout: int, margin: float) -> None:
    assert margin_s(make_request(timeout=timeout)) == margin


async def test_nothing_is_forgotten_where_nothing_was_asked(memory_store: MemoryStore) -> None:
    assert await delete_ended(memory_store) == 0
    await upkeep(memory_store)


async def test_the_upkeep_deletes_what_ended_an_hour_ago(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    ada = await memory_store.people.ensure("local:ada", "Ada")
    async with eval_server(memory_store, clock) as server:
        made = await accept(memory_store, clock, ada.id, make_request())
        until = asyncio.get_running_loop().time() + 10
        await wait(server.store, made.id, until, lambda: False)
    for seconds, there in ((3599, True), (2, False)):
        clock.advance(seconds)
        async with maintaining(memory_store):
            await asyncio.sleep(0.05)
        assert (await memory_store.submissions.get(made.id) is not None) is there


async def test_a_job_whose_server_is_gone_does_not_wait_for_ever(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    """Of the evaluation server's such jobs were "submitted" until its end."""
    ada = await memory_store.people.ensure("local:ada", "Ada")
    async with eval_server(memory_store, clock):
        await memory_store.moderation.pause_gpu("CPU", "away")
        made = await accept(memory_store, clock, ada.id, make_request())
        for seconds, state in ((3599, JobState.QUEUED), (2, JobState.CANCELLED)):
            clock.advance(seconds)
            await upkeep(memory_store)
            (job,) = await memory_store.jobs.of(made.id)
            assert job.state is state
        await upkeep(memory_store)
        assert await memory_store.submissions.get(made.id) is not None


async def test_a_worker_times_a_request_as_often_as_it_asks(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    ada = await memory_store.people.ensure("local:ada", "Ada")
    queue = StoreQueue(memory_store, DispatchConfig(worker="box:1"))
    await queue.announce({"a": make_capabilities(gpus={CPU: 1}, formats=ALL)})
    await accept(memory_store, clock, ada.id, make_request(num_trials=7))
    (job,) = await queue.claim({CPU: 1})
    request = await queue.request(job)
    assert request is not None
    assert request.rounds == rounds_of(7)
