"""The report of two submissions side by side."""

from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from bot.domain.records import ComparedSubmission, SubmissionComparison
from bot.domain.scoring import is_ahead
from bot.domain.times import show_score, show_speed_up
from bot.reports.blocks import Attachment, Block, Column, Log, Report, Table, Text, Tone
from bot.reports.escaping import clean
from runners.contract.verdict import VERDICT_WORDS, Verdict

_WIDEST = 90
"""The most characters to which the first column is padded."""


def comparison_report(comparison: SubmissionComparison) -> Report:
    """Return a row for each GPU type, then the diff of the sources."""
    blocks = [*times(comparison)]
    words = why_no_diff(comparison)
    if words is not None:
        blocks.append(words)
    else:
        blocks.append(Log("difference", comparison.difference, "diff"))
        columns = _two_columns(comparison.side_by_side)
        blocks.append(Attachment("side-by-side.txt", columns.encode()))
    return Report(" and ".join(names(comparison)), tuple(blocks))


def times(comparison: SubmissionComparison) -> Iterator[Block]:
    """Yield both results on each GPU type, and which is faster if that is certain."""
    first, second = comparison.first, comparison.second
    sides = names(comparison)
    gpus = sorted({*first.verdicts, *second.verdicts})
    comparable = first.submission.task_version == second.submission.task_version
    rows = [(gpu, _result(first, gpu), _result(second, gpu)) for gpu in gpus]
    columns = (Column("GPU"), Column(sides[0], numeric=True), Column(sides[1], numeric=True))
    if comparable and first.scores.keys() & second.scores.keys():
        related = tuple((*row, _relation(first, second, row[0])) for row in rows)
        yield Table("times", (*columns, Column("second vs first")), related)
    elif rows:
        yield Table("times", columns, tuple(rows))
    if not (first.scores or second.scores):
        yield Text("neither submission has a ranked time", Tone.QUIET)
    elif not comparable:
        words = (
            "the submissions were judged with different task versions, so their times are not "
            "comparable"
        )
        yield Text(words, Tone.QUIET)


def why_no_diff(comparison: SubmissionComparison) -> Text | None:
    """Return why no diff of the sources is shown; None when there is one."""
    if comparison.too_long:
        return Text("the sources are too long for a line-by-line comparison", Tone.QUIET)
    if comparison.difference:
        return None
    if comparison.side_by_side:
        return Text("the sources differ only in their line endings", Tone.QUIET)
    return Text("the sources are identical", Tone.QUIET)


def names(comparison: SubmissionComparison) -> tuple[str, str]:
    """Return the names of both submissions."""
    return f"#{comparison.first.submission.id}", f"#{comparison.second.submission.id}"


def _two_columns(rows: Sequence[tuple[str, str, str]]) -> str:
    """Return both sources next to each other; a line longer than its column is not cut."""
    cleaned = [
        (clean(old).expandtabs(4), mark, clean(new).expandtabs(4)) for old, mark, new in rows
    ]
    width = min(_WIDEST, max(cell_len(old) for old, _, _ in cleaned))
    lines = (
        f"{old}{' ' * (width - cell_len(old))} {mark} {new}".rstrip() for old, mark, new in cleaned
    )
    return "\n".join(lines) + "\n"


def _result(side: ComparedSubmission, gpu: str) -> str:
    """Return the ranked time, else the verdict; empty when it was not judged."""
    value = side.scores.get(gpu)
    if value is not None:
        return show_score(value)
    verdict = side.verdicts.get(gpu)
    if verdict is Verdict.PASSED and side.submission.is_ranked:
        return "passed, not ranked"
    return "" if verdict is None else VERDICT_WORDS[verdict]


def _relation(first_side: ComparedSubmission, second_side: ComparedSubmission, gpu: str) -> str:
    first, second = first_side.scores.get(gpu), second_side.scores.get(gpu)
    if first is None or second is None:
        return ""
    if is_ahead(second, first):
        return f"{show_speed_up(first, second)} as fast"
    if is_ahead(first, second):
        return f"{show_speed_up(second, first)} as long"
    return "cannot be told apart"
