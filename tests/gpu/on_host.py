"""Do kernels with inputs or answers on the host get a plain program's time? Prints a table.

Run from the repository root on a machine with a GPU:
    python tests/gpu/on_host.py [--runs N]

Next to each ranked time is the median of the same kernel in a plain program: new inputs, none
of them in a cache of the GPU or the host, and the wall time until the answer is synchronized.
The program runs before and after the judge, because the speed of a shared host changes between
processes. "off" is the distance to the range of those readings.
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
from runners.harness.protocol.values import clone, leaves  # noqa: E402 - found by the line above
from tests.exploits.corpus import Kernel, kernels  # noqa: E402 - found by the line above
from tests.exploits.tasks import GPU_TASKS, order_of  # noqa: E402 - found by the line above
from tests.gpu.asking import Server, serving  # noqa: E402 - found by the line above

NAMES = (
    "host_input", "host_input_computed", "host_answer", "host_answer_pinned", "number",
    "all_leaves",
)  # fmt: skip
WITHIN = {"host_input": 0.05}
"""How far a time may be from the plain program's, where that is asked for."""
READINGS = 2
"""How many plain programs run before the judge, and how many after."""
CALLS = 60
told_us: dict[str, list[float]] = {}
plain_readings_us: dict[str, list[float]] = {}
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


def plain_elsewhere(name: str) -> float:
    """The same in another process, which has exited when this returns."""
    command = (sys.executable, __file__, "--plain", name)
    said = subprocess.run(command, capture_output=True, check=True).stdout
    return float(json.loads(said.splitlines()[-1]))


def row(server: Server, kernel: Kernel) -> tuple[bool, str]:
    """Judge a kernel; return whether the result is as expected, and its line of the table."""
    readings = [plain_elsewhere(kernel.name) for _ in range(READINGS)]
    evaluation, _ = server.ask(order_of(kernel, RoundPolicy()))
    readings += [plain_elsewhere(kernel.name) for _ in range(READINGS)]
    least, most = min(readings), max(readings)
    plain = f"{least:.0f}-{most:.0f}"
    found = [case.measurement for case in evaluation.cases if case.measurement]
    if not found:
        told = ROW.format(
            "BAD", kernel.name, evaluation.verdict, plain, *[""] * 5, evaluation.message
        )
        return False, told
    m = found[-1]
    value_us = m.time_ns / 1e3
    told_us.setdefault(kernel.name, []).append(value_us)
    plain_readings_us.setdefault(kernel.name, []).extend(readings)
    off = value_us / min(max(value_us, least), most) - 1
    good = evaluation.verdict == "passed" and abs(off) <= WITHIN.get(kernel.name, 10)
    numbers = (m.time_ns, m.half_width_ns, m.bound_ns, m.resolution_ns)
    value, *others = (f"{each / 1e3:.1f}" for each in numbers)
    more = f"{m.discarded} discarded {evaluation.message}"
    head = ("ok" if good else "BAD", kernel.name, evaluation.verdict, plain)
    return good, ROW.format(*head, value, f"{off:+.1%}", *others, more)


def main() -> int:
    """Judge each kernel; return how many were refused or are too far off."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=NAMES, help="these kernels")
    parser.add_argument("--plain", metavar="KERNEL", help="print this plain time alone, as JSON")
    asked = parser.parse_args()
    chosen = {each.name: each for each in kernels("honest_cuda")}
    if asked.plain:
        print(json.dumps(plain_us(chosen[asked.plain])))
        return 0
    heads = ("kernel", "verdict", "plain us", "value", "off", "+-", "bound", "resolut.", "")
    print(ROW.format("", *heads))
    bad = 0
    with serving() as server:
        for name in list(asked.only) * asked.runs:
            good, told = row(server, chosen[name])
            bad += not good
            print(told, flush=True)
    for name, values in told_us.items():
        value, plain = median(values), median(plain_readings_us[name])
        print(f"{name}: median {value:.1f} us of {len(values)}, plain {plain:.1f} us, ", end="")
        print(f"{value / plain - 1:+.1%}")
    return bad


if __name__ == "__main__":
    raise SystemExit(main())
