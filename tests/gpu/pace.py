"""How many evaluations a minute does one card judge, and where do their seconds go?

Run from the repository root on a machine with a GPU:
    python tests/gpu/pace.py [--runs N] [--part ranked] [--part waited] [--part quick] [--profile]

`ranked`: ranked runs of torch and Triton kernels of 30 to 200 us, in turns, one after another on a
warm harness, so each waits for what the one before left to do. `waited`: the same after a pause, in
which the harness prepares for a request. `trains`: ranked runs of a kernel that is timed by trains.
`quick`: one round in mode benchmark. `cold`: `podium judge` in a new process. `--profile` adds
Python's profile of one ranked judge. Without a GPU all of it runs on the CPU, without goals.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from runners.contract.evaluation import EvaluationRequest, RoundPolicy  # noqa: E402 - likewise
from runners.contract.task import Mode  # noqa: E402 - found by the line above
from tests.exploits.corpus import kernels  # noqa: E402 - found by the line above
from tests.exploits.tasks import order_of  # noqa: E402 - found by the line above
from tests.gpu import asking  # noqa: E402 - found by the line above
from tests.gpu.accounts import Account, judge, table  # noqa: E402 - found by the line above

PARTS = ("ranked", "waited", "trains", "quick", "cold")
MIX = {
    True: ("torch_add", "triton_add", "torch_softmax", "triton_softmax", "torch_matmul"),
    False: ("new_tensor", "out_argument"),
}
"""Kernels of the corpus; on a GPU they take 30 to 200 us."""
SHORT = {True: ("torch_add_small",), False: ()}
GOALS = {
    "ranked": (2.0, 25.0),
    "waited": (2.0, None),
    "trains": (3.5, None),
    "quick": (1.0, 60.0),
    "cold": (4.0, None),
}
"""Median seconds, and evaluations a minute."""
PAUSE_S = 2.0
"""How long the harness is idle before an evaluation of `waited`."""
ONE_ROUND = RoundPolicy(looks=(1,), samples=15)
TASK = ROOT / "tasks" / "examples" / "vectoradd"
SOLUTION = TASK / "solutions" / "correct" / "torch_add.py"
_WRAPPED = """
import cProfile, pstats, sys
from runners.harness import __main__ as program
from runners.harness.sandbox import outer
confine = outer.confine

def confined(*arguments, **options):
    isolation = confine(*arguments, **options)
    from runners.harness import server
    {change}
    return isolation

