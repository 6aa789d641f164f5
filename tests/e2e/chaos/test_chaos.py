"""Kill -9 at random moments loses nothing, doubles nothing, and leaves nothing stuck or running."""

from pathlib import Path

import pytest

from tests.e2e.chaos.schedule import Victim
from tests.e2e.chaos.storm import Plan, run

PLAN = Plan(
    seed=2026,
    jobs=200,
    real=20,
    blows={
        Victim.UP: 2,
        Victim.WORKER: 5,
        Victim.POSTGRES: 4,
        Victim.JUDGE: 3,
        Victim.CANDIDATE: 3,
        Victim.STALLED: 3,
    },
    span_s=35.0,
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
