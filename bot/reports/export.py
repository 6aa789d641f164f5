"""A board's submissions and results as files for spreadsheets and programs."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence

from bot.domain.records import BoardExport, ExportedSubmission
from bot.reports.blocks import Report, Text
from bot.reports.spreadsheet import as_file, inert

Row = dict[str, str | int | float | bool | None]
"""A line of a table by its columns."""


def export_report(export: BoardExport) -> Report:
    """`submissions.csv`, `results.csv`, and both in one JSON file."""
    board = export.board
    submissions = [submission_row(each) for each in export.submissions]
    results = [row for each in export.submissions for row in result_rows(each)]
    whole = {
        "board": board.name,
        "gpus": list(board.gpus),
        "deadline": None if board.deadline is None else board.deadline.isoformat(),
        "submissions": submissions,
        "results": results,
    }
    files = (
        as_file(f"{board.name}-submissions.csv", _csv(_SUBMISSION, submissions)),
        as_file(f"{board.name}-results.csv", _csv(_RESULT, results)),
        as_file(f"{board.name}.json", json.dumps(whole, indent=1, allow_nan=False)),
    )
    words = f"{len(submissions)} submissions, {len(results)} results; times in nanoseconds"
    return Report(f"Export of {board.name}", (Text(words), *files))


_SUBMISSION = (
    "submission", "identity", "person", "task_version", "file", "sha256", "mode", "gpus", "state",
    "created_at",
)  # fmt: skip
_RESULT = (
    "submission", "identity", "person", "task_version", "gpu", "verdict", "time_ns",
    "half_width_ns", "reference_ns", "ranked",
)  # fmt: skip


def submission_row(each: ExportedSubmission) -> Row:
    """One line of the submissions."""
    submission = each.submission
    return {
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


def result_rows(each: ExportedSubmission) -> Iterator[Row]:
    """One line of the results for each GPU type on which it was judged."""
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
            "reference_ns": None if reference is None else reference.time_ns,
            "ranked": outcome.gpu in each.ranked_on,
        }


def _csv(columns: Sequence[str], rows: Iterable[Row]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns)
    writer.writeheader()
    writer.writerows({name: inert(value) for name, value in row.items()} for row in rows)
    return text.getvalue()
