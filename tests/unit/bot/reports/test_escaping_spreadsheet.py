import gzip

import pytest

from bot.reports.escaping import as_file, escape_formula


@pytest.mark.parametrize("formula", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_a_cell_is_never_a_formula(formula: str) -> None:
    assert escape_formula(formula) == f"'{formula}"


@pytest.mark.parametrize("value", ["a=1", "", 7, -1.5, None, True])
def test_other_cells_stay(value: object) -> None:
    assert escape_formula(value) == value


def test_what_is_large_is_compressed() -> None:
    assert as_file("a.csv", "ü").data == "ü".encode()
    large = as_file("a.csv", "x" * (9 << 20))
    assert large.name == "a.csv.gz"
    assert gzip.decompress(large.data) == b"x" * (9 << 20)
