"""How fast does the judge answer on this GPU, which steps take the time, and how fast is the GPU?

Run from the repository root on a machine with a GPU:
    python tests/gpu/speed.py [--part modes] [--part load] [--part rates] [--runs N] [--minutes M]

`modes`: a kernel of 30 us in each mode on one warm harness that waits for work. `load`: ranked
runs of the corpus's honest kernels, or of the example tasks' own solutions, one after the other,
through the local runner as a worker has it (without the store). `rates`: what a copy and matrix
products achieve, beside the nominal rates. Without a GPU the first two run on the CPU, where no
target applies; inline CUDA builds in every evaluation, and its target is for the seconds less that.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import cycle, zip_longest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402 - found by the line above

from bot.domain.tasks.bundle import Solution, solutions  # noqa: E402 - found by the line above
from bot.domain.tasks.task_file import parse_task  # noqa: E402 - found by the line above
from bot.store.task_folders import read_folder, task_folders  # noqa: E402 - found by the line above
from runners.backends import local_process  # noqa: E402 - found by the line above
from runners.backends.local_process import find_gpus, type_of_model  # noqa: E402 - likewise
from runners.contract.evaluation import CPU, Evaluation, EvaluationRequest  # noqa: E402 - likewise
from runners.contract.gpus import GPU_TYPES  # noqa: E402 - found by the line above
from runners.contract.runner import Runner, RunnerError  # noqa: E402 - found by the line above
from runners.contract.task import Mode, TaskDefinition  # noqa: E402 - found by the line above
from runners.contract.verdict import Verdict  # noqa: E402 - found by the line above
from tests.exploits.corpus import Kernel, kernels  # noqa: E402 - found by the line above
from tests.exploits.tasks import order_of  # noqa: E402 - found by the line above
from tests.gpu.accounts import Account, Asked, judge, table  # noqa: E402 - likewise
from tests.gpu.asking import HarnessError, gpus_here, serving  # noqa: E402 - likewise
from tests.gpu.rates import measured_rates  # noqa: E402 - found by the line above

PARTS = ("modes", "load", "rates")
TARGETS_S = {Mode.TEST: 1.5, Mode.BENCHMARK: 3.0, Mode.RANKED: 6.0}
"""Seconds of an evaluation of the 30 us kernel on a warm worker."""
TARGET_A_MINUTE = 15.0
"""Ranked evaluations a minute on one GPU."""
ADDERS = {True: ("torch_add", "triton_add", "inline_cuda"), False: ("new_tensor",)}
"""Kernels of the corpus; on a GPU all of them add fp16 4096x4096."""
BUILT = ("inline_cuda",)
"""Those which nvcc builds in every evaluation."""
IDLE_S = 1.0
"""How long the harness is idle before an evaluation of `modes`."""
BUILT_RUNS = 2
FAILURES_MOST = 3
"""How often in a row the harness may fail before the rest is given up."""

Trial = tuple[TaskDefinition, Solution]


class Worker:
    """The local runner, called for one evaluation after the other."""

    def __init__(self, loop: asyncio.Runner, runner: Runner) -> None:
        self.loop = loop
        self.runner = runner

    def ask(self, request: EvaluationRequest) -> tuple[Evaluation, float]:
        """The evaluation and the seconds that it took; HarnessError when there is none."""
        begin = time.monotonic()
        try:
            found = self.loop.run(self._evaluated(request))
        except RunnerError as error:
            raise HarnessError(str(error)) from error
        return found, time.monotonic() - begin

    async def _evaluated(self, request: EvaluationRequest) -> Evaluation:
        return await self.runner.wait(await self.runner.start(request), lambda _: None)


@contextmanager
def working(gpu: str) -> Iterator[Worker]:
    """The local runner with one slot of the type."""
    with asyncio.Runner() as loop:
        runner = local_process.create(slots={gpu: 1})
        try:
            yield Worker(loop, runner)
        finally:
            loop.run(runner.aclose())


def modes(runs: int, *, on_gpu: bool) -> tuple[int, list[str]]:
    """Judge one kernel in each mode on a warm harness; return the count of bad rows and a table."""
    there = {each.name: each for each in kernels("honest_cuda" if on_gpu else "honest")}
    accounts: list[Account] = []
    with serving() as server:
        print(server.ready[:1000], flush=True)
        for name in ADDERS[on_gpu]:
            for mode, target in TARGETS_S.items():
                account = Account(f"{name} {mode}", target if on_gpu else None, name in BUILT)
                repeat(server, order_in(there[name], mode), account, runs)
                accounts.append(account)
                print(account.row, flush=True)
    return sum(not each.good for each in accounts), table(accounts, "kernel and mode")


def order_in(kernel: Kernel, mode: Mode) -> EvaluationRequest:
    """The kernel in a mode, with the mode's own rounds."""
    changes = {"mode": mode, "rounds": None, "request_id": f"{kernel.name} {mode}"}
    return order_of(kernel).model_copy(update=changes)


