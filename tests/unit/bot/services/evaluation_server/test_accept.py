"""Requests are stored like submissions, on the GPU type that fits."""

from datetime import timedelta

import pytest

from bot.domain.access import Viewer
from bot.domain.errors import UserError
from bot.domain.evaluation_server.record import RECORD
from bot.domain.evaluation_server.request import BadRequestError, EvaluateRequest
from bot.domain.ids import PersonId
from bot.services.evaluation_server.accept import BOARD, NoRunnerError, accept
from bot.services.lookup import find_board, seen_submission, visible_boards
from runners.contract.task import Mode, TaskFormat
from tests.doubles.clock import ManualClock
from tests.doubles.eval_server import kernel, make_request
from tests.doubles.factories import make_capabilities
from tests.doubles.memory_store import MemoryStore

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
    assert await seen_submission(memory_store, Viewer(ada), made.id) == made
    with pytest.raises(UserError, match="no submission"):
        await seen_submission(memory_store, Viewer(PersonId(98)), made.id)


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
    assert not refused.value.any_there
    await offer(memory_store, clock, CPU=1)
    io = {"args": [{"name": "n", "type": "int", "value": 1}]}
    cuda = EvaluateRequest.model_validate({"kernel": kernel(kernel_type="cuda", io=io)})
    with pytest.raises(NoRunnerError, match="missing the device cuda") as refused:
        await accept(memory_store, clock, ada, cuda)
    assert refused.value.any_there


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
    await memory_store.moderation.ban(ada, "forging")
    with pytest.raises(UserError, match="banned"):
        await accept(memory_store, clock, ada, make_request())
    await memory_store.moderation.unban(ada)
    await memory_store.moderation.pause("moving")
    with pytest.raises(UserError, match="moving"):
        await accept(memory_store, clock, ada, make_request())
