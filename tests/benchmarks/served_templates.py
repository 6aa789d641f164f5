"""Prints how often the served template of each example is ranked on this machine's CPU.

python -m tests.benchmarks.served_templates [--only NAME ...] [--repeats 4]

A newcomer hands in the template unchanged, so it must not be too noisy on an idle machine.
"""

import argparse
from pathlib import Path

from bot.domain.noise import too_noisy
from bot.domain.tasks.task_file import parse_task
from bot.domain.tasks.template import template_of
from bot.store import task_folders
from runners.contract.verdict import Verdict
from tests.benchmarks.cpu_noise import judged, others_load
from tests.doubles.judging import Harness, serving


def row(harness: Harness, folder: Path, repeats: int) -> None:
    """Judge the template several times, and print its times and how often it was ranked."""
    task, load = parse_task(task_folders.read_folder(folder)), others_load()
    found = [judged(harness, task, template_of(task, task.name).text) for _ in range(repeats)]
    ranked = sum(each.verdict is Verdict.PASSED and not too_noisy(each) for each in found)
    worst = max(
        case.measurement.half_width_ns / case.measurement.time_ns
        for each in found
        for case in each.cases
        if case.measurement
    )
    slowest = max(each.wall_s for each in found)
    print(
        f"{folder.name:>12} {load:6.1f} {ranked:>5}/{repeats} {worst:9.1%} {slowest:8.1f}",
        flush=True,
    )


def main() -> None:
    """Judge on this machine."""
    folders = {
        each.parent.name: each.parent for each in task_folders.examples().glob("*/template.py")
    }
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=sorted(folders), choices=sorted(folders))
    parser.add_argument("--repeats", type=int, default=4)
    options = parser.parse_args()
    print(f"{'template':>12} {'others':>6} {'ranked':>7} {'worst ±':>9} {'seconds':>8}")
    with serving() as harness:
        for name in options.only:
            row(harness, folders[name], options.repeats)


if __name__ == "__main__":
    main()
