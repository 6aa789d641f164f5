import pytest

from bot.domain.status import NO_PRICES, cost, parse_prices, show_cost


def test_prices_are_read_by_any_name_of_a_gpu_type() -> None:
    assert parse_prices(("A100-40GB=0.000583", " H100! = 0.001 ")) == {
        "A100": 0.000583,
        "H100": 0.001,
    }
    assert parse_prices(()) == {}


@pytest.mark.parametrize("text", ["A100", "=1", "A100=", "A100=-1", "A100=nan", "A100=inf", "1"])
def test_what_is_no_price_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"A100=0\.000583"):
        parse_prices((text,))


def test_a_cost_is_known_where_the_price_is() -> None:
    assert cost({"A100": 0.5}, "A100", 3.0) == 1.5
    assert cost(NO_PRICES, "A100", 3.0) is None


@pytest.mark.parametrize(
    ("value", "words"),
    [(None, "-"), (0.00058312, "0.0005831"), (12.345, "12.35"), (12345.6, "12346")],
)
def test_a_cost_is_shown_short(value: float | None, words: str) -> None:
    assert show_cost(value) == words
