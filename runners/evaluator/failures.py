"""What can go wrong that is no kernel's fault."""

from enum import StrEnum


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
