"""Are two kernels that are one or two percent apart put in the right order, and how often?

Run from the repository root on a machine with a GPU:
    python tests/gpu/finals.py [--finals N] [--minutes M] [--case NAME ...]
    python tests/gpu/finals.py --attacks

Each final is one ranked run with a rival, as the judge makes it for a place that is confirmed. The
faster kernel is the submission in every second one. First the judge itself times the kernel with
two lengths of its loop, to find the lengths for the wanted times. The cases run in turns until all
finals are made or the minutes are over.

`--attacks` compares honest kernels with rivals that leave memory, work, heat or persistent cache
lines behind: the honest ones must pass. `--device cpu` tries the script without a GPU, where only a
quiet machine shows such small differences.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, stdev

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from runners.contract.comparison import Ratio  # noqa: E402
from runners.contract.evaluation import CPU, EvaluationRequest, RoundPolicy  # noqa: E402
from runners.contract.task import Mode, TaskDefinition, Workload  # noqa: E402
from runners.contract.verdict import Verdict  # noqa: E402
from tests.exploits.corpus import kernels  # noqa: E402
from tests.exploits.tasks import baseline_of, order_of  # noqa: E402
from tests.gpu.asking import HarnessError, Server, serving  # noqa: E402

REFERENCE = """
import torch
def generate_input(n, seed):
    g = torch.Generator(device="{device}").manual_seed(seed)
    make = lambda: torch.randn(n, n, device="{device}", dtype=torch.float16, generator=g)
    return make(), make()
def ref_kernel(data):
    return data[0] + data[1]
def check_implementation(data, output):
    right = torch.allclose(output.float(), ref_kernel(data).float(), rtol=1e-2, atol=1e-2)
    return right, "" if right else "mismatch"
"""
ON_GPU = """
import torch
import triton
import triton.language as tl

