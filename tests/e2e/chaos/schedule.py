"""Which process is killed when: drawn once from a seed, so that a run can be repeated."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Victim(StrEnum):
    """What is struck; every blow is a SIGKILL but the one that stalls."""

    UP = "up"
    """The `podium up` process, and with it the database's owner."""
    WORKER = "worker"
    """A `podium worker` process."""
    POSTGRES = "postgres"
    """The database's first process, or one that serves a connection."""
    JUDGE = "judge"
    """Any process of the harness that is no candidate."""
    CANDIDATE = "candidate"
    """The process that runs the submission."""
    STALLED = "stalled"
    """A worker that is stopped for longer than its lease and then goes on."""


@dataclass(frozen=True, slots=True)
class Blow:
    """One kill: `at_s` after the start; `choice` in [0, 1) picks among several processes."""

    at_s: float
    victim: Victim
    choice: float


def schedule(seed: int, counts: Mapping[Victim, int], span_s: float) -> tuple[Blow, ...]:
    """So many blows of each kind at random moments of the span, in the order of time."""
    dice = random.Random(seed)  # noqa: S311 - a schedule, no secret
    victims = [victim for victim in Victim for _ in range(counts.get(victim, 0))]
    blows = [Blow(_moment(dice, victim, span_s), victim, dice.random()) for victim in victims]
    return tuple(sorted(blows, key=lambda blow: blow.at_s))


def _moment(dice: random.Random, victim: Victim, span_s: float) -> float:
    """Candidates die early, while more submissions for their runner are still to come."""
    return dice.uniform(0, 0.6 * span_s if victim is Victim.CANDIDATE else span_s)
