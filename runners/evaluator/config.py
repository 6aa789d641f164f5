"""How an evaluator is set up, and what can go wrong that is no kernel's fault."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Self

from runners.contract.evaluation import Limits

TIMEOUT_MOST_S = 3600


@dataclass(frozen=True, slots=True)
class EvaluatorConfig:
    """Every setting of an evaluator; seconds where a name ends in `timeout` or `_s`."""

    backend: str = "local_process"
    """The plugin of runners/backends that is opened when the evaluator is given no runner."""
    slots: Mapping[str, int] | None = None
    """GPU type to slots, for that plugin; None takes what is there."""
    gpu_type: str | None = None
    """On which of the runner's GPU types; None takes its first."""
    timeout: int = 120
    """For all correctness trials of one kernel, and again for its timing."""
    max_concurrency: int | None = None
    """How many evaluations run at once, at most as many as the runner has slots; None: as many."""
    queue_timeout_s: float = 3600.0
    """How long an evaluation may wait for a free slot."""
    attempts: int = 2
    """How often an evaluation is begun when the runner fails under it."""
    return_exceptions: bool = True
    """Whether a failure of ours becomes a result that says so, or is raised."""
    cache_size: int = 512
    """How many results are kept for jobs that are asked again; 0 keeps none."""
    rounds: int = 3
    """Into how many fresh processes the timed calls of a kernel are divided."""
    limits: Limits = field(default_factory=lambda: Limits(memory=16 << 30))
    """What one candidate may use."""
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    """The key of every seed: the same one gives the same kernel the same inputs again."""

    def __post_init__(self) -> None:
        least = (self.timeout, self.attempts, self.rounds, self.queue_timeout_s)
        if min(least) < 1 or self.cache_size < 0 or self.timeout > TIMEOUT_MOST_S:
            raise ValueError(
                f"timeout (at most {TIMEOUT_MOST_S}), attempts, rounds and queue_timeout_s are at "
                "least 1, cache_size is at least 0"
            )
        if self.max_concurrency is not None and self.max_concurrency < 1:
            raise ValueError("max_concurrency is at least 1, or None")
        if not 16 <= len(self.secret) <= 64:
            raise ValueError("secret has 16 to 64 bytes")

    def updated(self, other: object) -> Self:
        """What is meant by another configuration that is assigned to an evaluator.

        An environment made for Modal assigns one of its own before each call, which says how long
        and no longer on which GPU: only `timeout` and `return_exceptions` are taken from it.
        """
        if isinstance(other, type(self)):
            return other
        timeout = getattr(other, "timeout", self.timeout)
        returned = getattr(other, "return_exceptions", self.return_exceptions)
        return replace(self, timeout=int(timeout), return_exceptions=bool(returned))


class ErrorKind(StrEnum):
    """Whose doing a failure is; in a result's metadata as `error_kind`."""

    KERNEL = "kernel"
    """The kernel's: this alone says something about it."""
    REFERENCE = "reference"
    """The problem's own code failed; another kernel would have fared no better."""
    REQUEST = "request"
    """The job was not one: a missing source, or an option that does not exist."""
    INFRASTRUCTURE = "infrastructure"
    """Ours: a lost machine, no free slot in time. Nothing is known of the kernel; try again."""


class InfrastructureError(RuntimeError):
    """No evaluation came about, through no fault of the kernel; the same job may be tried again."""


class JobError(ValueError):
    """A job that cannot be evaluated as it is written."""
