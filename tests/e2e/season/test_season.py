"""A short season: killed copies of the bot and failures of Discord lose and repeat nothing."""

from pathlib import Path

import pytest

from tests.e2e.season.failures import Outage
from tests.e2e.season.season import Plan, run

PLAN = Plan(
    seed=2026,
    boards=1,
    people=8,
    submissions=40,
    span_s=16.0,
    kill_every_s=8.0,
    outages=(
        Outage(4.0, 2.0, status=429, share=0.5, retry_after=0.3),
        Outage(9.0, 2.0, status=500),
    ),
    settled_s=90.0,
    scale=0.05,
)


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.timeout(300)
async def test_each_submission_is_stored_once_and_displayed_once(open_folder_root: Path) -> None:
    outcome = await run(open_folder_root, PLAN)
    assert not outcome.findings.faults, "\n".join(outcome.findings.faults)
    assert outcome.kills >= 3
    assert outcome.failed.total() > 20
