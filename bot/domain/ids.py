"""The names of stored things, told apart by type."""

from typing import NewType

PersonId = NewType("PersonId", int)
BoardId = NewType("BoardId", int)
TaskVersionId = NewType("TaskVersionId", int)
SubmissionId = NewType("SubmissionId", int)
JobId = NewType("JobId", int)
EventId = NewType("EventId", int)
TokenId = NewType("TokenId", int)
NewsId = NewType("NewsId", int)
ReleaseId = NewType("ReleaseId", int)
AuditId = NewType("AuditId", int)


def is_system_submission(submission: SubmissionId) -> bool:
    """Whether it is one of the house's own, whose numbers are all below zero.

    Such a one times a task's reference; nobody waits for it, and nobody is ranked by it.
    """
    return submission < 0


def is_storable(number: int) -> bool:
    """Whether a database has room for it; what has none was never given to anything."""
    return -(1 << 63) <= number < 1 << 63
