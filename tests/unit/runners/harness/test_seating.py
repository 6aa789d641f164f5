from runners.harness.arena import lay_out
from runners.harness.seat import Seat
from runners.harness.seating import take_seat
from tests.doubles.judging import make_judging
from tests.unit.runners.harness.conftest import Sit


def test_a_task_on_the_cpu_gets_a_seat_there(sit: Sit) -> None:
    with take_seat(sit(make_judging()), lay_out(1), None) as seat:
        assert type(seat) is Seat
