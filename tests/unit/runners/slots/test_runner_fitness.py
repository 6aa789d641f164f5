import pytest

from runners.contract.runner import OutOfService, RunnerError
from runners.slots.harness import UnfitError
from runners.slots.runner import Fitness


def fall(fitness: Fitness, error: Exception) -> None:
    with pytest.raises(type(error)), fitness.recorded():
        raise error


def test_a_slot_is_out_of_service_until_it_was_used_again() -> None:
    fitness = Fitness("H200", ("GPU-a", "GPU-b"))

    fall(fitness, UnfitError("it is warm"))
    fall(fitness, UnfitError("it is hot"))
    assert fitness.outages == tuple(
        OutOfService(gpu="H200", card=card, why="it is hot") for card in ("GPU-a", "GPU-b")
    )

    with fitness.recorded():
        pass
    assert (fitness.unfit, fitness.outages) == ("", ())


@pytest.mark.parametrize("before", ["", "it is hot"])
def test_another_failure_says_nothing_of_the_gpu(before: str) -> None:
    fitness = Fitness("CPU")
    fitness.unfit = before

    fall(fitness, RunnerError("the disk is full"))

    assert fitness.unfit == before
    assert [each.card for each in fitness.outages] == (["CPU"] if before else [])
