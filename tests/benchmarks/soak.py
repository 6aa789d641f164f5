"""Kills processes for minutes while thousands of jobs run, and prints what was lost (nothing)."""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path
from shutil import rmtree

from tests.e2e.chaos.schedule import Victim
from tests.e2e.chaos.storm import Outcome, Plan, run

SHARES = {
    Victim.UP: 2,
    Victim.WORKER: 5,
    Victim.POSTGRES: 4,
    Victim.JUDGE: 3,
    Victim.CANDIDATE: 3,
    Victim.STALLED: 3,
}
"""Blows of each kind in every 35 s."""


def plan(jobs: int, real: int, minutes: float, seed: int) -> Plan:
    """Plan as many kills per minute as the test has, over the whole time."""
    span_s = 60 * minutes
    blows = {victim: max(1, round(share * span_s / 35)) for victim, share in SHARES.items()}
    return Plan(seed, jobs, real, blows, span_s, limit_s=2 * span_s + 120)


def show(outcome: Outcome) -> None:
    """Print the tables."""
    print(f"{'victim':<12}{'killed':>8}{'missed':>8}")
    for victim in Victim:
        print(f"{victim:<12}{outcome.kills[victim]:>8}{outcome.missed[victim]:>8}")
    findings = outcome.findings
    attempts = ", ".join(f"{jobs} x {number}" for number, jobs in sorted(findings.attempts.items()))
    rows = {
        "starts": ", ".join(f"{name} {count}" for name, count in outcome.starts.items()),
        "evaluations": findings.evaluations,
        "attempts": attempts,
        "late results refused": outcome.dropped,
        "kernels we killed": findings.killed_by_us,
        "lost": len(findings.lost),
        "doubled": len(findings.doubled),
        "stuck": len(findings.stuck),
        "untrue": len(findings.untrue),
        "processes left": len(outcome.survivors),
        "longest recovery": f"{outcome.recovery_s:.1f} s",
        "wall": f"{outcome.wall_s:.0f} s",
    }
    for name, value in rows.items():
        print(f"{name:<22}{value}")
    for fault in (*findings.faults, *outcome.survivors):
        print(f"FAULT {fault}")


def main() -> int:
    """Run in a temporary folder; exit 1 when anything was lost, doubled, stuck, untrue or left."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2000, help="submissions")
    parser.add_argument("--real", type=int, default=20, help="how many of them are real kernels")
    parser.add_argument("--minutes", type=float, default=3.0, help="how long kills go on")
    parser.add_argument("--seed", type=int, default=2026)
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="podium-soak-"))
    folder.chmod(0o711)
    try:
        outcome = asyncio.run(run(folder, plan(asked.jobs, asked.real, asked.minutes, asked.seed)))
    finally:
        rmtree(folder)
    show(outcome)
    return 1 if outcome.findings.faults or outcome.survivors else 0


if __name__ == "__main__":
    sys.exit(main())