@triton.jit
def add_slowly(x, y, out, n, turns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a = tl.load(x + at, mask=inside).to(tl.float32)
    b = tl.load(y + at, mask=inside).to(tl.float32)
    z = a
    for _ in range(turns):
        z = z * 0.999 + 0.001
    tl.store(out + at, (a + b + z * 0.0).to(tl.float16), mask=inside)

def custom_kernel(data):
    x, y = data
    out = torch.empty_like(x)
    n = x.numel()
    add_slowly[(triton.cdiv(n, 1024),)](x, y, out, n, {turns}, BLOCK=1024)
    return out
"""
ON_CPU = """
import torch
def custom_kernel(data):
    for turn in range({turns}):
        pass
    return data[0] + data[1]
"""
LENGTHS = {"cuda": (1_000, 4_000), "cpu": (100_000, 400_000)}
"""Two lengths of the loop, from whose times the time of one turn is computed."""
BESIDE = RoundPolicy(looks=(5,), samples=15)
"""The rounds of a run without a rival."""
DEVICE_NAMES = {"cuda": "GPU", "cpu": CPU}


@dataclass
class Case:
    """Two kernels that are so far apart, and their finals."""

    name: str
    n: int
    time_us: float
    apart: float
    turns: tuple[int, int] = (0, 0)
    """The loops of the faster and of the slower kernel."""
    ratios: list[Ratio] = field(default_factory=list)
    """Time of the faster kernel / time of the slower one."""
    seconds: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    @property
    def right(self) -> int:
        """How many finals put them in the right order."""
        return sum(not each.is_tie and each.ratio < 1 for each in self.ratios)

    @property
    def ties(self) -> int:
        """How many finals did not tell them apart."""
        return sum(each.is_tie for each in self.ratios)

    @property
    def wrong(self) -> int:
        """How many finals put them in the wrong order."""
        return len(self.ratios) - self.right - self.ties


CASES = {
    "cuda": (
        Case("6 us, 2 %", 512, 6.0, 0.02),
        Case("15 us, 1 %", 1024, 15.0, 0.01),
        Case("30 us, 1 %", 1024, 30.0, 0.01),
        Case("100 us, 1 %", 1024, 100.0, 0.01),
        Case("400 us, 1 %", 1024, 400.0, 0.01),
        Case("30 us, equal", 1024, 30.0, 0.0),
    ),
    "cpu": (Case("8 ms, 30 %", 64, 8_000.0, 0.3), Case("8 ms, equal", 64, 8_000.0, 0.0)),
}


@dataclass
class Finals:
    """Asks one harness for finals."""

    server: Server
    device: str

    def request(self, case: Case, turns: int, rival: int | None = None) -> EvaluationRequest:
        """The request to time a kernel, or to compare it with a rival."""
        source = ON_GPU if self.device == "cuda" else ON_CPU
        task = TaskDefinition(
            name="finals",
            lang="py",
            description="finals",
            files={"reference.py": REFERENCE.format(device=self.device)},
            tests=(Workload(args={"n": 64, "seed": 1}),),
            benchmarks=(Workload(args={"n": case.n, "seed": 2}),),
        )
        return EvaluationRequest(
            request_id=case.name,
            task=task,
            source=source.format(turns=turns),
            mode=Mode.RANKED,
            gpu=DEVICE_NAMES[self.device],
            rounds=BESIDE if rival is None else None,
            rival=None if rival is None else source.format(turns=rival),
        )

    def own_ns(self, case: Case, turns: int) -> float:
        """The time of a kernel by the judge's own clock."""
        evaluation, _ = self.server.ask(self.request(case, turns))
        measured = [each.measurement for each in evaluation.cases if each.measurement]
        if not measured:
            raise HarnessError(f"{case.name}: {evaluation.verdict}: {evaluation.message}")
        return measured[0].bound_ns

    def prepare(self, case: Case) -> None:
        """Find the lengths of both loops."""
        few, many = LENGTHS[self.device]
        short, long = self.own_ns(case, few), self.own_ns(case, many)
        a_turn = (long - short) / (many - few)
        first = max(0, round(few + (case.time_us * 1e3 - short) / a_turn))
        faster_ns = max(short + (first - few) * a_turn, 1.0)
        case.turns = (first, first + round(case.apart * faster_ns / a_turn))
        print(
            f"{case.name:14} {few} turns {short / 1e3:.2f} us, {many} turns {long / 1e3:.2f} us: "
            f"{case.turns[0]} and {case.turns[1]} turns are compared",
            flush=True,
        )

    def final(self, case: Case, *, slower_first: bool) -> None:
        """Make one final; the slower kernel is the submission or the rival."""
        faster, slower = case.turns
        ours, theirs = (slower, faster) if slower_first else (faster, slower)
        evaluation, seconds = self.server.ask(self.request(case, ours, theirs))
        case.seconds.append(seconds)
        compared = evaluation.comparison
        if compared is None or not compared.benchmarks:
            rival = "" if compared is None else f"; the rival: {compared.rival_verdict}"
            detail = "" if compared is None else compared.rival_detail
            case.failed.append(f"{evaluation.verdict}: {evaluation.message}{rival} {detail}")
            return
        (found,) = compared.benchmarks
        if slower_first:
            inverse = {"ratio": 1 / found.ratio, "half_width": found.half_width / found.ratio**2}
            found = found.model_copy(update=inverse)
        case.ratios.append(found)
        print(
            f"{case.name:14} {found.ratio:.4f} +- {found.half_width:.4f} {found.rounds:3} pairs "
            f"{seconds:6.1f} s",
            flush=True,
        )


ATTACKS = (
    "leftover_gpu_memory",
    "persisting_cache",
    "burning_from_import",
    "kernel_left_running",
    "busy_child",
    "copies_left_running",
    "power_limit",
    "trains_liar",
    "indices_beyond_later",
)
"""Hostile kernels of the corpus that could change the time or the answer of the other one."""


def attacks(server: Server) -> int:
    """Compare honest kernels with hostile rivals; return how many honest ones did not pass."""
    corpus = {each.name: each for each in kernels("hostile_cuda", "honest_cuda")}
    failed = 0
    for name in ATTACKS:
        honest = order_of(corpus[baseline_of(corpus[name])])
        rival = {"rival": corpus[name].source, "mode": Mode.RANKED}
        try:
            found, seconds = server.ask(honest.model_copy(update=rival))
        except HarnessError as error:
            print(f"{name:20} no evaluation: {error}", flush=True)
            failed += 1
            continue
        failed += found.verdict is not Verdict.PASSED
        compared = found.comparison
        ratios = () if compared is None else compared.benchmarks
        told = ", ".join(f"{each.ratio:.3f} +- {each.half_width:.3f}" for each in ratios)
        rivals = "not compared" if compared is None else compared.rival_verdict
        print(f"{name:20} {found.verdict:8} rival {rivals} {told} {seconds:.1f} s", flush=True)
    return failed


def table(cases: Sequence[Case]) -> None:
    """Print in how many finals the order was right."""
    print(
        f"{'case':14} {'right':>5} {'tie':>4} {'wrong':>5} {'of':>3} {'mean ratio':>10} {'sd':>7} "
        f"{'half-width':>10} {'pairs':>5} {'seconds':>7}"
    )
    for case in cases:
        ratios = [each.ratio for each in case.ratios]
        if ratios:
            spread = stdev(ratios) if ratios[1:] else 0.0
            print(
                f"{case.name:14} {case.right:5} {case.ties:4} {case.wrong:5} {len(ratios):3} "
                f"{fmean(ratios):10.4f} {spread:7.2%} "
                f"{fmean(each.half_width for each in case.ratios):10.2%} "
                f"{fmean(each.rounds for each in case.ratios):5.1f} {fmean(case.seconds):7.1f}"
            )
        for words in case.failed:
            print(f"{case.name:14} {words}")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--finals", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=7.0)
    parser.add_argument("--case", action="append", default=[], help="the beginning of its name")
    parser.add_argument("--attacks", action="store_true")
    parser.add_argument("--device", choices=tuple(CASES), default="cuda")
    asked = parser.parse_args()
    end = time.monotonic() + 60 * asked.minutes
    names = tuple(asked.case) or ("",)
    cases = [each for each in CASES[asked.device] if each.name.startswith(names)]
    slowest = 0.0
    with serving(gpu=asked.device == "cuda") as server:
        if asked.attacks:
            return attacks(server)
        finals = Finals(server, asked.device)
        for case in cases:
            finals.prepare(case)
        for number in range(asked.finals):
            for case in cases:
                if time.monotonic() + slowest > end:
                    continue
                try:
                    finals.final(case, slower_first=number % 2 == 1)
                except HarnessError as error:
                    case.failed.append(f"no evaluation: {error}")
                slowest = max([0.0, *case.seconds[-1:], slowest])
    table(cases)
    return sum(len(case.failed) + (case.apart > 0 and case.wrong > 0) for case in cases)


if __name__ == "__main__":
    sys.exit(main())
