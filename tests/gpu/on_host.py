"""Do kernels with inputs or answers on the host get the time that a plain program sees? A table.

Run from the repository root on a machine with a GPU:
    python tests/gpu/on_host.py [--runs N]

Beside each ranked time stands the median of the same kernel in a plain program: new inputs, none of
them in a cache of the GPU or the host, and the wall clock from there to a synchronised answer.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402 - found by the line above

from runners.contract.evaluation import RoundPolicy  # noqa: E402 - found by the line above
from runners.harness.values import clone, leaves  # noqa: E402 - found by the line above
from tests.exploits.corpus import Kernel, kernels  # noqa: E402 - found by the line above
from tests.exploits.tasks import GPU_TASKS, order_of  # noqa: E402 - found by the line above
from tests.gpu.asking import Server, serving  # noqa: E402 - found by the line above

NAMES = (
    "host_input", "host_input_computed", "host_answer", "host_answer_pinned", "number",
    "all_leaves",
)  # fmt: skip
WITHIN = {"host_input": 0.05}
"""How far a time may be from the plain program's, where that is asked for."""
CALLS = 60
ROW = "{:4s} {:20s} {:14s} {:>9s} {:>9s} {:>8s} {:>9s} {:>9s} {:>9s}  {}"


def plain_us(kernel: Kernel) -> float:
    """The median in microseconds of the kernel's calls in this process."""
    task = GPU_TASKS[kernel.task]
    code: dict[str, Any] = {}
    exec(task.text, code)  # noqa: S102 - the corpus's own
    exec(kernel.source, code)  # noqa: S102 - the corpus's own
    flushes = [torch.zeros(512 << 20, dtype=torch.uint8, device=each) for each in ("cpu", "cuda")]
    data = clone(code["generate_input"](task.size, 0))
    times = []
    for seed in range(CALLS):
        fresh = code["generate_input"](task.size, seed)
        for place, tensor in zip(leaves(data), leaves(fresh), strict=True):
            place.copy_(tensor)
        for flush in flushes:
            flush.add_(1)
        torch.cuda.synchronize()
        begin = time.perf_counter()
        code["custom_kernel"](data)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return median(times[10:]) * 1e6


def plain_elsewhere() -> dict[str, float]:
    """The same for each kernel, in a process that has left the GPU when the harness starts."""
    command = (sys.executable, __file__, "--plain")
    said = subprocess.run(command, capture_output=True, check=True).stdout
    found: dict[str, float] = json.loads(said.splitlines()[-1])
    return found


def row(server: Server, kernel: Kernel, plain: float) -> tuple[bool, str]:
    """Judge a kernel: whether that is as wanted, and its line of the table."""
    evaluation, _ = server.ask(order_of(kernel, RoundPolicy()))
    found = [case.measurement for case in evaluation.cases if case.measurement]
    if not found:
        told = ROW.format(
            "BAD", kernel.name, evaluation.verdict, f"{plain:.1f}", *[""] * 5, evaluation.message
        )
        return False, told
    m = found[-1]
    off = m.time_ns / 1e3 / plain - 1
    good = evaluation.verdict == "passed" and abs(off) <= WITHIN.get(kernel.name, 10)
    numbers = (m.time_ns, m.half_width_ns, m.bound_ns, m.resolution_ns)
    value, *others = (f"{each / 1e3:.1f}" for each in numbers)
    more = f"{m.discarded} discarded {evaluation.message}"
    head = ("ok" if good else "BAD", kernel.name, evaluation.verdict, f"{plain:.1f}")
    return good, ROW.format(*head, value, f"{off:+.1%}", *others, more)


def main() -> int:
    """Judge each kernel; gives how many were refused or are too far off."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--plain", action="store_true", help="print the plain times alone, as JSON")
    asked = parser.parse_args()
    chosen = {each.name: each for each in kernels("honest_cuda") if each.name in NAMES}
    if asked.plain:
        print(json.dumps({name: plain_us(kernel) for name, kernel in chosen.items()}))
        return 0
    plain = plain_elsewhere()
    heads = ("kernel", "verdict", "plain us", "value", "off", "+-", "bound", "resolut.", "")
    print(ROW.format("", *heads))
    bad = 0
    with serving() as server:
        for name in NAMES * asked.runs:
            good, told = row(server, chosen[name], plain[name])
            bad += not good
            print(told, flush=True)
    return bad


if __name__ == "__main__":
    raise SystemExit(main())
