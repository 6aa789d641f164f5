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
