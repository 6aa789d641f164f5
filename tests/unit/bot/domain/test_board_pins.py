import pytest

from bot.domain.board import ALL, ANY, apply_pins, parse_pins, show_pins, show_target
from bot.domain.errors import UserError

GPUS = ("A100", "H100")


def test_a_pool_is_named_for_one_gpu_type_or_for_all() -> None:
    assert parse_pins(("A100-40GB=Box, H100! = box modal", "modal", "*=any", "")) == (
        ("A100", "box"),
        ("H100", "box modal"),
        (ALL, "modal"),
        (ALL, ANY),
    )


@pytest.mark.parametrize("words", ["=box", "A100=", "a b c", "-", "A100=b\nx", "x" * 81])
def test_what_names_no_pool_is_refused_with_an_example(words: str) -> None:
    with pytest.raises(UserError, match="such as A100=local") as refused:
        parse_pins((words,))
    assert refused.value.code == "bad-pool"


def test_changes_are_made_in_order_and_the_rest_stays() -> None:
    both = apply_pins((), parse_pins(("modal",)), GPUS)
    assert both == (("A100", "modal"), ("H100", "modal"))
    one = apply_pins(both, parse_pins(("A100=box",)), GPUS)
    assert one == (("A100", "box"), ("H100", "modal"))
    assert apply_pins(one, parse_pins(("any, H100=box",)), GPUS) == (("H100", "box"),)
    assert apply_pins(one, (), GPUS) == one


def test_a_gpu_type_that_leaves_the_board_takes_its_pin_along() -> None:
    assert apply_pins((("A100", "box"), ("H100", "box")), (), ("H100",)) == (("H100", "box"),)
    with pytest.raises(UserError, match=r"L4, but .* only has A100, H100"):
        apply_pins((), parse_pins(("L4=box",)), GPUS)


def test_pins_are_shown_as_they_are_read() -> None:
    pins = (("A100", "box modal"), ("H100", "local"))
    assert parse_pins((show_pins(pins),)) == pins
    assert show_pins(()) == ""


def test_what_a_job_waits_for_names_its_pool() -> None:
    assert show_target("A100", "box") == "A100 of pool box"
    assert show_target("A100", "") == "A100"
