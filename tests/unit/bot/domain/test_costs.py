import pytest

from bot.domain.costs import MODAL_PRICES, NO_PRICES, cost, gpu_time_line, parse_prices, show_cost


def test_prices_are_read_by_any_name_of_a_gpu_type() -> None:
    found = parse_prices(("A100-40GB=0.0006", " H100! = 0.001 ", "RTX 4090=0"))
    assert found == {**MODAL_PRICES, "A100": 0.0006, "H100": 0.001, "RTX 4090": 0.0}
    assert parse_prices(()) == MODAL_PRICES
    assert parse_prices(("none",)) == {}


@pytest.mark.parametrize("text", ["A100", "=1", "A100=", "A100=-1", "A100=nan", "A100=inf", "1"])
def test_a_text_that_is_no_price_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"A100=0\.000583"):
        parse_prices((text,))


def test_a_cost_is_known_only_with_a_price() -> None:
    assert cost({"A100": 0.5}, "A100", 3.0) == 1.5
    assert cost(NO_PRICES, "A100", 3.0) is None


@pytest.mark.parametrize(
    ("value", "words"),
    [(None, "-"), (0.0, "$0.00"), (0.0058, "<$0.01"), (0.0156, "$0.02"), (12345.6, "$12,345.60")],
)
def test_a_cost_is_shown_in_dollars_and_cents(value: float | None, words: str) -> None:
    assert show_cost(value) == words


@pytest.mark.parametrize(
    ("gpu", "value", "words"),
    [
        ("H200", 0.0156, "GPU time 12.4 s on H200, about $0.02"),
        ("T4", 0.002, "GPU time 12.4 s on T4, less than $0.01"),
        ("CPU", None, "CPU time 12.4 s on CPU"),
    ],
)
def test_the_gpu_time_of_a_run_is_one_line(gpu: str, value: float | None, words: str) -> None:
    assert gpu_time_line(gpu, 12.4, value) == words
