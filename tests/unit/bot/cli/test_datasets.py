"""Tests of the files that tables are table_writer into."""

import csv
import importlib.util
from pathlib import Path

import pyarrow.parquet
import pytest

from bot.cli import datasets
from bot.cli.datasets import DataFormat, complete_folder, require_format, table_writer
from bot.domain.errors import UserError
from bot.reports.export import DataTable, Field, Kind, Row

TABLE = DataTable(
    "results",
    "How it ended.",
    (
        Field("number", Kind.INTEGER, "its number"),
        Field("name", Kind.TEXT, "whose it is"),
        Field("time_ns", Kind.REAL, "nanoseconds"),
        Field("ranked", Kind.BOOLEAN, "whether it counts"),
    ),
)
ROWS: list[Row] = [
    {"number": 1, "name": "=cmd()", "time_ns": 1.5, "ranked": True},
    {"number": 2, "name": "odd \udcff", "time_ns": None, "ranked": False},
    {"number": 3, "name": None, "time_ns": 2.5, "ranked": None},
]


def test_without_what_writes_parquet_it_is_said_before_anything_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    require_format(DataFormat.PARQUET)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    require_format(DataFormat.CSV)
    with pytest.raises(UserError, match=r"pip install 'kernel-podium\[export\]'.*--format csv"):
        require_format(DataFormat.PARQUET)


def test_a_spreadsheet_is_safe_to_open(tmp_path: Path) -> None:
    with table_writer(tmp_path, TABLE, DataFormat.CSV) as file:
        file.put(ROWS)
    with (tmp_path / "results.csv").open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    assert [row["name"] for row in rows] == ["'=cmd()", "odd \\udcff", ""]
    assert [row["time_ns"] for row in rows] == ["1.5", "", "2.5"]


@pytest.mark.parametrize("at_once", [1, 2, 1000])
def test_parquet_has_types_and_what_they_mean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(datasets, "_AT_ONCE", at_once)
    with table_writer(tmp_path, TABLE, DataFormat.PARQUET) as file:
        for row in ROWS:
            file.put([row])
    table = pyarrow.parquet.read_table(tmp_path / "results.parquet")
    assert table.to_pylist() == [ROWS[0], ROWS[1] | {"name": "odd \\udcff"}, ROWS[2]]
    assert table.schema.field("time_ns").metadata == {b"meaning": b"nanoseconds"}


def test_a_table_without_lines_has_its_columns(tmp_path: Path) -> None:
    for form in DataFormat:
        with table_writer(tmp_path, TABLE, form):
            pass
    assert (tmp_path / "results.csv").read_text("utf-8").strip() == "number,name,time_ns,ranked"
    assert pyarrow.parquet.read_table(tmp_path / "results.parquet").num_columns == 4


def test_a_folder_has_its_name_once_everything_is_in_it(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(ZeroDivisionError), complete_folder(out) as folder:
        raise ZeroDivisionError
    assert not out.exists()
    with pytest.raises(UserError, match="left by an interrupted export"), complete_folder(out):
        pass
    folder.rmdir()
    with complete_folder(out) as folder:
        (folder / "file").touch()
    assert [each.name for each in out.iterdir()] == ["file"]
    with pytest.raises(UserError, match="name another"), complete_folder(out):
        pass
