"""Does a kernel get the same score each time on this GPU, and the one that others measure?

Run from the repository root on a machine with a GPU:
    python tests/gpu/spread.py [--runs N] [--minutes M]

Ranked runs of each kernel, alternating (`--runs`); then the median of `triton.testing.do_bench` on
the same inputs, in several processes: unchanged, with pauses, and with the judge's work between its
calls. The last columns show how far the scores are apart, how far their mean and that of the
judge's own values are from those medians, how many of the intervals contain the mean of all runs,
and how many rounds were confirmed and refused.
"""

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from runners.contract.evaluation import EvaluationRequest, Measurement, RoundPolicy  # noqa: E402
from runners.contract.task import Mode, TaskDefinition, Workload  # noqa: E402
from runners.harness.gpu.health import first_gpu  # noqa: E402
from tests.gpu.asking import Server, serving  # noqa: E402

REFERENCE = """
import torch
def generate_input(n, seed):
    g = torch.Generator(device="cuda").manual_seed(seed)
    make = lambda: torch.randn(n, n, device="cuda", dtype=torch.{dtype}, generator=g)
    return tuple(make() for _ in range({inputs}))
def ref_kernel(data):
    return {formula}
def check_implementation(data, output):
    right = torch.allclose(output.float(), ref_kernel(data).float(), rtol=2e-2, atol={atol})
    return right, "" if right else "mismatch"
"""
PROCESSES = 5
"""How many processes run `do_bench` for each kernel."""
CADENCE_S = 0.008
"""From the end of one call to the next one, as a round of the matrix product has it."""
HEAD_START = 1_000_000
"""Cycles for which the GPU waits after that, so that the launch of what is timed lies before it."""
SOURCE = "import torch\ndef custom_kernel(data):\n    return {formula}\n"


@dataclass
class Kernel:
    """One honest kernel and its measurements."""

    name: str
    formula: str
    n: int
    dtype: str = "float16"
    inputs: int = 2
    atol: float = 1e-2
    found: list[Measurement] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    @property
    def reference(self) -> str:
        return REFERENCE.format(
            dtype=self.dtype, inputs=self.inputs, formula=self.formula, atol=self.atol
        )


KERNELS = (
    Kernel("add fp16 4096", "data[0] + data[1]", 4096),
    Kernel("softmax fp16 4096", "torch.softmax(data[0], -1)", 4096, inputs=1),
    Kernel("matmul bf16 4096", "data[0] @ data[1]", 4096, "bfloat16", atol=1.0),
    Kernel("add fp16 1024", "data[0] + data[1]", 1024),
    Kernel("sort fp32 4096", "torch.sort(data[0], -1).values", 4096, "float32", 1),
    Kernel("matmul fp32 5120", "data[0] @ data[1]", 5120, "float32", atol=1.0),
)


def request(kernel: Kernel, policy: RoundPolicy | None) -> EvaluationRequest:
    task = TaskDefinition(
        name="spread",
        lang="py",
        description="spread",
        files={"reference.py": kernel.reference},
        tests=(Workload(args={"n": 64, "seed": 1}),),
        benchmarks=(Workload(args={"n": kernel.n, "seed": 2}),),
    )
    source = SOURCE.format(formula=kernel.formula)
    return EvaluationRequest(
        request_id=kernel.name, task=task, source=source, mode=Mode.RANKED, gpu="GPU", rounds=policy
    )


@dataclass(frozen=True)
class Bench:
    """A result of `do_bench`: a median in nanoseconds, and the clock of the processors."""

    ns: float
    mhz: float

    def compared(self, mean: float, own: float) -> str:
        """The result, and how far the published time and the judge's own value are from it."""
        claimed, ranked = mean / self.ns - 1, own / self.ns - 1
        return f"{self.ns / 1e3:9.2f} us {claimed:+6.2%} {ranked:+6.2%} at {self.mhz:.0f} MHz"


class JudgesWork:
    """Does between two calls of `do_bench` what the judge does between two timed calls.

    It makes a fresh input and checks an answer to it, and takes as long. `do_bench` calls it by
    resetting its gradient (`grad_to_none`), which it does outside of what it times.
    """

    def __init__(self, space: Mapping[str, Any], n: int) -> None:
        self.space = space
        self.n = n
        self.seed = 1

    @property
    def grad(self) -> None:
        return None

    @grad.setter
    def grad(self, _: None) -> None:
        self.seed += 1
        data = self.space["generate_input"](self.n, self.seed)
        self.space["check_implementation"](data, self.space["ref_kernel"](data))
        time.sleep(CADENCE_S)
        self.space["torch"].cuda._sleep(HEAD_START)


