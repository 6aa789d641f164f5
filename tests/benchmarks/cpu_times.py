"""By how much do runs of one kernel on the CPU differ, by different ways to take its time?

    python -m tests.benchmarks.cpu_times [--runs 6] [--only grayscale]

Judges the template of each example several times, and prints for each way the standard deviation
of the runs' times, the mean half-width that a run has by itself, and how often the mean of the runs
lies within it.
"""

import argparse
import json
import math
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

EXAMPLES = Path("tasks/examples")


def judged(task: Path) -> list[dict[str, Any]]:
    """The benchmarks of a ranked run of the template, as `podium judge --json` has them."""
    command = [sys.executable, "-m", "bot", "judge", str(task), str(task / "template.py")]
    command += ["--mode", "ranked", "--gpu", "CPU", "--json"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    cases = json.loads(found.stdout)["cases"]
    return [each for each in cases if each["kind"] == "benchmark" and each["time_ns"]]


def ways(case: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """The time, and its half-width as a fraction of it, by each way that the run allows."""
    found = {
        "time": (case["time_ns"], case["half_width_ns"] / case["time_ns"]),
        "medians of rounds": (fmean(median(each) for each in case["samples"] if each), math.nan),
    }
    if case["vs_reference"]:
        high, low = case["vs_reference_high"] or math.inf, case["vs_reference_low"]
        unseen = case["resolution_ns"] / case["time_ns"]  # is in these bounds, but is not noise
        half = (1 / low - 1 / high) / 2 * case["vs_reference"] - unseen
        found["ratio to the reference"] = 1 / case["vs_reference"], half
    return found


def main() -> None:
    """Judge, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--only", nargs="*", default=[])
    chosen = parser.parse_args()
    seen: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    tasks = [each for each in sorted(EXAMPLES.iterdir()) if (each / "template.py").exists()]
    for _ in range(chosen.runs):
        for task in tasks:
            if chosen.only and task.name not in chosen.only:
                continue
            for case in judged(task):
                for way, value in ways(case).items():
                    seen[way][f"{task.name} {case['spec']}"].append(value)
    print(f"{'way':24}{'runs differ':>12}{'worst':>8}{'half-width':>12}{'within':>8}{'> 15 %':>8}")
    for way, benchmarks in seen.items():
        spreads, halves, within = [], [], []
        for values in benchmarks.values():
            logs = [math.log(each) for each, _ in values]
            spreads.append(stdev(logs) if len(logs) > 1 else 0.0)
            halves += [half for _, half in values]
            within += [
                abs(log - fmean(logs)) <= half for log, (_, half) in zip(logs, values, strict=True)
            ]
        noisy = sum(half > 0.15 for half in halves)
        print(
            f"{way:24}{fmean(spreads):12.1%}{max(spreads):8.1%}{fmean(halves):12.1%}"
            f"{fmean(within):8.0%}{noisy:>5}/{len(halves)}"
        )


if __name__ == "__main__":
    main()
