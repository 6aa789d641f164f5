"""Do kernels of the evaluation server's five kinds get their answers, and plausible times?

Run from the repository root on a machine with a GPU:  python tests/gpu/evaluation_server.py
It needs PyTorch, Triton, pydantic, NVRTC, and nvcc with g++ for what is compiled inline.
"""

import argparse
import sys
from contextlib import ExitStack
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bot.web.compat.evaluation_server.results import KernelResultBody, result_of  # noqa: E402 - found by the above
from bot.web.compat.evaluation_server.translate import order_of  # noqa: E402 - found by the above
from tests.gpu.asking import HarnessError, Server, serving  # noqa: E402 - found by the above
from tests.gpu.evaluation_kernels import Row, right, wrong  # noqa: E402 - found by the above

ROW = "{:3s} {:26s} {:18s} {:>9s} {:>9s} {:>8s} {:>8s} {:>6s} {}"
HEADS = ("", "kernel", "answer", "us", "std", "ref us", "speed-up", "s", "")
MESSAGE_MOST = 300


def faults(row: Row, result: KernelResultBody) -> list[str]:
    """The parts of an answer that are not as expected."""
    found = result["kernel_exec_result"]
    text = found.get("compilation_error") or found.get("validation_error") or ""
    if row.category is not None:
        wanted = found.get("error_category") == row.category and row.words in text
        return [] if wanted and not found["correctness"] else [f"wanted {row.category}: {text}"]
    lacking = [] if found["correctness"] and found["runtime"] > 0 else [text or "no time"]
    if "ref_runtime" in result and not result["ref_runtime"]["mean"] > 0:
        lacking.append("no time of the reference")
    if row.request.device_metrics and "device_metrics" not in found["metadata"]:
        lacking.append(f"no counters: {counters(found)}")
    return lacking


def told(row: Row, result: KernelResultBody, seconds: float) -> tuple[bool, str]:
    """Whether all is as expected, and its row of the table."""
    found: dict[str, Any] = result["kernel_exec_result"]
    wrongs = faults(row, result)
    stats, ref = found.get("runtime_stats"), result.get("ref_runtime")
    return not wrongs, ROW.format(
        "BAD" if wrongs else "ok",
        row.name,
        found.get("error_category", "correct"),
        f"{stats['mean'] * 1e3:.2f}" if stats else "",
        f"{stats['std'] * 1e3:.2f}" if stats else "",
        f"{ref['mean'] * 1e3:.2f}" if ref else "",
        f"{found['speedup']:.2f}" if "speedup" in found else "",
        f"{seconds:.1f}",
        ("; ".join(wrongs) or counters(found))[:MESSAGE_MOST].replace("\n", " | "),
    )


def counters(found: dict[str, Any]) -> str:
    """The groups of counters, if requested, or why there are none."""
    metadata = found["metadata"]
    groups = metadata.get("device_metrics", {}).get("custom_device_metrics", {})
    fields = {name: len(group) for name, group in groups.items()}
    return str(fields) if fields else str(metadata.get("device_metrics_error", ""))


def judge(server: Server, row: Row) -> tuple[bool, str]:
    """Judge one row; a harness that failed is not used again."""
    evaluation, seconds = server.ask(order_of(row.request).request(row.name, "GPU"))
    return told(row, result_of(row.request, evaluation), seconds)


def main() -> int:
    """Judge everything; return the number of unexpected rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="*", help="rows by a pattern of their names")
    only = parser.parse_args().only
    rows = [row for row in (*right(), *wrong()) if fnmatch(row.name, only)]
    lines, bad = [ROW.format(*HEADS)], 0
    with ExitStack() as stack:
        server = stack.enter_context(serving())
        print(server.ready)
        for row in rows:
            try:
                good, line = judge(server, row)
            except HarnessError as error:
                good, line = (
                    False,
                    ROW.format("BAD", row.name, "error", *[""] * 5, str(error)[:300]),
                )
                stack.close()
                server = stack.enter_context(serving())
            bad += not good
            lines.append(line)
            print(line, flush=True)
    print("", *lines, f"{bad} of {len(rows)} rows are not as wanted", sep="\n")
    return bad


if __name__ == "__main__":
    sys.exit(main())
