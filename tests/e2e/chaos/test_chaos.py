"""Kill -9 at random moments loses nothing, doubles nothing, and leaves nothing stuck or running."""

from pathlib import Path

import pytest

from tests.e2e.chaos.schedule import Victim
from tests.e2e.chaos.storm import Plan, run

PLAN = Plan(
    seed=2026,
    jobs=120,
    real=10,
    blows={
        Victim.UP: 2,
        Victim.WORKER: 3,
        Victim.POSTGRES: 3,
        Victim.JUDGE: 2,
        Victim.CANDIDATE: 2,
        Victim.STALLED: 2,
    },
    span_s=20.0,
    limit_s=120.0,
)


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.timeout(300)
async def test_every_submission_ends_with_one_evaluation_whatever_is_killed(folder: Path) -> None:
    outcome = await run(folder, PLAN)
    assert outcome.findings.faults == []
    assert outcome.survivors == []
    assert set(outcome.statuses.values()) == {0}
    assert outcome.kills == PLAN.blows
    assert outcome.starts["up"] > PLAN.blows[Victim.UP]
