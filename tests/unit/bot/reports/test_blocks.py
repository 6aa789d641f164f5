"""Tests of the blocks."""

import pytest

from bot.reports.blocks import Column, Table


def test_a_table_refuses_a_row_of_another_length() -> None:
    with pytest.raises(ValueError, match="one cell per column"):
        Table("people", (Column("who"), Column("age", numeric=True)), (("ada",),))


def test_a_table_may_be_empty() -> None:
    assert Table("people", (Column("who"),), ()).rows == ()