def repeat(asked: Asked, order: EvaluationRequest, account: Account, runs: int) -> None:
    """Repeat evaluations after one that does not count; if each builds, fewer, which all count."""
    if account.built:
        runs = min(runs, BUILT_RUNS)
    else:
        judge(asked, order)
    for _ in range(runs):
        time.sleep(IDLE_S)
        judge(asked, order, account)


def mixed(needs: set[str]) -> list[Trial]:
    """The right solutions that can run here, alternating between tasks and their kinds."""
    tasks = []
    for folder in task_folders(ROOT / "tasks" / "examples"):
        bundle = read_folder(folder)
        task = parse_task(bundle)
        kinds: dict[tuple[str, ...], list[Trial]] = {}
        for each in solutions(bundle):
            if each.expect is Verdict.PASSED and set(each.needs) <= needs:
                kinds.setdefault(each.needs, []).append((task, each))
        tasks.append(by_turns(kinds.values()))
    return by_turns(tasks)


def by_turns(rows: Iterable[list[Trial]]) -> list[Trial]:
    """The first of each row, then the second of each, and so on."""
    return [each for turn in zip_longest(*rows) for each in turn if each is not None]


def load(minutes: float, orders: list[EvaluationRequest]) -> tuple[int, list[str]]:
    """Run the load through the local runner, or a harness if the runner cannot judge here."""
    if orders[0].gpu == CPU:
        with working(CPU) as worker:
            return sustained(worker, minutes, orders)
    if found := find_gpus():
        orders = [each.model_copy(update={"gpu": found[0].kind}) for each in orders]
        with working(found[0].kind) as worker:
            if first(worker, orders[0]):
                return sustained(worker, minutes, orders)
    else:
        print("the local runner finds no GPU here")
    with serving() as server:
        bad, lines = sustained(server, minutes, orders)
    return bad + 1, [*lines, "BAD the local runner cannot judge here: asked through pipes instead"]


def first(asked: Asked, order: EvaluationRequest) -> bool:
    """Whether the tests of one solution pass on this worker."""
    account = Account("first")
    return judge(asked, order.model_copy(update={"mode": Mode.TEST}), account) and account.good


def examples(needs: set[str], gpu: str) -> list[EvaluationRequest]:
    """Ranked runs of the example tasks' own solutions, as a worker requests them."""
    return [
        EvaluationRequest(
            request_id=f"{task.name}/{Path(solution.name).stem}",
            task=task,
            source=solution.source,
            mode=Mode.RANKED,
            gpu=gpu,
        )
        for task, solution in mixed(needs)
    ]


def corpus() -> list[EvaluationRequest]:
    """Ranked runs of the corpus's honest GPU kernels of 6 to 350 us, except those that compile."""
    return [
        order_in(each, Mode.RANKED)
        for each in kernels("honest_cuda")
        if each.name.startswith(("torch_", "triton_")) and each.name != "torch_compile"
    ]


