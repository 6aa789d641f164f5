"""Slots of this machine with harnesses that misbehave, each a real process."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from bot.services.dispatch.config import DispatchConfig
from runners.backends import local_process
from runners.contract.evaluation import CPU, GRACE_S, Evaluation, EvaluationRequest, Progress
from runners.contract.runner import CallId, Capabilities, Runner, RunnerError
from runners.contract.task import Mode, Workload
from runners.harness import server
from runners.slots import harness
from runners.slots import runner as pool
from runners.slots.harness import Gpu
from tests.doubles.evaluating import make_request

GPUS = tuple(Gpu(number, f"GPU-{number}", "H200") for number in range(3))
IMITATION = str(Path(__file__).parent / "imitation.py")


def imitate(monkeypatch: pytest.MonkeyPatch, *flags: str) -> None:
    def command(*_: object) -> list[str]:
        return [sys.executable, IMITATION, *flags]

    monkeypatch.setattr(harness, "command", command)


@pytest.fixture
async def runner(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Runner]:
    imitate(monkeypatch)
    made = local_process.create(slots={CPU: 1})
    yield made
    await made.aclose()


def ignore(_: Progress) -> None:
    return


async def evaluate(runner: Runner, source: str = "") -> Evaluation:
    return await runner.wait(await runner.start(make_request(source)), ignore)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("die", "status 9: I fell"),
        ("shout", "over 16777216 bytes"),
        ("babble", "broke the contract"),
        ("mistake", "answered another request"),
        ("apologise", "the disk is full"),
    ],
)
async def test_a_failing_harness_is_an_error_for_that_call_alone(
    runner: Runner, source: str, reason: str
) -> None:
    with pytest.raises(RunnerError, match=reason):
        await evaluate(runner, source)
    assert (await evaluate(runner)).verdict == "passed"


async def test_a_harness_stays_warm_between_calls(runner: Runner) -> None:
    assert (await evaluate(runner)).message == (await evaluate(runner)).message


async def test_a_harness_that_died_while_idle_is_replaced(runner: Runner) -> None:
    first = await evaluate(runner, "leave")
    await until_gone(int(first.message))
    assert (await evaluate(runner)).message != first.message


async def until_gone(pid: int) -> None:
    """Until asyncio has collected the process; collecting it here would be stealing it."""
    for _ in range(500):
        if not psutil.pid_exists(pid):
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"process {pid} is still there")


async def test_a_harness_that_dies_unnoticed_is_replaced_before_it_is_missed(
    runner: Runner,
) -> None:
    first = await evaluate(runner)
    os.kill(int(first.message), signal.SIGKILL)  # asyncio has not heard of it yet
    assert (await evaluate(runner)).message != first.message


async def test_two_hundred_calls_leak_no_descriptor(runner: Runner) -> None:
    await evaluate(runner)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names only
    for _ in range(200):
        await evaluate(runner)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - names only


async def test_restarted_harnesses_leak_no_descriptor(runner: Runner) -> None:
    await evaluate(runner)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names only
    for _ in range(5):
        with pytest.raises(RunnerError):
            await evaluate(runner, "die")
    await evaluate(runner)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - names only


async def test_a_silent_harness_is_killed_at_the_hard_limit(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = int((await evaluate(runner)).message)
    monkeypatch.setattr(EvaluationRequest, "hard_limit_s", 0.2)
    with pytest.raises(RunnerError, match="no evaluation within 0 s"):
        await evaluate(runner, "hang")
    assert not psutil.pid_exists(pid)


def test_the_hard_limit_lies_beyond_every_phase_of_the_task() -> None:
    assert make_request(timeout_s=7).hard_limit_s == 7 + GRACE_S
    ranked = make_request(timeout_s=7, mode=Mode.RANKED)
    assert ranked.hard_limit_s == 14 + GRACE_S
    again = ranked.model_copy(update={"used_s": 4.0})
    assert (again.left_s, again.hard_limit_s) == (10, 10 + GRACE_S)


def test_a_harness_gives_up_before_it_is_given_up() -> None:
    assert server.GRACE_S < GRACE_S < DispatchConfig().grace_s


async def test_nothing_of_our_environment_is_passed_on(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODIUM_SECRET", "hunter2")
    with pytest.raises(RunnerError) as raised:
        await evaluate(runner, "environment")
    allowed = {"PATH", "LANG", "HOME", "CUDA_VISIBLE_DEVICES", "LC_CTYPE"}
    assert set(json.loads(str(raised.value))) <= allowed


async def test_a_request_over_sixteen_mebibytes_is_refused(runner: Runner) -> None:
    with pytest.raises(RunnerError, match="at most 16777216"):
        await runner.start(make_request("x" * (16 << 20)))


async def test_a_harness_that_refuses_to_start_gives_its_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    imitate(monkeypatch, "--refuse")
    runner = local_process.create(slots={CPU: 1}, strict=True)
    with pytest.raises(RunnerError, match="status 3: refusing to run without seccomp"):
        await runner.capabilities()
    await runner.aclose()


async def test_a_harness_that_does_not_greet_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    imitate(monkeypatch, "--rude")
    runner = local_process.create(slots={CPU: 1})
    with pytest.raises(RunnerError, match="first line of the harness has no capabilities"):
        await evaluate(runner)
    await runner.aclose()


async def test_a_slot_that_never_comes_free_is_an_error_and_not_waited_for(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "START_S", 0.1)
    monkeypatch.setattr(harness.Harness, "wait_started", lambda _: asyncio.sleep(60))
    await runner.start(make_request())
    await asyncio.sleep(0)
    with pytest.raises(RunnerError, match="no slot of CPU was free"):
        await runner.capabilities()


async def test_what_is_offered_is_known_while_a_slot_is_busy(runner: Runner) -> None:
    told = asyncio.Event()
    call = await runner.start(make_request("hang"))
    waiting = asyncio.create_task(runner.wait(call, lambda _: told.set()))
    await told.wait()
    assert (await asyncio.wait_for(runner.capabilities(), 1)).gpus == {CPU: 1}
    waiting.cancel()


async def test_a_harness_beside_a_gpu_is_asked_first_for_it_may_offer_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    imitate(monkeypatch)
    monkeypatch.setattr(local_process, "find_gpus", lambda: GPUS)
    runner = local_process.create(slots={CPU: 1, "H200": 1})
    assert (await runner.capabilities()).gpus == {CPU: 1, "H200": 1}
    assert [slot.offered is not None for slot in every_slot(runner)] == [False, True]
    await runner.aclose()


def every_slot(runner: Runner) -> list[pool.Slot]:
    assert isinstance(runner, pool.SlotRunner)
    return [slot for kind in (CPU, "H200") for slot in runner._slots[kind]]


@pytest.mark.parametrize("count", [0, 2])
def test_a_cpu_is_one_slot(count: int) -> None:
    with pytest.raises(RunnerError, match="runs one evaluation at a time"):
        local_process.create(slots={CPU: count})


def ranks(count: int, source: str = "environment") -> EvaluationRequest:
    """A request of a task that spreads over so many GPUs."""
    request = make_request(source, gpu="H200")
    cases = (Workload(args={"size": 4, "world_size": count}),)
    task = request.task.model_copy(update={"multi_gpu": True, "benchmarks": cases})
    return request.model_copy(update={"task": task})


@pytest.fixture
async def three(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Runner]:
    imitate(monkeypatch)
    monkeypatch.setattr(local_process, "find_gpus", lambda: GPUS)
    made = local_process.create()
    yield made
    await made.aclose()


async def visible(runner: Runner, request: EvaluationRequest) -> list[str]:
    """The GPUs of the harness that serves a request."""
    with pytest.raises(RunnerError) as raised:
        await runner.wait(await runner.start(request), ignore)
    names: str = json.loads(str(raised.value))["CUDA_VISIBLE_DEVICES"]
    return sorted(names.split(","))


async def test_a_task_of_several_gpus_gets_a_harness_that_sees_them_all(three: Runner) -> None:
    assert await visible(three, ranks(3)) == ["GPU-0", "GPU-1", "GPU-2"]
    assert len(await visible(three, ranks(2))) == 2
    assert len(await visible(three, ranks(1))) == 1


async def test_tasks_that_need_more_than_half_of_the_gpus_each_do_not_wait_for_each_other(
    three: Runner,
) -> None:
    found = await asyncio.wait_for(
        asyncio.gather(*(visible(three, ranks(count)) for count in (2, 2, 3, 1, 2))), 30
    )
    assert [len(each) for each in found] == [2, 2, 3, 1, 2]


async def test_a_call_that_is_cancelled_while_it_joins_gpus_gives_them_back(three: Runner) -> None:
    told = asyncio.Event()
    busy = await three.start(make_request("hang", gpu="H200"))
    waiting = asyncio.create_task(three.wait(busy, lambda _: told.set()))
    await told.wait()
    joining = await three.start(ranks(3))
    await asyncio.sleep(0.05)
    await three.cancel(joining)
    assert len(await asyncio.wait_for(visible(three, ranks(2)), 10)) == 2
    waiting.cancel()


async def test_more_gpus_than_there_are_cannot_be_asked_for(three: Runner) -> None:
    assert (await three.capabilities()).at_once == {"H200": 3}
    with pytest.raises(RunnerError, match="needs 4 H200 at once; there are 3"):
        await three.start(ranks(4))


async def test_closing_while_harnesses_run_leaves_no_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    imitate(monkeypatch)
    monkeypatch.setattr(local_process, "find_gpus", lambda: GPUS)
    runner = local_process.create(slots={"H200": 3})
    calls = [await runner.start(make_request("hang", gpu="H200")) for _ in range(5)]
    waiting = [asyncio.create_task(runner.wait(call, ignore)) for call in calls]
    await asyncio.wait(waiting, timeout=0.5)
    await runner.aclose()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(result, RunnerError) for result in results)
    assert not [line for line in command_lines() if IMITATION in line]


def command_lines() -> Iterator[str]:
    """Those of all processes beneath this one that have not ended."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            yield " ".join(process.cmdline())


