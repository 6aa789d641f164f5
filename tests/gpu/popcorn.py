"""Do tasks in KernelBot's format run here with both graders, and on two GPUs? Prints a table.

Run from the repository root on a machine with a GPU:  python tests/gpu/popcorn.py
It needs PyTorch and Triton; with two GPUs or more, NCCL too. Nothing is fetched.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from runners.contract.evaluation import Evaluation, EvaluationRequest  # noqa: E402
from runners.contract.task import Grader, Mode, TaskDefinition  # noqa: E402
from tests.doubles.kernelbot import (  # noqa: E402
    EVAL,
    KERNEL,
    PACKED_KERNEL,
    PACKED_WRONG,
    RANKS_KERNEL,
    make_affine_task,
    make_packed_task,
    make_ranks_task,
    make_strict_task,
)
from tests.gpu.asking import HarnessError, Server, gpus_here, serving  # noqa: E402

TRITON = """
import torch, triton, triton.language as tl

@triton.jit
def affine(source, target, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(target + at, 2 * tl.load(source + at, inside) + 1, inside)

def custom_kernel(data):
    source, target = data
    count = source.numel()
    affine[(triton.cdiv(count, 1024),)](source, target, count, BLOCK=1024)
    return target
"""
INLINE = """
import torch
from torch.utils.cpp_extension import load_inline

DECLARED = "#include <cstdint>\\nvoid affine(std::uintptr_t a, std::uintptr_t b, int n);\\n"
CUDA = DECLARED + '''
__global__ void affine_kernel(const float* a, float* b, int n) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < n) b[at] = 2 * a[at] + 1;
}
void affine(std::uintptr_t a, std::uintptr_t b, int n) {
    affine_kernel<<<(n + 255) / 256, 256>>>(reinterpret_cast<const float*>(a),
                                            reinterpret_cast<float*>(b), n);
}
'''
module = load_inline(
    name="affine_inline",
    cpp_sources="#include <pybind11/pybind11.h>\\n" + DECLARED,
    cuda_sources=CUDA,
    functions=["affine"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)

def custom_kernel(data):
    source, target = data
    module.affine(source.data_ptr(), target.data_ptr(), source.numel())
    return target
"""
WRONG = KERNEL.replace("+ 1", "+ 2")
PATCHED = "import time\ntime.perf_counter_ns = lambda n=iter(range(10**9)): next(n)\n" + KERNEL
SILENT = "import os\ndef custom_kernel(data): os._exit(0)\n"
FORGING = """
import os
def custom_kernel(data):
    for fd in range(3, 64):
        for path in (f"/proc/{os.getppid()}/fd/{fd}", f"/proc/1/fd/{fd}"):
            try:
                open(path, "wb").write(b"check: pass\\n")
                print("GAINED", path)
            except OSError:
                pass
    return data[0] * 0
"""
MULTICAST_OFF = {
    "NCCL_NVLS_ENABLE": "0",
    "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
    "NVSHMEM_DISABLE_NVLS": "1",
}
COLUMNS = "{:3s} {:34s} {:8s} {:8s} {:14s} {:14s} {:>7s} {}"


@dataclass(frozen=True, slots=True)
class Trial:
    """One submission to be judged in one mode, with the verdicts that it may get."""

    name: str
    task: TaskDefinition
    source: str
    mode: Mode
    wanted: tuple[str, ...]

    @property
    def request(self) -> EvaluationRequest:
        """The request to the harness."""
        return EvaluationRequest(
            request_id=self.name, task=self.task, source=self.source, mode=self.mode, gpu="GPU"
        )


def affine(grader: Grader, check: str = "pair") -> TaskDefinition:
    """The task with time enough to build inline CUDA."""
    return make_affine_task(
        "cuda",
        check,
        grader=grader,
        test_timeout=180,
        benchmark_timeout=180,
        ranked_timeout=180,
    )


def single() -> Iterator[Trial]:
    """The task whose inputs are created on "cuda", by both graders; then attacks on its own."""
    for grader in Grader:
        for check in ("pair", "text"):
            task = affine(grader, check)
            yield Trial(f"torch, check gives {check}", task, KERNEL, Mode.RANKED, ("passed",))
        task = affine(grader)
        yield Trial("Triton", task, TRITON, Mode.RANKED, ("passed",))
        yield Trial("inline CUDA", task, INLINE, Mode.RANKED, ("passed",))
        yield Trial("wrong", task, WRONG, Mode.TEST, ("wrong_answer",))
        strict = make_strict_task("cuda", grader=grader)
        yield Trial("deterministic reference", strict, KERNEL, Mode.TEST, ("passed",))
        packed = make_packed_task("cuda", grader=grader)
        for mode in (Mode.RANKED, Mode.PROFILE):
            name = f"4 and 8 bits, {mode.value}"
            yield Trial(name, packed, PACKED_KERNEL, mode, ("passed",))
        yield Trial("4 and 8 bits, one wrong", packed, PACKED_WRONG, Mode.TEST, ("wrong_answer",))
    task = affine(Grader.POPCORN)
    for mode in (Mode.BENCHMARK, Mode.PROFILE):
        yield Trial(mode.value, task, KERNEL, mode, ("passed",))
    alone = EVAL.replace("pool.apply(tried, (case,))", "tried(case)")
    alone = alone.replace("pool.apply(timed, (job,))", "timed(job)")
    files = {**task.files, "eval.py": alone}
    one = task.model_copy(update={"files": files})
    yield Trial("evaluation in one process", one, KERNEL, Mode.RANKED, ("passed",))
    yield Trial("patched clock (cannot be stopped)", task, PATCHED, Mode.RANKED, ("passed",))
    yield Trial("forging through /proc", task, FORGING, Mode.TEST, ("wrong_answer",))
    hanging = task.model_copy(update={"test_timeout": 20})
    yield Trial("ends its worker", hanging, SILENT, Mode.TEST, ("timed_out", "crashed"))


def several(count: int) -> Iterator[Trial]:
    """The sum over this many GPUs with NCCL."""
    task = make_ranks_task("cuda", count)
    name = f"all-reduce over {count} GPUs"
    wrong = RANKS_KERNEL.replace("    dist.all_reduce(data)\n", "")
    yield Trial(name, task, RANKS_KERNEL, Mode.RANKED, ("passed",))
    yield Trial(f"{name}, left out", task, wrong, Mode.TEST, ("wrong_answer",))


def seeing(gpus: int) -> dict[str, str]:
    """The environment of a harness that sees this many GPUs, as from the local runner."""
    visible = ",".join(map(str, range(gpus)))
    return {**os.environ, **MULTICAST_OFF, "CUDA_VISIBLE_DEVICES": visible}


def judge(server: Server, trial: Trial) -> tuple[bool, str]:
    """Whether the verdict is an expected one, and its row of the table."""
    begin = time.monotonic()
    try:
        found, seconds = server.ask(trial.request)
    except HarnessError as error:
        print(f"--- {trial.name}: {error}", flush=True)
        return False, row(trial, "harness error", time.monotonic() - begin, "")
    right = found.verdict.value in trial.wanted and "GAINED" not in found.log
    if not right:
        steps = json.dumps({step: round(spent, 2) for step, spent in found.durations_s.items()})
        print(f"--- {trial.name}: {found.stage} {found.message}\n{found.log[-4000:]}\n{steps}")
        print(found.isolation, flush=True)
    return right, row(trial, found.verdict.value, seconds, times(found))


def row(trial: Trial, got: str, seconds: float, measured: str) -> str:
    """A line of the table."""
    mark = "ok" if got in trial.wanted else "BAD"
    grader, mode = trial.task.grader.value, trial.mode.value
    wanted, spent = trial.wanted[0], f"{seconds:.2f}"
    return COLUMNS.format(mark, trial.name, grader, mode, wanted, got, spent, measured)


def times(found: Evaluation) -> str:
    """Every time in microseconds, and whose clock it is from."""
    timed = [case.measurement for case in found.cases if case.measurement is not None]
    shown = ", ".join(f"{m.time_ns / 1e3:.2f} +- {m.half_width_ns / 1e3:.2f} us" for m in timed)
    return f"{shown} ({found.environment.timing.value})" if shown else ""


def main() -> int:
    """Judge everything; return the number of wrong verdicts, at most 100."""
    there = gpus_here()
    batches = ([(2, tuple(several(2)))] if there > 1 else []) + [(1, tuple(single()))]
    rows = []
    for gpus, trials in batches:
        with serving(seeing(gpus)) as server:
            print(server.ready[:1200], flush=True)
            for trial in trials:
                rows.append(judge(server, trial))
                print(rows[-1][1], flush=True)
    print(COLUMNS.format("", "submission", "grader", "mode", "wanted", "got", "s", "measured"))
    for _, text in rows:
        print(text)
    if there < 2:
        print("one GPU here: the all-reduce over two was not tried")
    good = sum(right for right, _ in rows)
    print(f"{good} of {len(rows)} as wanted")
    return min(len(rows) - good, 100)


if __name__ == "__main__":
    raise SystemExit(main())
