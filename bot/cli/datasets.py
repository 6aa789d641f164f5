"""Writes tables to files, as CSV or Parquet, in parts."""

import csv
import importlib.util
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from bot.domain.api import export as api
from bot.domain.errors import UserError
from bot.reports.escaping import escape_formula
from bot.reports.export import TABLES, DataTable, Kind, Row, codebook

if TYPE_CHECKING:
    import pyarrow as pa

_AT_ONCE = 2000
"""How many rows of Parquet are buffered and written together."""


class DataFormat(StrEnum):
    """The format of a table's file."""

    CSV = "csv"
    """For spreadsheets, and for everything else that reads text."""
    PARQUET = "parquet"
    """For programs: typed, compressed, with descriptions of the columns."""


FormatOption = Annotated[DataFormat, typer.Option("--format", help="File format of the tables")]


def require_format(form: DataFormat) -> None:
    """Raise UserError unless tables in this format can be written here."""
    if form is DataFormat.PARQUET and importlib.util.find_spec("pyarrow") is None:
        raise UserError(
            "no-parquet",
            "Parquet needs pyarrow; run `pip install 'kernel-podium[export]'`, or export with "
            "`--format csv`",
        )


_SOURCES = "Each source is stored once in `sources/`, under the SHA-256 of its content."


async def write_board(
    head: api.ExportHead, pieces: AsyncIterator[api.ExportPiece], folder: Path, form: DataFormat
) -> None:
    """Write the export of one board; tables that only a newer server knows are ignored."""
    words = codebook(head.board, head.submissions, _SOURCES)
    (folder / "README.md").write_text(words, "utf-8")
    (folder / "sources").mkdir()
    with tables_in(folder, TABLES, form) as put:
        async for piece in pieces:
            match piece:
                case api.ExportRows():
                    put(piece)
                case api.ExportSource():
                    data = piece.text.encode("utf-8", "surrogatepass")
                    (folder / "sources" / piece.sha256).write_bytes(data)
                case api.ExportEnd():
                    return
                case api.ExportCompetition() | api.ExportHead():
                    pass


@contextmanager
def tables_in(
    folder: Path, tables: Sequence[DataTable], form: DataFormat
) -> Iterator[Callable[[api.ExportRows], None]]:
    """Open a file per table; yield a function that writes rows, and ignores unknown tables."""
    with ExitStack() as stack:
        files = {
            each.name: (each, stack.enter_context(table_writer(folder, each, form)))
            for each in tables
        }

        def put(piece: api.ExportRows) -> None:
            if piece.table in files:
                table, file = files[piece.table]
                names = [field.name for field in table.fields]
                file.put({name: row.get(name) for name in names} for row in piece.rows)

        yield put


class Writer(Protocol):
    """Writes the rows of one table."""

    def put(self, rows: Iterable[Row]) -> None:
        """Write these rows."""


@contextmanager
def complete_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder, renamed to `folder` at the end; UserError if `folder` exists."""
    if folder.exists():
        raise UserError("folder-exists", f"{folder}: folder already exists; name another one")
    partial = folder.with_name(f"{folder.name}.partial")
    try:
        partial.mkdir(mode=0o700, parents=True)
    except FileExistsError as error:
        words = f"{partial}: left by an interrupted export; remove it, or name another folder"
        raise UserError("folder-exists", words) from error
    except OSError as error:
        raise UserError("bad-folder", f"{partial}: cannot be created ({error.strerror})") from error
    yield partial
    partial.rename(folder)


def table_writer(
    folder: Path, table: DataTable, form: DataFormat
) -> AbstractContextManager[Writer]:
    """Open the writer of a table's file."""
    path = folder / f"{table.name}.{form}"
    return _csv(path, table) if form is DataFormat.CSV else _parquet(path, table)


class _CsvFile:
    def __init__(self, writer: "csv.DictWriter[str]") -> None:
        self._writer = writer

    def put(self, rows: Iterable[Row]) -> None:
        self._writer.writerows(
            {name: escape_formula(value) for name, value in row.items()} for row in rows
        )


@contextmanager
def _csv(path: Path, table: DataTable) -> Iterator[Writer]:
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        writer = csv.DictWriter(file, [each.name for each in table.fields])
        writer.writeheader()
        yield _CsvFile(writer)


class _ParquetFile:
    """Buffers rows, because each group of rows in a Parquet file has its own overhead."""

    def __init__(self, schema: "pa.Schema", path: Path) -> None:
        import pyarrow as pa  # noqa: PLC0415 - takes 0.25 s, and only this command needs it
        from pyarrow.parquet import ParquetWriter  # noqa: PLC0415 - the same

        self._table = pa.Table
        self._schema = schema
        self._writer = ParquetWriter(path, schema, compression="zstd")
        self._waiting: list[Row] = []

    def put(self, rows: Iterable[Row]) -> None:
        self._waiting += rows
        if len(self._waiting) >= _AT_ONCE:
            self._flush()

    def close(self) -> None:
        """Write the buffered rows, and the footer of the Parquet file."""
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        whole = [{name: _encodable(value) for name, value in row.items()} for row in self._waiting]
        self._writer.write_table(self._table.from_pylist(whole, schema=self._schema))
        self._waiting = []


def _encodable(value: object) -> object:
    """Return text that UTF-8 can encode: a file name may have a lone surrogate."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    return value


@contextmanager
def _parquet(path: Path, table: DataTable) -> Iterator[Writer]:
    import pyarrow as pa  # noqa: PLC0415 - see above

    kinds = {
        Kind.TEXT: pa.string(),
        Kind.INTEGER: pa.int64(),
        Kind.REAL: pa.float64(),
        Kind.BOOLEAN: pa.bool_(),
    }
    fields = [
        pa.field(each.name, kinds[each.kind], metadata={"meaning": each.meaning})
        for each in table.fields
    ]
    file = _ParquetFile(pa.schema(fields, metadata={"about": table.about}), path)
    try:
        yield file
    finally:
        file.close()
