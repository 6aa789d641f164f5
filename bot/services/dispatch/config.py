"""A worker's configuration: its name, its lease, and its timeouts."""

import secrets
from dataclasses import dataclass, field
from datetime import timedelta

from bot.domain.ids import PersonId
from runners.contract.evaluation import Limits, RoundPolicy


@dataclass(frozen=True, slots=True)
class DispatchConfig:
    """Settings of one dispatcher; the worker's name must be unique among live workers.

    Names that end in `_s` are seconds.
    """

    worker: str = field(default_factory=lambda: f"worker-{secrets.token_hex(4)}")
    lease: timedelta = timedelta(seconds=30)
    heartbeat_s: float = 5.0
    """Between two heartbeats; after a missed one, enough of the lease must be left."""
    poll_s: float = 1.0
    """Between two polls of the queue when no notice arrives."""
    refresh_s: float = 15.0
    """Between two requests to the runners for their offers."""
    call_s: float = 30.0
    """For a runner to start or stop a call."""
    offer_s: float = 150.0
    """For a runner to return its offer. Longer than the slowest start of a harness, because a cold
    runner that is interrupted starts over each time."""
    grace_s: float = 120.0
    """For an evaluation, on top of its task's time limits."""
    slot_s: float = 600.0
    """For a slot to become free; after that the job returns to the queue."""
    store_s: float = 600.0
    """For an unavailable database to accept a result."""
    retry_s: float = 0.5
    """Between the first attempts to store a result; doubled after each."""
    retry_max_s: float = 4.0
    """The longest such wait: enough of the lease must be left when the store is back."""
    drain_s: float = 20.0
    """For running evaluations to end by themselves after the worker was asked to stop."""
    progress_s: float = 0.25
    """Between two progress events of one job within one stage."""
    rounds: RoundPolicy | None = None
    """Used instead of the mode's rounds; jobs of the system itself always have the mode's."""
    rounds_for: frozenset[PersonId] | None = None
    """The people to whose jobs `rounds` applies; None: everyone's."""
    limits: Limits = field(default_factory=Limits)
    confirm_places: bool = True
    """Whether a run for one of the first places is held back until it is compared."""

    def rounds_of(self, person: PersonId) -> RoundPolicy | None:
        """Return the rounds to use instead of the mode's for this person's jobs."""
        return self.rounds if self.rounds_for is None or person in self.rounds_for else None