def sustained(
    asked: Asked, minutes: float, orders: list[EvaluationRequest]
) -> tuple[int, list[str]]:
    """Ranked runs until the time is over; none starts after it."""
    gpu = orders[0].gpu
    judge(asked, orders[0])
    whole, single = Account("all"), {each.request_id: Account(each.request_id) for each in orders}
    begin, failures = time.monotonic(), 0
    for number, each in enumerate(cycle(orders), 1):
        order = each.model_copy(update={"request_id": f"{number} {each.request_id}"})
        answered = judge(asked, order, whole, single[each.request_id])
        failures = 0 if answered else failures + 1
        if answered:
            print(f"{order.request_id}: {whole.seconds[-1]:.2f} s", flush=True)
        if failures == FAILURES_MOST or time.monotonic() - begin > 60 * minutes:
            break
    spent = time.monotonic() - begin
    passed = whole.verdicts[Verdict.PASSED]
    rate = 60 * passed / spent
    met = rate >= TARGET_A_MINUTE or gpu == CPU
    used = [account for account in single.values() if account.verdicts]
    lines = table([*used, whole], f"{len(orders)} solutions, on {gpu}")
    beside = "no target on a CPU" if gpu == CPU else f"target {TARGET_A_MINUTE:.0f}"
    lines.append(
        f"{'ok' if met else 'BAD':3s} {rate:.1f} evaluations a minute ({beside}): "
        f"{passed} passed in {spent:.0f} s"
    )
    return sum(not account.good for account in used) + (not met), lines


def rates() -> list[str]:
    """The table of what this GPU achieves; makes a CUDA context, so judge nothing after it."""
    found, model = measured_rates(), torch.cuda.get_device_name()
    card = GPU_TYPES.get(type_of_model(model))
    peak = card and card.peak
    rows = (
        ("copy, read and written, GB/s", 1e9, found.bytes_per_s, peak and peak.bytes_per_s),
        ("FP32 without TF32, TFLOP/s", 1e12, found.fp32_per_s, peak and peak.fp32_per_s),
        ("FP16, TFLOP/s", 1e12, found.fp16_per_s, None),
        ("BF16, TFLOP/s", 1e12, found.bf16_per_s, None),
        ("FP8, TFLOP/s", 1e12, found.fp8_per_s, peak and peak.fastest_per_s),
    )
    lines = [f"{model:32s}{'achieved':>10s}{'nominal':>10s}{'part':>8s}"]
    for name, unit, achieved, nominal in rows:
        cells = (f"{rate / unit:10.1f}" if rate else f"{'':10s}" for rate in (achieved, nominal))
        part = f"{achieved / nominal:8.1%}" if achieved and nominal else ""
        lines.append("".join([f"{name:32s}", *cells, part]))
    return [*lines, "the nominal rate beside FP8 is that of the narrowest type of the tensor cores"]


def arguments() -> argparse.Namespace:
    """The command line's arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", action="append", choices=PARTS, default=[], help="default: all")
    parser.add_argument(
        "--device", choices=("cpu", "cuda"), help="default: cuda where there is one"
    )
    parser.add_argument("--runs", type=int, default=5, help="evaluations of each kernel and mode")
    parser.add_argument("--minutes", type=float, default=2.0, help="how long the load lasts")
    parser.add_argument(
        "--mix", choices=("corpus", "examples"), default="corpus", help="what the load is made of"
    )
    parser.add_argument("--inline", action="store_true", help="inline CUDA in the load as well")
    return parser.parse_args()


def main() -> int:
    """Measure the requested parts; return the number of unexpected rows, at most 100."""
    asked = arguments()
    on_gpu = gpus_here() > 0 if asked.device is None else asked.device == "cuda"
    parts = [part for part in PARTS if part in (asked.part or PARTS)]
    needs = ({"triton", "cuda"} if asked.inline else {"triton"}) if on_gpu else set()
    tables, bad = [], 0
    if not on_gpu:
        tables.append(["no GPU is used: these are figures of the CPU"])
    if "modes" in parts:
        wrong, lines = modes(asked.runs, on_gpu=on_gpu)
        bad, tables = bad + wrong, [*tables, lines]
    if "load" in parts:
        of_corpus = on_gpu and asked.mix == "corpus"
        orders = corpus() if of_corpus else examples(needs, "GPU" if on_gpu else CPU)
        wrong, lines = load(asked.minutes, orders)
        bad, tables = bad + wrong, [*tables, lines]
    if "rates" in parts:
        tables.append(rates() if on_gpu else ["rates: there is no GPU to measure"])
    print("\n\n".join("\n".join(lines) for lines in ([], *tables)))
    print(f"\n{bad} rows not as wanted")
    return min(bad, 100)


if __name__ == "__main__":
    raise SystemExit(main())
