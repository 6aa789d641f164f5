"""A board's submissions as a dataset, and the report of an export."""

import csv
import io
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from bot.domain.api.export import ExportEnd, ExportHead, ExportPiece, ExportRows, ExportSource
from bot.domain.records import BoardExport, ExportedSubmission, StoredEvaluation
from bot.reports.blocks import Report, Text
from bot.reports.escaping import as_file, escape_formula
from runners.contract.evaluation import Measurement

Row = dict[str, str | int | float | bool | None]
"""A row of a table by its columns."""


def export_report(export: BoardExport) -> Report:
    """Return `submissions.csv`, `results.csv`, and both in one JSON file."""
    board = export.board
    submissions, results = list(submission_rows(export)), list(result_rows(export))
    whole = {
        "board": board.name,
        "gpus": list(board.gpus),
        "deadline": None if board.deadline is None else board.deadline.isoformat(),
        "submissions": submissions,
        "results": results,
    }
    files = (
        as_file(f"{board.name}-submissions.csv", _csv(SUBMISSIONS, submissions)),
        as_file(f"{board.name}-results.csv", _csv(RESULTS, results)),
        as_file(f"{board.name}.json", json.dumps(whole, indent=1, allow_nan=False)),
    )
    words = f"{len(submissions)} submissions, {len(results)} results; times in nanoseconds"
    return Report(f"Export of {board.name}", (Text(words), *files))