@pytest.mark.parametrize(
    ("gpus", "strict", "expected", "visible"),
    [
        ((), False, [], ""),
        (GPUS[1:2], True, ["--gpu-index", "1", "--strict"], "GPU-1"),
        (GPUS[1:], False, ["--gpu-index", "1"], "GPU-1,GPU-2"),
    ],
)
def test_a_harness_is_told_its_gpus_and_its_strictness(
    gpus: tuple[Gpu, ...], expected: list[str], visible: str, *, strict: bool
) -> None:
    line = harness.command(gpus, harness.SandboxOptions(strict=strict))
    assert line[1:] == ["-m", "runners.harness", "--serve", *expected]
    assert harness.environment(gpus)["CUDA_VISIBLE_DEVICES"] == visible


def test_a_harness_is_told_what_no_submission_may_see(tmp_path: Path) -> None:
    line = harness.command((), harness.SandboxOptions(hidden=(tmp_path, tmp_path / "a" / "..")))
    assert line[-4:] == ["--hide", str(tmp_path)] * 2


def compared(gpu: str = CPU, source: str = "hang") -> EvaluationRequest:
    """A request that compares with a rival."""
    made = make_request(source, mode=Mode.RANKED, gpu=gpu)
    return made.model_copy(update={"rival": "theirs"})


