"""What every runner promises, held against each of them; Modal and Ray run on this machine."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from unittest.mock import patch

import psutil
import pytest
import pytest_asyncio

from bot.domain.requirements import missing
from runners.backends import fake, local_process, modal_app, ray_cluster
from runners.contract.evaluation import CPU, Evaluation, Progress, Timing
from runners.contract.runner import CallId, Runner, RunnerError, UnknownCallError
from runners.contract.task import Grader, TaskFormat
from runners.contract.verdict import Verdict
from runners.harness import HARNESS_VERSION
from runners.languages import names_of, specs
from tests.doubles.evaluating import ENDLESS, RIGHT, WRONG, make_request
from tests.doubles.every_kind import KINDS, Kind
from tests.doubles.modal.server import LocalModal
from tests.doubles.modal.visible import local_modal
from tests.doubles.ray.local import CPU_NODE, LocalRay, local_ray

LONG_S = 300
"""A time limit that nothing reaches; at Modal who has another one is in another queue."""
KERNEL_S = 0.3
"""After a call told of its progress, its kernel runs by then."""

pytestmark = [
    pytest.mark.timeout(300),  # at Modal every call begins a container
    pytest.mark.asyncio(loop_scope="module"),
]


@dataclass(frozen=True)
class Place:
    """A runner, and a way to take the machine from under it."""

    runner: Runner
    source_that_is_lost: str
    lose_machine: Callable[[], Awaitable[None]]
    ending_s: float = 0.0
    """How long what was stopped may take to end, where that is another's doing."""
    crowd: int = 200
    """How many calls wait at once, unless `--crowd` says it."""
    asked: Callable[[int], bool] = lambda _: True
    """Whether that many have asked by now, where a question takes its time to get there."""


async def _nothing() -> None:
    return


def _harnesses() -> list[psutil.Process]:
    """Those of this process, without those of a Podium that runs beside for other tests."""
    ours = [child for child in psutil.Process().children() if _line(child)[1:3] != ["-m", "bot"]]
    beneath = [each for child in ours for each in _children(child)]
    return [each for each in (*ours, *beneath) if "runners.harness" in " ".join(_line(each))]


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:  # it ended meanwhile
        return []


def _line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:  # it ended meanwhile
        return []


async def _kill_harness() -> None:
    os.kill(_harnesses()[0].pid, signal.SIGKILL)


@asynccontextmanager
async def _fake() -> AsyncIterator[Place]:
    yield Place(fake.create(), RIGHT + "# fake: lost\n", _nothing)


@asynccontextmanager
async def _local_process() -> AsyncIterator[Place]:
    yield Place(local_process.create(slots={CPU: 1}), ENDLESS, _kill_harness, crowd=60)


@asynccontextmanager
async def _modal_app() -> AsyncIterator[Place]:
    async with local_modal() as server:
        await modal_app.deploy()
        runner = modal_app.create(slots={CPU: 1})
        yield Place(
            runner,
            ENDLESS,
            lambda: _lose_container(server),
            ending_s=5.0,
            crowd=4,
            asked=lambda count: server.rpcs.questions == count,
        )


async def _lose_container(server: LocalModal) -> None:
    async with asyncio.timeout(60):
        while not _harnesses():  # noqa: ASYNC110 - a process has no event of its own
            await asyncio.sleep(0.05)
    server.lose_machine()


@asynccontextmanager
async def _ray_cluster(server: LocalRay) -> AsyncIterator[Place]:
    with patch.dict(os.environ, server.environment):
        runner = ray_cluster.create(slots={CPU: 1})
        yield Place(runner, ENDLESS, lambda: _lose_node(server), 5.0, crowd=20)


async def _lose_node(server: LocalRay) -> None:
    await asyncio.to_thread(server.lose)
    await asyncio.to_thread(server.add, CPU_NODE)


@pytest.fixture(scope="module")
def ray_server() -> Iterator[LocalRay]:
    if sys.platform != "linux":
        pytest.skip("Ray is for Linux")
    with local_ray(CPU_NODE) as server:
        yield server


