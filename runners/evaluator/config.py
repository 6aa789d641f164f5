"""The configuration of an evaluator, and the errors that no kernel causes."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Self

from runners.contract.evaluation import Limits

TIMEOUT_MOST_S = 3600


@dataclass(frozen=True, slots=True)
class EvaluatorConfig:
    """Every setting of an evaluator; names that end in `timeout` or `_s` are in seconds."""

    backend: str = "local_process"
    """The plugin of runners/backends that is opened if the evaluator gets no runner."""
    slots: Mapping[str, int] | None = None
    """GPU type -> number of slots, for that plugin; None is the plugin's default."""
    gpu_type: str | None = None
    """The GPU type to run on; None is the runner's first one."""
    timeout: float = 120
    """Seconds for all correctness trials of one kernel, and again for its timing."""
    max_concurrency: int | None = None
    """The most evaluations at once, at most one per slot; None is one per slot."""
    queue_timeout_s: float = 3600.0
    """How long an evaluation may wait for a free slot."""
    attempts: int = 2
    """The most attempts at an evaluation; it is started again if the runner fails."""
    return_exceptions: bool = True
    """Whether an InfrastructureError or JobError becomes a result; otherwise it is raised."""
    cache_size: int = 512
    """How many results are cached for repeated jobs; 0 disables the cache."""
    rounds: int = 3
    """The number of fresh processes among which the timed calls of a kernel are divided."""
    limits: Limits = field(default_factory=lambda: Limits(memory=16 << 30))
    """The limits of one candidate."""
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    """The key of every seed; with the same key a kernel always gets the same inputs."""

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
        """The configuration after `other` is assigned to the evaluator.

        An environment made for Modal assigns its own configuration before each call. If `other` is
        not of this class, only its `timeout` and `return_exceptions` are used.
        """
        if isinstance(other, type(self)):
            return other
        timeout = getattr(other, "timeout", self.timeout)
        returned = getattr(other, "return_exceptions", self.return_exceptions)
        return replace(self, timeout=float(timeout), return_exceptions=bool(returned))


class ErrorKind(StrEnum):
    """The cause of a failure; in a result's metadata as `error_kind`."""

    KERNEL = "kernel"
    """The kernel failed; the only kind that says something about the kernel."""
    REFERENCE = "reference"
    """The problem's own code failed; any other kernel would have failed too."""
    REQUEST = "request"
    """The job was invalid: a missing source, or an option that does not exist."""
    INFRASTRUCTURE = "infrastructure"
    """The system failed: a lost machine, no free slot in time. The result says nothing about the
    kernel; try again."""


class InfrastructureError(RuntimeError):
    """There is no evaluation, and the kernel is not the cause; the same job may be tried again."""


class JobError(ValueError):
    """The job is invalid."""