outer.confine = confined
raise SystemExit(program.main())
"""
PROFILED = _WRAPPED.format(
    change="""
    evaluate = server.evaluate

    def profiled(*arguments, **options):
        profile = cProfile.Profile()
        try:
            return profile.runcall(evaluate, *arguments, **options)
        finally:
            found = pstats.Stats(profile, stream=sys.stderr).strip_dirs()
            found.sort_stats("tottime").print_stats(45)
            found.sort_stats("cumtime").print_stats(75)

    server.evaluate = profiled"""
)
UNWARMED = _WRAPPED.format(change="server.warm.warm_up = lambda: None")
"""A harness that imports and builds nothing for Triton in advance."""


def order(name: str, mode: Mode, rounds: RoundPolicy | None, *, on_gpu: bool) -> EvaluationRequest:
    """One kernel of the corpus in a mode."""
    there = {each.name: each for each in kernels("honest_cuda" if on_gpu else "honest")}
    changes = {"mode": mode, "rounds": rounds, "request_id": name}
    return order_of(there[name]).model_copy(update=changes)


def served(part: str, orders: list[EvaluationRequest], runs: int, *, on_gpu: bool) -> list[str]:
    """Judge the orders in turns on one harness; the first of each does not count."""
    goal_s, a_minute = GOALS[part] if on_gpu else (None, None)
    whole = Account(f"{part}: all", goal_s)
    accounts = {each.request_id: Account(f"{part}: {each.request_id}") for each in orders}
    with asking.serving(gpu=on_gpu) as server:
        for each in orders:
            judge(server, each)
        begin = time.monotonic()
        for _ in range(runs):
            for each in orders:
                time.sleep(PAUSE_S if part == "waited" else 0.0)
                judge(server, each, whole, accounts[each.request_id])
        spent = time.monotonic() - begin
    rate = 60 * whole.verdicts.total() / spent
    met = a_minute is None or rate >= a_minute
    beside = "" if a_minute is None else f" (goal {a_minute:.0f})"
    rated = f"{'ok' if met else 'BAD'} {part}: {rate:.1f} evaluations a minute{beside}"
    return [*table([*accounts.values(), whole], part), rated]


def cold(runs: int, *, on_gpu: bool) -> list[str]:
    """`podium judge` in test mode in new processes; the first one fills the page cache."""
    line = [sys.executable, "-m", "bot", "judge", str(TASK), str(SOLUTION)]
    goal_s, _ = GOALS["cold"] if on_gpu else (None, None)
    lines = []
    for number in range(runs + 1):
        begin = time.monotonic()
        marks: list[str] = []
        with subprocess.Popen(
            line, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as it:
            assert it.stdout is not None
            marks += [
                f"{text.decode().strip()[11:]} {time.monotonic() - begin:.2f}"
                for text in it.stdout
                if b"vectoradd: " in text
            ]
        spent = time.monotonic() - begin
        good = it.returncode == 0 and (goal_s is None or spent <= goal_s or number == 0)
        first = " (first)" if number == 0 else ""
        lines.append(
            f"{'ok' if good else 'BAD':3s} cold judge{first} {spent:.2f} s: {', '.join(marks)}"
        )
    return lines


def harnesses(*, on_gpu: bool) -> list[str]:
    """How long a new harness takes, with and without what it prepares for Triton."""
    lines = []
    for name, program in {"as it is": None, "unwarmed": UNWARMED}.items():
        with wrapped(program) if program else nullcontext():
            begin = time.monotonic()
            with asking.serving(gpu=on_gpu) as server:
                marks = [f"ready {time.monotonic() - begin:.2f}"]
                for each in MIX[on_gpu][:2]:
                    _, seconds = server.ask(order(each, Mode.TEST, None, on_gpu=on_gpu))
                    marks.append(f"{each} {seconds:.2f}")
                begin = time.monotonic()
            marks.append(f"ended {time.monotonic() - begin:.2f}")
        lines.append(f"    new harness {name}: {', '.join(marks)}")
    return lines


@contextmanager
def wrapped(program: str) -> Iterator[None]:
    """Make harnesses run this program."""
    before = asking.COMMAND, asking.ON_CPU
    on_cpu = (sys.executable, "-c", program, "--serve")
    asking.COMMAND, asking.ON_CPU = (*on_cpu, "--gpu-index", "0"), on_cpu
    try:
        yield
    finally:
        asking.COMMAND, asking.ON_CPU = before


def profile(name: str, rounds: Mapping[Mode, RoundPolicy | None], *, on_gpu: bool) -> None:
    """Print the profile of a judge after a warm-up, in each of the modes."""
    with wrapped(PROFILED), asking.serving(gpu=on_gpu) as server:
        for mode, policy in ((Mode.TEST, None), *rounds.items()):
            asked = order(name, mode, policy, on_gpu=on_gpu)
            found, seconds = server.ask(asked)
            print(f"profile of {name} {mode}: {seconds:.2f} s {found.durations_s}", flush=True)


def measured(part: str, runs: int, *, on_gpu: bool) -> list[str]:
    """The rows of one part."""
    if part == "cold":
        return [*cold(2, on_gpu=on_gpu), *harnesses(on_gpu=on_gpu)]
    names = (SHORT if part == "trains" else MIX)[on_gpu]
    mode, rounds = (Mode.BENCHMARK, ONE_ROUND) if part == "quick" else (Mode.RANKED, None)
    orders = [order(name, mode, rounds, on_gpu=on_gpu) for name in names]
    return served(part, orders, runs, on_gpu=on_gpu) if orders else []


def main() -> int:
    """Measure the requested parts; return the number of unexpected rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", action="append", choices=PARTS, default=[], help="default: all")
    parser.add_argument("--runs", type=int, default=4, help="evaluations of each kernel")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--device", choices=("cpu", "cuda"))
    asked = parser.parse_args()
    on_gpu = asking.gpus_here() > 0 if asked.device is None else asked.device == "cuda"
    lines: list[str] = []
    for part in asked.part or PARTS:
        found = measured(part, asked.runs, on_gpu=on_gpu)
        print(*found, sep="\n", flush=True)  # now as well, in case a later part is cut off
        lines += found
    if asked.profile:
        modes = {Mode.RANKED: None, Mode.BENCHMARK: ONE_ROUND}
        profile(MIX[on_gpu][0], modes, on_gpu=on_gpu)
    print("", *lines, sep="\n")
    return sum(line.startswith("BAD") for line in lines)


if __name__ == "__main__":
    raise SystemExit(main())
