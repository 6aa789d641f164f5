"""What becomes of exceptions that submitted code raises."""

import errno

import pytest
import torch

from runners.harness.candidate.failures import MESSAGE_MAX, guarded
from runners.harness.protocol.channel import CandidateReply, Status

DONE = CandidateReply(status=Status.DONE)


def failing(error: BaseException) -> CandidateReply:
    """The reply for code that raises this."""

    def step() -> CandidateReply:
        raise error

    found = guarded(step, Status.RAISED)
    assert isinstance(found, CandidateReply)
    return found


def test_code_that_raises_nothing_keeps_its_reply() -> None:
    assert guarded(lambda: DONE, Status.RAISED) is DONE
    assert guarded(lambda: b"frame", Status.RAISED) == b"frame"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ValueError("no"), Status.RAISED),
        (KeyboardInterrupt(), Status.RAISED),
        (MemoryError(), Status.MEMORY),
        (torch.OutOfMemoryError(), Status.MEMORY),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), Status.MEMORY),
        (OSError(errno.ENOSPC, "full"), Status.DISK),
    ],
)
def test_an_exception_becomes_the_reply_of_its_kind(error: BaseException, status: Status) -> None:
    assert failing(error).status is status


def test_a_long_message_keeps_its_beginning_and_its_end() -> None:
    message = failing(ValueError("begin" + "x" * 5 * MESSAGE_MAX + "end")).message
    assert message.startswith("ValueError: begin")
    assert message.endswith("end")
    assert len(message) <= MESSAGE_MAX