@pytest_asyncio.fixture(
    loop_scope="module", scope="module", params=[_fake, _local_process, _modal_app, _ray_cluster]
)
async def place(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    """One runner for all tests, the last of which closes it."""
    servers = [request.getfixturevalue("ray_server")] if request.param is _ray_cluster else []
    async with request.param(*servers) as made:
        yield made
        await made.runner.aclose()


@pytest.fixture
def crowd(request: pytest.FixtureRequest) -> int:
    """How many calls `--crowd` asks for; 0: as many as the place says."""
    return int(request.config.getoption("--crowd"))


def ignore(_: Progress) -> None:
    return


async def begun(place: Place, call: CallId) -> "asyncio.Task[Evaluation]":
    """Wait for a call, which has told of its progress or ended when this returns."""
    told = asyncio.Event()
    waiting = asyncio.create_task(place.runner.wait(call, lambda _: told.set()))
    heard = asyncio.create_task(told.wait())
    await asyncio.wait({waiting, heard}, timeout=60, return_when=asyncio.FIRST_COMPLETED)
    heard.cancel()
    return waiting


async def test_it_offers_what_it_was_asked_to_have(place: Place) -> None:
    offered = await place.runner.capabilities()
    assert offered.gpus == {CPU: 1}
    assert offered.harness_version


@pytest.mark.timeout(1200)
async def test_each_of_a_crowd_gets_its_own_evaluation_in_the_order_of_their_starts(
    place: Place, crowd: int
) -> None:
    count = crowd or place.crowd
    sources = (WRONG if number % 3 == 0 else RIGHT for number in range(count))
    requests = [make_request(source, timeout_s=LONG_S) for source in sources]
    before = await place.runner.start(make_request(ENDLESS, timeout_s=LONG_S))  # until all wait
    calls = [await place.runner.start(request) for request in requests]
    ended: list[CallId] = []

    async def follow(call: CallId) -> Evaluation:
        found = await place.runner.wait(call, ignore)
        ended.append(call)
        return found

    following = [asyncio.create_task(follow(call)) for call in reversed(calls)]
    async with asyncio.timeout(LONG_S):
        await asyncio.sleep(0)  # has each of them begin
        while not place.asked(count):  # noqa: ASYNC110 - nobody is told of it
            await asyncio.sleep(0.05)
    assert ended == []
    await place.runner.cancel(before)
    answers = await asyncio.gather(*following)
    answers.reverse()
    assert len(set(calls)) == count
    assert ended == calls
    assert [answer.request_id for answer in answers] == [each.request_id for each in requests]
    expected = [Verdict.WRONG_ANSWER if n % 3 == 0 else Verdict.PASSED for n in range(count)]
    assert [answer.verdict for answer in answers] == expected
    assert {(answer.task, answer.gpu) for answer in answers} == {("identity", CPU)}


async def test_progress_is_told_while_it_runs(place: Place) -> None:
    told: list[Progress] = []
    call = await place.runner.start(make_request())
    await place.runner.wait(call, told.append)
    assert told


async def test_a_second_waiter_gets_the_same_evaluation(place: Place) -> None:
    call = await place.runner.start(make_request())
    first = await place.runner.wait(call, ignore)
    assert await place.runner.wait(call, ignore) == first


@pytest.mark.parametrize("kind", KINDS, ids=str)
async def test_a_task_of_every_grader_format_and_language_is_judged(
    place: Place, kind: Kind
) -> None:
    offer = await place.runner.capabilities()
    if absent := missing(offer, kind.task, CPU):
        pytest.skip(f"this runner has no {', '.join(absent)}")
    expected = {kind.right: Verdict.PASSED}
    if kind.wrong is not None:
        expected[kind.wrong] = Verdict.WRONG_ANSWER
    requests = [make_request(each).model_copy(update={"task": kind.task}) for each in expected]
    calls = [await place.runner.start(each) for each in requests]
    answers = [await place.runner.wait(each, ignore) for each in calls]
    found = [answer.verdict for answer in answers]
    assert found == [*expected.values()], [answer.message + answer.log for answer in answers]
    if offer.harness_version == HARNESS_VERSION:
        by_own = kind.task.grader is Grader.POPCORN
        assert {answer.environment.timing is Timing.IN_PROCESS for answer in answers} == {by_own}


async def test_no_grader_format_or_language_is_forgotten() -> None:
    tasks = [kind.task for kind in KINDS]
    assert {task.grader for task in tasks} == {*Grader}
    assert {task.format for task in tasks} == {*TaskFormat} - {TaskFormat.IO_CONTRACT}
    assert {task.lang for task in tasks} == {*names_of(specs())}


async def test_an_endless_kernel_is_a_verdict_and_no_error(place: Place) -> None:
    call = await place.runner.start(make_request(ENDLESS, timeout_s=1))
    answer = await place.runner.wait(call, ignore)
    assert answer.verdict is Verdict.TIMED_OUT


async def test_a_lost_machine_is_an_error_for_that_call_alone(place: Place) -> None:
    lost = await place.runner.start(make_request(place.source_that_is_lost))
    # A machine that is lost before it has the call is replaced, and the call begun anew.
    waiting = await begun(place, lost)
    await place.lose_machine()
    with pytest.raises(RunnerError):
        await waiting
    following = await place.runner.start(make_request())
    assert (await place.runner.wait(following, ignore)).verdict is Verdict.PASSED


async def test_a_cancelled_call_ends_and_the_next_one_runs(place: Place) -> None:
    running = await place.runner.start(make_request(ENDLESS, timeout_s=60))
    queued = await place.runner.start(make_request(ENDLESS, timeout_s=60))
    following = await place.runner.start(make_request())
    waiting = await begun(place, running)
    await asyncio.wait({waiting}, timeout=KERNEL_S)
    await place.runner.cancel(queued)
    await place.runner.cancel(running)
    with pytest.raises(RunnerError):
        await waiting
    assert (await place.runner.wait(following, ignore)).verdict is Verdict.PASSED
    await place.runner.cancel(following)


async def test_an_unknown_gpu_type_is_an_error(place: Place) -> None:
    with pytest.raises(RunnerError):
        await place.runner.start(make_request(gpu="H9000"))


async def test_an_unknown_call_is_an_error(place: Place) -> None:
    with pytest.raises(UnknownCallError):
        await place.runner.wait(CallId("nobody-1"), ignore)


async def test_closing_ends_every_call_and_process(place: Place) -> None:
    call = await place.runner.start(make_request(ENDLESS, timeout_s=60))
    waiting = await begun(place, call)
    await asyncio.wait({waiting}, timeout=KERNEL_S)
    harnesses = _harnesses()
    await place.runner.aclose()
    with pytest.raises(RunnerError):
        await waiting
    assert psutil.wait_procs(harnesses, timeout=place.ending_s)[1] == []
    with pytest.raises(RunnerError):
        await place.runner.start(make_request())
