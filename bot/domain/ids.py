"""The ids of stored things, as distinct types."""

from typing import NewType

PersonId = NewType("PersonId", int)
BoardId = NewType("BoardId", int)
TaskVersionId = NewType("TaskVersionId", int)
SubmissionId = NewType("SubmissionId", int)
JobId = NewType("JobId", int)
EventId = NewType("EventId", int)
TokenId = NewType("TokenId", int)
NotificationId = NewType("NotificationId", int)
PublicationId = NewType("PublicationId", int)
CheckRunId = NewType("CheckRunId", int)
AuditId = NewType("AuditId", int)
CompetitionId = NewType("CompetitionId", int)
ConfirmationId = NewType("ConfirmationId", int)
FinalId = NewType("FinalId", int)
InviteLinkId = NewType("InviteLinkId", int)


NO_SUBMISSION = SubmissionId(0)
"""In place of a submission: the job is a run of a task's check."""


def is_system_submission(submission: SubmissionId) -> bool:
    """Return whether it is one of the system's own, whose numbers are negative.

    Such a submission times a task's reference or confirms another submission; it is not ranked.
    """
    return submission < 0


def is_storable(number: int) -> bool:
    """Return whether a database can store the number; other numbers are never ids."""
    return -(1 << 63) <= number < 1 << 63