def _csv(table: "DataTable", rows: Iterable[Row]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in table.fields])
    writer.writeheader()
    writer.writerows({name: escape_formula(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


class Kind(StrEnum):
    """The type of a column; any column except `submission` may be empty."""

    TEXT = "text"
    INTEGER = "integer"
    REAL = "real"
    BOOLEAN = "boolean"


@dataclass(frozen=True, slots=True)
class Field:
    """One column."""

    name: str
    kind: Kind
    meaning: str


@dataclass(frozen=True, slots=True)
class DataTable:
    """A table whose rows are written in parts."""

    name: str
    about: str
    fields: tuple[Field, ...]


def _fields(*described: tuple[str, Kind, str]) -> tuple[Field, ...]:
    return tuple(Field(*each) for each in described)


SUBMISSIONS = DataTable(
    "submissions",
    "All submissions, oldest first.",
    _fields(
        ("submission", Kind.INTEGER, "its number"),
        ("identity", Kind.TEXT, "the account, such as `discord:17` or `local:ada`"),
        ("person", Kind.TEXT, "the account's display name"),
        ("task_version", Kind.INTEGER, "the task version that judged it, from 1"),
        ("file", Kind.TEXT, "the name of the submitted file"),
        ("sha256", Kind.TEXT, "SHA-256 of the submitted bytes, also the name of the source file"),
        ("mode", Kind.TEXT, "`test`, `benchmark`, `profile` or `ranked`; only ranked ones score"),
        ("gpus", Kind.TEXT, "the requested GPU types, separated by spaces"),
        ("state", Kind.TEXT, "`queued`, `running`, `finished`, `failed` or `cancelled`"),
        ("created_at", Kind.TEXT, "when it was submitted, ISO 8601 in UTC"),
    ),
)
RESULTS = DataTable(
    "results",
    "The result of each submission on each GPU type.",
    _fields(
        ("submission", Kind.INTEGER, "its number"),
        ("identity", Kind.TEXT, "as in `submissions`"),
        ("person", Kind.TEXT, "as in `submissions`"),
        ("task_version", Kind.INTEGER, "as in `submissions`"),
        ("gpu", Kind.TEXT, "the GPU type"),
        ("verdict", Kind.TEXT, "the verdict: `passed`, or why it failed"),
        (
            "time_ns",
            Kind.REAL,
            "the score in nanoseconds, lower is better; only for ranked submissions",
        ),
        (
            "half_width_ns",
            Kind.REAL,
            "half-width of the score's 95 % confidence interval, nanoseconds",
        ),
        (
            "resolution_ns",
            Kind.REAL,
            "what the judge's clock cannot see, nanoseconds; empty if nothing confirms the score",
        ),
        (
            "claimed_ns",
            Kind.REAL,
            "what the submission's own clock says, nanoseconds; it decides nothing",
        ),
        (
            "reference_ns",
            Kind.REAL,
            "the time of the task's reference on this GPU type, nanoseconds",
        ),
        ("ranked", Kind.BOOLEAN, "whether it counts: not withdrawn, disqualified or held back"),
    ),
)
CASES = DataTable(
    "cases",
    "Each test and benchmark of each evaluation, with all measurements.",
    _fields(
        ("submission", Kind.INTEGER, "its number"),
        ("gpu", Kind.TEXT, "the GPU type"),
        ("judged_at", Kind.TEXT, "when the evaluation was stored, ISO 8601 in UTC"),
        ("case", Kind.INTEGER, "its index in the evaluation, from 1"),
        ("kind", Kind.TEXT, "`test`, `benchmark` or `profile`"),
        ("spec", Kind.TEXT, "the arguments of the input"),
        ("status", Kind.TEXT, "`passed`, `failed` or `skipped`"),
        (
            "message",
            Kind.TEXT,
            "the error message, including those of ranked cases, whose inputs are secret",
        ),
        ("time_ns", Kind.REAL, "the time that the run reported, nanoseconds"),
        ("half_width_ns", Kind.REAL, "half-width of its 95 % confidence interval, nanoseconds"),
        ("bound_ns", Kind.REAL, "the time by the judge's own clock, nanoseconds"),
        (
            "resolution_ns",
            Kind.REAL,
            (
                "the resolution: by how much a time could be too low without being noticed, "
                "nanoseconds"
            ),
        ),
        ("claimed_ns", Kind.REAL, "the time by the submission's own clock, nanoseconds"),
        ("rounds", Kind.INTEGER, "number of fresh processes that timed it"),
        ("stop_reason", Kind.TEXT, "why timing stopped after these rounds"),
        ("samples_ns", Kind.TEXT, "every raw sample in nanoseconds, as a JSON list per round"),
        ("card", Kind.TEXT, "the GPU's product name"),
        ("driver", Kind.TEXT, "the driver version"),
        ("cuda", Kind.TEXT, "the CUDA version"),
        ("torch", Kind.TEXT, "the PyTorch version"),
        (
            "harness",
            Kind.TEXT,
            "the version of the judge; times from different versions are not comparable",
        ),
        ("wall_s", Kind.REAL, "how long the whole evaluation took, seconds"),
    ),
)
_MEASURED = (
    "time_ns", "half_width_ns", "bound_ns", "resolution_ns", "claimed_ns", "rounds", "stop_reason",
    "samples_ns",
)  # fmt: skip
TABLES = (SUBMISSIONS, RESULTS, CASES)
ROWS_PER_PART = 500
"""Rows in one part of a table."""


def submission_rows(export: BoardExport) -> Iterator[Row]:
    """Yield the rows of `submissions`."""
    for each in export.submissions:
        submission = each.submission
        yield {
            "submission": submission.id,
            "identity": each.person.identity,
            "person": each.person.name,
            "task_version": each.version,
            "file": submission.file_name,
            "sha256": submission.source_hash,
            "mode": submission.mode.value,
            "gpus": " ".join(submission.gpus),
            "state": submission.state.value,
            "created_at": submission.created_at.isoformat(),
        }


def result_rows(export: BoardExport) -> Iterator[Row]:
    """Yield the rows of `results`: one for each GPU type on which a submission was judged."""
    for each in export.submissions:
        for outcome in each.outcomes:
            score, reference = outcome.score, each.references.get(outcome.gpu)
            yield {
                "submission": each.submission.id,
                "identity": each.person.identity,
                "person": each.person.name,
                "task_version": each.version,
                "gpu": outcome.gpu,
                "verdict": outcome.verdict.value,
                "time_ns": None if score is None else score.time_ns,
                "half_width_ns": None if score is None else score.half_width_ns,
                "resolution_ns": None if score is None else score.resolution_ns,
                "claimed_ns": None if score is None else score.claimed_ns,
                "reference_ns": None if reference is None else reference.time_ns,
                "ranked": outcome.gpu in each.ranked_on,
            }


def case_rows(each: ExportedSubmission, stored: Sequence[StoredEvaluation]) -> Iterator[Row]:
    """Yield the rows of `cases` for one submission."""
    for one in stored:
        evaluation, machine = one.evaluation, one.evaluation.environment
        for number, case in enumerate(evaluation.cases, start=1):
            yield {
                "submission": each.submission.id,
                "gpu": one.gpu,
                "judged_at": one.at.isoformat(),
                "case": number,
                "kind": case.kind.value,
                "spec": case.spec,
                "status": case.status.value,
                "message": case.message,
                **_measured(case.measurement),
                "card": machine.gpu,
                "driver": machine.driver,
                "cuda": machine.cuda,
                "torch": machine.torch,
                "harness": machine.harness_version,
                "wall_s": evaluation.wall_s,
            }


def _measured(timed: Measurement | None) -> Row:
    """Return the columns of a timed case; empty for others."""
    if timed is None:
        return dict.fromkeys(_MEASURED)
    return {
        "time_ns": timed.time_ns,
        "half_width_ns": timed.half_width_ns,
        "bound_ns": timed.bound_ns,
        "resolution_ns": timed.resolution_ns,
        "claimed_ns": timed.claimed_ns,
        "rounds": timed.rounds,
        "stop_reason": timed.stop_reason.value,
        "samples_ns": json.dumps(timed.samples),
    }


async def pieces(
    export: BoardExport,
    evaluations: AsyncIterator[tuple[ExportedSubmission, Sequence[StoredEvaluation]]],
    sources: AsyncIterator[tuple[str, str]],
) -> AsyncGenerator[ExportPiece, None]:
    """Yield a whole export in pieces of moderate size, from its head to its end."""
    yield ExportHead(board=export.board.name, submissions=len(export.submissions))
    for table, rows in ((SUBMISSIONS, submission_rows(export)), (RESULTS, result_rows(export))):
        while part := tuple(islice(rows, ROWS_PER_PART)):
            yield ExportRows(table=table.name, rows=part)
    async for each, stored in evaluations:
        if stored:
            yield ExportRows(table=CASES.name, rows=tuple(case_rows(each, stored)))
    async for digest, text in sources:
        yield ExportSource(sha256=digest, text=text)
    yield ExportEnd()


def codebook(board: str, submissions: int, sources: str) -> str:
    """Return the README of the tables' folder; `sources` says where the sources are."""
    words = [
        f"# {board}",
        "",
        f"An export of a Podium leaderboard: {submissions} submissions. {sources}",
        "It contains data that is hidden on the board; review it before you publish it.",
    ]
    for table in TABLES:
        words += ["", f"## {table.name}", "", table.about, "", "| column | type | meaning |"]
        words += ["|---|---|---|"]
        words += [f"| `{each.name}` | {each.kind} | {each.meaning} |" for each in table.fields]
    return "\n".join(words) + "\n"
