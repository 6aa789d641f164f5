"""Tests of the replies for exceptions that submitted code raises."""

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


def test_a_long_message_keeps_its_beginning_and_its_end() -> None:
    message = failing(ValueError("begin" + "x" * 5 * MESSAGE_MAX + "end")).message
    assert message.startswith("ValueError: begin")
    assert message.endswith("end")
    assert len(message) <= MESSAGE_MAX
