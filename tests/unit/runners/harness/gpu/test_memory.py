"""How the judge uses torch on a GPU; no GPU is needed."""

import torch

from runners.harness.gpu.memory import usual_algorithms


def test_a_tasks_wish_for_deterministic_algorithms_is_not_the_judges() -> None:
    torch.set_deterministic_debug_mode("error")
    try:
        with usual_algorithms():
            assert not torch.are_deterministic_algorithms_enabled()
        assert torch.get_deterministic_debug_mode() == 2
    finally:
        torch.set_deterministic_debug_mode("default")
