"""How a worker behaves: its name, its lease, and the deadline of everything that it waits for."""

import secrets
from dataclasses import dataclass, field
from datetime import timedelta

from bot.domain.ids import PersonId
from runners.contract.evaluation import Limits, RoundPolicy


def _fresh_name() -> str:
    return f"worker-{secrets.token_hex(4)}"


@dataclass(frozen=True, slots=True)
class DispatchConfig:
    """Settings of one dispatcher; a worker's name must be unique among those that live."""

    worker: str = field(default_factory=_fresh_name)
    lease: timedelta = timedelta(seconds=30)
    beat_s: float = 5.0
    """Between heartbeats; a good part of the lease must be left when one is missed."""
    poll_s: float = 1.0
    """Between looks at the queue when no notice comes."""
    refresh_s: float = 15.0
    """Between questions to the runners what they offer."""
    call_s: float = 30.0
    """For a runner to start a call or to stop one."""
    ask_s: float = 150.0
    """For a runner to say what it offers. Longer than the slowest start of a harness, since a cold
    runner that is cut short begins again for ever."""
    grace_s: float = 120.0
    """For an evaluation beyond the time limits of its task."""
    seat_s: float = 600.0
    """For a slot to become free; then the job goes back into the queue."""
    store_s: float = 600.0
    """For a database that is away to take a result."""
    retry_s: float = 0.5
    """Between the first tries to store a result; twice as long each time after."""
    retry_most_s: float = 4.0
    """Between the later ones: a good part of a lease must be left when the store is back."""
    drain_s: float = 20.0
    """For running evaluations to end by themselves once the worker is asked to stop."""
    progress_s: float = 0.25
    """Between progress events of one job within one stage."""
    rounds: RoundPolicy | None = None
    """Other rounds than those of the mode; the house's own jobs have those of the mode always."""
    hurried: frozenset[PersonId] | None = None
    """Whose jobs have the other rounds; None: everybody's."""
    limits: Limits = field(default_factory=Limits)