class Watched:
    """A call of a runner, and an event that is set once its harness evaluates."""

    def __init__(self, runner: Runner, call: CallId) -> None:
        self.runner, self.call = runner, call
        self.begun = asyncio.Event()
        self.task = asyncio.create_task(runner.wait(call, lambda _: self.begun.set()))

    async def end(self) -> None:
        """Cancel it."""
        await self.runner.cancel(self.call)
        await asyncio.wait({self.task})


async def watched(runner: Runner, request: EvaluationRequest) -> Watched:
    return Watched(runner, await runner.start(request))


@pytest.fixture
async def mixed(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[pool.SlotRunner[pool.Slot]]:
    """A runner with one slot of the CPU and two of GPUs."""
    imitate(monkeypatch)
    monkeypatch.setattr(local_process, "find_gpus", lambda: GPUS)
    made = local_process.create(slots={CPU: 1, "H200": 2})
    assert isinstance(made, pool.SlotRunner)
    yield made
    await made.aclose()


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The GPU type of each call for which a harness was prepared, in order."""
    kinds: list[str] = []
    warm = local_process.LocalSlot.warm_harness

    def warm_harness(slot: local_process.LocalSlot) -> Coroutine[None, None, harness.Harness]:
        kinds.append(slot.gpus[0].kind if slot.gpus else CPU)
        return warm(slot)

    monkeypatch.setattr(local_process.LocalSlot, "warm_harness", warm_harness)
    return kinds


async def until_waiting(runner: pool.SlotRunner[pool.Slot], slots: int) -> None:
    """Wait until only the running calls do not wait, with this many free slots of GPUs left."""
    async with asyncio.timeout(20):
        while runner._free["H200"].qsize() != slots:  # noqa: ASYNC110 - no event reports it
            await asyncio.sleep(0.01)
    for _ in range(20):
        await asyncio.sleep(0)


async def test_while_two_submissions_are_compared_on_the_cpu_no_other_slot_runs_one(
    mixed: pool.SlotRunner[pool.Slot], started: list[str]
) -> None:
    comparison = await watched(mixed, compared())
    await asyncio.wait_for(comparison.begun.wait(), 20)
    other = await watched(mixed, make_request("hang", gpu="H200"))
    await until_waiting(mixed, 1)
    assert started == [CPU]
    await comparison.end()
    await asyncio.wait_for(other.begun.wait(), 20)
    await other.end()


async def test_a_comparison_on_the_cpu_begins_once_the_calls_in_other_slots_have_ended(
    mixed: pool.SlotRunner[pool.Slot], started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cleared, stop = asyncio.Event(), local_process.LocalSlot.stop

    async def slowly(slot: local_process.LocalSlot) -> None:
        await cleared.wait()
        await stop(slot)

    other = await watched(mixed, make_request("hang", gpu="H200"))
    await asyncio.wait_for(other.begun.wait(), 20)
    comparison = await watched(mixed, compared())
    later = await watched(mixed, make_request("hang", gpu="H200"))
    await until_waiting(mixed, 0)
    monkeypatch.setattr(local_process.LocalSlot, "stop", slowly)
    ending = asyncio.create_task(other.end())
    await until_waiting(mixed, 0)
    assert started == ["H200"]
    cleared.set()
    await ending
    await asyncio.wait_for(comparison.begun.wait(), 20)
    assert started == ["H200", CPU]
    await comparison.end()
    await asyncio.wait_for(later.begun.wait(), 20)
    await later.end()


async def test_comparisons_and_other_calls_take_turns(mixed: pool.SlotRunner[pool.Slot]) -> None:
    requests = [
        *(compared(source="") for _ in range(3)),
        *(make_request("", gpu="H200") for _ in range(6)),
        make_request(""),
    ]
    calls = [await watched(mixed, each) for pair in zip(requests, requests, strict=True)
             for each in pair]  # fmt: skip
    async with asyncio.timeout(60):
        found = await asyncio.gather(*(each.task for each in calls))
    assert {each.verdict for each in found} == {"passed"}


async def test_a_cancelled_comparison_delays_no_call(
    mixed: pool.SlotRunner[pool.Slot], started: list[str]
) -> None:
    first = await watched(mixed, make_request("hang", gpu="H200"))
    await asyncio.wait_for(first.begun.wait(), 20)
    comparison = await watched(mixed, compared())
    second = await watched(mixed, make_request("hang", gpu="H200"))
    await until_waiting(mixed, 0)
    assert started == ["H200"]
    await comparison.end()
    await asyncio.wait_for(second.begun.wait(), 20)
    await asyncio.gather(first.end(), second.end())


@pytest.mark.parametrize("request_", [compared("H200"), make_request("hang")])
async def test_other_calls_run_at_the_same_time(
    mixed: pool.SlotRunner[pool.Slot], request_: EvaluationRequest
) -> None:
    calls = [await watched(mixed, request_), await watched(mixed, make_request("hang", gpu="H200"))]
    for call in calls:
        await asyncio.wait_for(call.begun.wait(), 20)
    await asyncio.gather(*(call.end() for call in calls))


FIT, SICK = '{"health": {}}', '{"health": {"unfit": "GPU-0: 3 MiB were not freed"}}'


@pytest.fixture
def health(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], object]:
    """Has harnesses say this of their GPUs, which are looked at again soon."""
    said = tmp_path / "health"
    said.write_text(FIT)
    imitate(monkeypatch, "--health", str(said))
    monkeypatch.setattr(local_process, "find_gpus", lambda: GPUS)
    monkeypatch.setattr(pool, "RECHECK_S", 0.05)
    return said.write_text


async def offered(runner: Runner, count: int) -> Capabilities:
    """What the runner offers, once it offers so many H200."""
    async with asyncio.timeout(20):
        while (  # noqa: ASYNC110 - a runner tells of no change
            found := await runner.capabilities()
        ).gpus["H200"] != count:
            await asyncio.sleep(0.02)
    return found


async def test_a_gpu_that_is_left_unfit_is_out_of_service_until_it_is_fit_again(
    health: Callable[[str], object], caplog: pytest.LogCaptureFixture
) -> None:
    runner = local_process.create(slots={"H200": 1})
    try:
        request = make_request("").model_copy(update={"gpu": "H200"})
        await runner.capabilities()
        health(SICK)
        first = await runner.start(request)
        assert (await runner.wait(first, ignore)).verdict == "passed"

        out = (await offered(runner, 0)).out_of_service
        assert [(each.gpu, each.card) for each in out] == [("H200", "GPU-0")]
        assert out[0].why == "GPU-0: 3 MiB were not freed"
        with pytest.raises(RunnerError, match="H200 is out of service: GPU-0: 3 MiB"):
            await runner.start(request)

        health(FIT)
        assert (await offered(runner, 1)).out_of_service == ()
        again = await runner.start(request)
        assert (await runner.wait(again, ignore)).verdict == "passed"
    finally:
        await runner.aclose()
    told = [record.message for record in caplog.records if "service" in record.message]
    assert told == ["H200 is out of service: GPU-0: 3 MiB were not freed",
                    "H200 is back in service"]  # fmt: skip


async def test_on_a_gpu_that_is_unfit_from_the_first_nothing_is_begun(
    health: Callable[[str], object],
) -> None:
    health(SICK)
    runner = local_process.create(slots={"H200": 1})
    try:
        request = make_request("").model_copy(update={"gpu": "H200"})
        with pytest.raises(RunnerError, match="3 MiB were not freed"):
            await runner.wait(await runner.start(request), ignore)
        health(FIT)
        await offered(runner, 1)
    finally:
        await runner.aclose()


@pytest.mark.parametrize(
    "line", ['{"error": "the judge ended with status 70"}', '{"progress": {"stage": "test"}}']
)
async def test_a_harness_that_does_not_say_how_it_is_serves_nobody(
    health: Callable[[str], object], line: str
) -> None:
    health(line)
    runner = local_process.create(slots={"H200": 1})
    try:
        with pytest.raises(RunnerError, match=r"status 70|reported no health"):
            await runner.capabilities()
    finally:
        await runner.aclose()


async def test_a_gpu_out_of_service_takes_nothing_from_the_others(
    health: Callable[[str], object],
) -> None:
    runner = local_process.create(slots={"H200": 2})
    assert isinstance(runner, pool.SlotRunner)
    try:
        request = make_request("").model_copy(update={"gpu": "H200"})
        calls = [await runner.start(request) for _ in range(2)]
        await asyncio.gather(*(runner.wait(call, ignore) for call in calls))
        await asyncio.gather(*runner._returning)
        health(SICK)
        await runner.wait(await runner.start(request), ignore)
        assert len((await offered(runner, 1)).out_of_service) == 1
    finally:
        await runner.aclose()
