"""Prints what a season of the Discord bot leaves while its copies are killed and Discord fails.

python -m tests.benchmarks.discord_season [--submissions 600] [--minutes 8] [--seed 2026]

People with names of every kind submit to each board. Two copies of the bot serve them, each killed
every 20 seconds. The local Discord enforces its limits, loses acknowledgements and other answers,
delivers some interactions twice, lets some tokens expire, and has periods of 429 and an outage of a
minute. Exit 1 if a submission is not stored once and displayed once, if anybody is pinged, if a
payload is over a limit, or if an answer is untrue.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.doubles import launcher
from tests.e2e.season.failures import Outage
from tests.e2e.season.season import Outcome, Plan, run


def outages(span_s: float) -> tuple[Outage, ...]:
    """Return the outages of a season of that length."""
    return (
        Outage(0.15 * span_s, 20.0, status=429, share=0.5, retry_after=0.7, scope="user"),
        Outage(0.35 * span_s, 60.0, status=500),
        Outage(0.65 * span_s, 10.0, status=429, retry_after=2.0, scope="global"),
        Outage(0.80 * span_s, 20.0, status=429, share=0.5, retry_after=3.0),
    )


def show(outcome: Outcome) -> None:
    """Print the table."""
    ordered = sorted(outcome.acknowledged_s)
    middle, late = (ordered[int(share * (len(ordered) - 1))] for share in (0.5, 0.99))
    rows = {
        **outcome.findings.figures,
        **outcome.counts,
        "copies killed": outcome.kills,
        "longest restart": f"{outcome.longest_start_s:.1f} s",
        "acknowledged after, p50, p99": f"{middle:.2f} s, {late:.2f} s",
        "requests of the bot": outcome.requests,
        **{f"failed: {kind}": count for kind, count in outcome.failed.items()},
        "all shown after the last order": f"{outcome.settled_s:.0f} s",
        "wall, load": f"{outcome.wall_s:.0f} s, {outcome.load:.2f}",
    }
    for name, value in rows.items():
        print(f"{name:<52}{value}")
    for kind in ("store", "display", "pings", "limits", "untrue", "unfinished"):
        print(f"{'faults: ' + kind:<52}{len(getattr(outcome.findings, kind))}")
    for fault in outcome.findings.faults:
        print(f"FAULT {fault}")


def main() -> int:
    """Play one season; exit 1 on any fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--submissions", type=int, default=600)
    parser.add_argument("--minutes", type=float, default=8.0, help="how long people submit")
    parser.add_argument("--boards", type=int, default=3)
    parser.add_argument("--people", type=int, default=60)
    parser.add_argument("--seed", type=int, default=2026)
    asked = parser.parse_args()
    span_s = 60 * asked.minutes
    plan = Plan(
        asked.seed, asked.boards, asked.people, asked.submissions, span_s,
        kill_every_s=20.0, outages=outages(span_s), settled_s=600.0,
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="podium-season-") as name, launcher.warm():
        folder = Path(name)
        folder.chmod(0o711)
        outcome = asyncio.run(run(folder, plan))
    show(outcome)
    return 1 if outcome.findings.faults else 0


if __name__ == "__main__":
    sys.exit(main())
