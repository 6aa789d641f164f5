"""One call of a submission under the profiler."""

from runners.contract.task import Workload
from runners.harness.channel import Operation
from runners.harness.correctness import planned, seed_of
from runners.harness.deadline import Deadline
from runners.harness.seating import take_seat
from runners.harness.session import Session
from runners.harness.timing import WARM_UPS
from runners.harness.verification import verify


def profile(session: Session, workload: Workload, deadline: Deadline) -> None:
    """One warm, checked call under the profiler in a fresh candidate."""
    data = session.code.generate(workload, seed_of(session.nonce, workload, 0))
    expected = session.code.expected(data)
    with take_seat(session, planned(data), expected) as seat:
        seat.build(deadline)
        launch = session.launch_of(workload)
        for _ in range(WARM_UPS):
            seat.call(Operation.RUN, data, expected, deadline, launch=launch)
        exchange = seat.call(Operation.PROFILE, data, expected, deadline, launch=launch)
        verify(seat, data, exchange.reply, expected, deadline=deadline)
