"""Checks that the output of one call is right and its input unchanged."""

from runners.contract.verdict import Verdict
from runners.harness.deadline import Deadline
from runners.harness.judge.host_candidate import HostCandidate
from runners.harness.protocol.channel import CandidateReply
from runners.harness.protocol.values import Node
from runners.harness.verdicts import VerdictError


def verify(
    seat: HostCandidate,
    data: object,
    reply: CandidateReply,
    expected: Node | None,
    *,
    deadline: Deadline,
) -> None:
    """Refuse a wrong output, or a changed input if the task does not allow that.

    The comparison comes last, because it may change `data`. By then everything has been read from
    the frozen candidate.
    """
    session = seat.session
    with session.lasting("check"):
        output = seat.fetch(reply, expected, deadline)
        seat.refuse_overruns()
        if not session.request.task.mutates_inputs:
            seat.refuse_changes(data, reply)
        seat.handle.verify_frozen(deadline)
        wrong = session.code.mismatch(data, output, expected)
        if wrong:
            raise VerdictError(Verdict.WRONG_ANSWER, wrong)