def bench(kernel: Kernel) -> tuple[Bench, Bench, Bench]:
    """Run do_bench on the kernel: as it is, with a pause after every few calls, as the judge does.

    A hundred calls in a row lower the clocks of a hot GPU.
    """
    import torch  # noqa: PLC0415 - the judge must not find a context made before it
    import triton.testing  # noqa: PLC0415 - likewise

    space: dict[str, Any] = {}
    exec(kernel.reference, space)  # noqa: S102 - our own text
    data = space["generate_input"](kernel.n, 1)
    run = lambda: space["ref_kernel"](data)  # noqa: E731
    torch.cuda.synchronize()

    def timed(times: int, pause_s: float, **named: object) -> Bench:
        found = []
        with clocks() as seen:
            for _ in range(times):
                time.sleep(pause_s)
                found.append(triton.testing.do_bench(run, return_mode="median", **named) * 1e6)
        return Bench(median(found), median(seen or [0.0]))

    steady, paused = timed(3, 0.0), timed(30, 0.05, warmup=1, rep=1)
    forty = 40 * paused.ns / 1e6
    like_judge = {"warmup": forty / 8, "rep": forty, "grad_to_none": [JudgesWork(space, kernel.n)]}
    return steady, paused, timed(5, 0.3, **like_judge)


def benched(kernel: Kernel) -> list[Bench]:
    """The means of `bench` over new processes, between which short kernels differ by percents."""
    found: list[list[Bench]] = []
    for _ in range(PROCESSES):
        command = [sys.executable, __file__, "--bench", kernel.name]
        said = subprocess.run(command, capture_output=True, check=True).stdout
        found.append([Bench(*each) for each in json.loads(said.splitlines()[-1])])
    kinds = zip(*found, strict=True)
    return [Bench(fmean(e.ns for e in kind), fmean(e.mhz for e in kind)) for kind in kinds]


@contextmanager
def clocks() -> Iterator[list[float]]:
    """The clock of the GPU's processors in MHz, read every few milliseconds while it works."""
    seen: list[float] = []
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.005):
            found = first_gpu().read()
            if found is not None:
                seen.append(found.clocks.get("sm_mhz", 0.0))

    watching = threading.Thread(target=look)
    watching.start()
    try:
        yield seen
    finally:
        over.set()
        watching.join()


def row(kernel: Kernel) -> str:
    if not kernel.found:
        return f"{kernel.name:18s} never passed: {kernel.refused[:1]}"
    values = [each.time_ns for each in kernel.found]
    mean = fmean(values)
    own = fmean(each.bound_ns for each in kernel.found)
    steady, paused, like_judge = (each.compared(mean, own) for each in benched(kernel))
    held = sum(abs(each.time_ns - mean) <= each.half_width_ns for each in kernel.found)
    rounds = sum(each.rounds for each in kernel.found)
    over = [each.bound_ns - each.time_ns for each in kernel.found]
    width = fmean(each.half_width_ns / each.time_ns for each in kernel.found)
    fine = [each.resolution_ns / 1e3 for each in kernel.found]
    return (
        f"{kernel.name:18s} {mean / 1e3:9.2f} us, judge {own / 1e3:.2f}  "
        f"spread {max(values) / min(values) - 1:6.2%}  "
        f"do_bench {steady}, paused {paused}, with the judge's work {like_judge}  "
        "interval holds mean "
        f"{held}/{len(values)}  half-width {width:.2%}  "
        f"bound-value {min(over) / 1e3:+.2f}..{max(over) / 1e3:+.2f} us  "
        f"resolution {min(fine):.2f}-{max(fine):.2f} us  {rounds} rounds  "
        f"refused {len(kernel.refused)}  {fmean(kernel.seconds):.2f} s a run"
    )


def turn(server: Server, number: int, policy: RoundPolicy | None) -> None:
    """Judge each kernel once in mode ranked, and print each result at once."""
    for kernel in KERNELS:
        found, seconds = server.ask(request(kernel, policy))
        kernel.seconds.append(seconds)
        timed = [case.measurement for case in found.cases if case.measurement]
        if found.verdict == "passed":
            kernel.found += timed
            told = f"{timed[0].time_ns / 1e3:.3f} us +- {timed[0].half_width_ns / 1e3:.3f}"
        else:
            told = f"{found.verdict}: {found.message} {found.log[-300:]}"
            kernel.refused.append(told)
        print(number, kernel.name, told, f"{seconds:.2f} s", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=0, help="0: as a ranked run")
    parser.add_argument("--minutes", type=float, default=60, help="no turn begins after so many")
    parser.add_argument("--bench", help="print only what do_bench says of this kernel")
    arguments = parser.parse_args()
    if arguments.bench:
        kernel = next(each for each in KERNELS if each.name == arguments.bench)
        print(json.dumps([(each.ns, each.mhz) for each in bench(kernel)]))
        return 0
    policy = RoundPolicy(looks=(arguments.rounds,)) if arguments.rounds else None
    until = time.monotonic() + 60 * arguments.minutes
    with serving() as server:
        for number in range(arguments.runs):
            if time.monotonic() < until:
                turn(server, number, policy)
    for kernel in KERNELS:
        print(row(kernel))
    rounds = sum(each.rounds for kernel in KERNELS for each in kernel.found)
    refused = sum(len(kernel.refused) for kernel in KERNELS)
    print(f"{rounds} rounds of honest kernels confirmed, {refused} runs refused")
    return refused


if __name__ == "__main__":
    raise SystemExit(main())
