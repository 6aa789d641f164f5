"""Prints how many kernels an evaluator processes, and by how much a slow one delays the others.

python -m tests.benchmarks.evaluator [--jobs 512] [--slots 32] [--slow 5] [--each 0.05]

It uses the fake runner, whose evaluations take a requested time, so only the evaluator's own work
is measured. The same batch is run without and with slow kernels.
"""

import argparse
import asyncio
import time
from dataclasses import dataclass
from statistics import median

from runners.backends import fake
from runners.contract.evaluation import CPU
from runners.evaluator import BatchProgress, EvaluatorConfig, KernelEvaluator
from tests.doubles.kernels import make_job, told


@dataclass(frozen=True)
class Batch:
    """When each quick job of a batch was done, in seconds after the batch's start."""

    ends: list[float]
    total: float


async def run(args: argparse.Namespace, *, slow: bool) -> Batch:
    """Run one batch on its own evaluator; a slow job is its first one."""
    seconds = [args.each] * args.jobs
    if slow:
        seconds[0] = args.slow
    jobs = [make_job(told(f"seconds={each} x={n}")) for n, each in enumerate(seconds)]
    runner = fake.create(slots={CPU: args.slots})
    ends: dict[int, float] = {}
    begin = time.perf_counter()

    def note(progress: BatchProgress) -> None:
        ends[progress.index] = time.perf_counter() - begin

    found = await KernelEvaluator(EvaluatorConfig(), runner).evaluate_batch(jobs, progress=note)
    total = time.perf_counter() - begin
    await runner.aclose()
    if not all(each["correctness"] for each in found):
        raise SystemExit("an evaluation failed")
    return Batch([ends[n] for n in range(1, args.jobs)], total)


async def compare(args: argparse.Namespace) -> None:
    """Print both batches in one table."""
    await run(args, slow=False)  # the first one pays for imports
    batches = {"all alike": await run(args, slow=False), "one slow": await run(args, slow=True)}
    ideal = args.jobs * args.each / args.slots
    print(
        f"{args.jobs} evaluations of {args.each:g} s over {args.slots} slots, ideally "
        f"{ideal:.2f} s; the slow one takes {args.slow:g} s\n"
    )
    print("| batch | evaluations/s | half of the others done | last of the others | batch |")
    print("|---|---|---|---|---|")
    for name, batch in batches.items():
        last = max(batch.ends)
        print(
            f"| {name} | {len(batch.ends) / last:.0f} | {median(batch.ends):.2f} s | {last:.2f} s "
            f"| {batch.total:.2f} s |"
        )
    delay = max(batches["one slow"].ends) - max(batches["all alike"].ends)
    print(f"\nThe slow one delays the last of the others by {delay:.2f} s.")


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=512)
    parser.add_argument("--slots", type=int, default=32)
    parser.add_argument("--slow", type=float, default=5.0, help="seconds")
    parser.add_argument("--each", type=float, default=0.05, help="seconds")
    asyncio.run(compare(parser.parse_args()))


if __name__ == "__main__":
    main()
