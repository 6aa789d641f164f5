"""A task: its files, its check, the contents of an upload, the changes of an update."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from bot.domain.board import Board
from bot.domain.tasks.bundle import TaskBundle, solutions
from bot.domain.tasks.grading import not_run, ranked_by
from bot.domain.tasks.lint import CheckStep, Finding, Level, TaskReport, lint
from bot.domain.tasks.task_file import ParsedTask
from bot.domain.tasks.template import shown_files, template_of
from bot.domain.text_diff import BoundedMatcher, StepBudget, lines_of, unified
from bot.domain.times import show_deadline
from bot.reports.blocks import Attachment, Block, Column, Log, Report, Table, Text, Tone
from runners.contract.task import Grader, TaskDefinition
from runners.contract.verdict import Verdict

_STEPS = 500_000
"""The most steps for comparing two files."""
_SHORT = 60
"""Longer values are shown only in the diff."""
_OWN_ROWS = frozenset({"description", "files", "tests", "benchmarks", "version_note", "difficulty"})
"""Fields that are not listed by name and value; the last two make no new version."""
_COLUMNS = (Column("what"), Column("now"), Column("then"))


def change_report(
    board: Board,
    before: TaskDefinition,
    after: TaskDefinition,
    *,
    gpus: Sequence[str],
    deadline: datetime | None,
) -> Report:
    """Return a row for each difference, then the diff line by line."""
    rows = [*_board_rows(board, gpus, deadline), *_task_rows(before, after)]
    title = f"What changes on {board.name}"
    if not rows:
        return Report(title, (Text("Nothing. The task is unchanged.", Tone.QUIET),))
    blocks: list[Block] = [Table("changes", _COLUMNS, tuple(rows))]
    difference = task_difference(before, after)
    if difference:
        blocks.append(Log("difference", difference, "diff"))
    return Report(title, tuple(blocks))


def task_difference(before: TaskDefinition, after: TaskDefinition) -> str:
    """Return a unified diff of the task's settings, and of each of its files."""
    parts = [
        _diff("description", f"{before.description}\n", f"{after.description}\n"),
        _diff("task", _settings_lines(before), _settings_lines(after)),
    ]
    parts += [
        _diff(name, before.files.get(name, ""), after.files.get(name, ""))
        for name in sorted({*before.files, *after.files})
    ]
    return "".join(parts)


Row = tuple[str, str, str]


def _board_rows(board: Board, gpus: Sequence[str], deadline: datetime | None) -> Iterator[Row]:
    if tuple(gpus) != board.gpus:
        yield "GPU types", ", ".join(board.gpus), ", ".join(gpus)
    if deadline != board.deadline:
        yield "deadline", _until(board.deadline), _until(deadline)


def _until(deadline: datetime | None) -> str:
    return "none" if deadline is None else show_deadline(deadline)


def _task_rows(before: TaskDefinition, after: TaskDefinition) -> Iterator[Row]:
    if before.description != after.description:
        yield "description", "", _line_changes(before.description, after.description)
    for kind in ("tests", "benchmarks"):
        old, new = _cases(before, kind), _cases(after, kind)
        if old != new:
            words = f"{len(new)}: {_line_changes(_lines(old), _lines(new))}"
            yield kind, str(len(old)), words
    yield from _field_rows(before, after)
    for name in sorted({*before.files, *after.files}):
        old_text, new_text = before.files.get(name), after.files.get(name)
        if old_text != new_text:
            unused = "" if name not in not_run(after) else " (not run)"
            yield name + unused, _presence(old_text), _file_change(old_text, new_text)


def _field_rows(before: TaskDefinition, after: TaskDefinition) -> Iterator[Row]:
    for field in TaskDefinition.model_fields:
        if field in _OWN_ROWS or getattr(before, field) == getattr(after, field):
            continue
        yield field, _value(before, field), _value(after, field)


def _value(task: TaskDefinition, field: str) -> str:
    text = task.model_dump_json(include={field}).removeprefix(f'{{"{field}":').removesuffix("}")
    text = text.strip('"')
    return text if len(text) <= _SHORT else "see the diff"


def _cases(task: TaskDefinition, kind: str) -> list[str]:
    cases = task.tests if kind == "tests" else task.benchmarks
    return [each.model_dump_json(exclude_defaults=True) for each in cases]


def _presence(text: str | None) -> str:
    return "none" if text is None else f"{len(text.splitlines())} lines"


def _file_change(before: str | None, after: str | None) -> str:
    return "removed" if after is None else _line_changes(before or "", after)


def _line_changes(before: str, after: str) -> str:
    """Return the number of added and removed lines, such as `+3 -1 lines`."""
    old, new = lines_of(before), lines_of(after)
    kept = sum(
        each.size for each in BoundedMatcher(old, new, StepBudget(_STEPS)).get_matching_blocks()
    )
    if kept == len(old) == len(new):
        return "+0 -0 lines (line endings)"
    return f"+{len(new) - kept} -{len(old) - kept} lines"


def _settings_lines(task: TaskDefinition) -> str:
    """Return the task's settings without description and files, one line each."""
    lines: list[str] = []
    for kind in ("tests", "benchmarks"):
        lines += [f"{kind}: {case}" for case in _cases(task, kind)]
    others = task.model_dump(mode="json", exclude=set(_OWN_ROWS))
    lines += [f"{field}: {value}" for field, value in others.items()]
    return _lines(lines)


def _lines(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _diff(name: str, before: str, after: str) -> str:
    if before == after:
        return ""
    matcher = BoundedMatcher(lines_of(before), lines_of(after), StepBudget(_STEPS))
    return _lines(list(unified(matcher, f"now/{name}", f"then/{name}")))


def task_report(board: Board, task: TaskDefinition) -> Report:
    """Return the description, the number of tests and benchmarks, and every file."""
    cases = f"{_count(len(task.tests), 'test')}, {_count(len(task.benchmarks), 'benchmark')}"
    cases = "; ".join(filter(None, (cases, ranked_by(task))))
    shown = shown_files(task, board.name)
    files = (Attachment(name, text.encode()) for name, text in shown.items())
    unused = (
        Text(f"{name} is not run: Podium's judge grades this task", Tone.QUIET)
        for name in sorted(not_run(task))
    )
    pins = (
        Text(f"ranked runs on {gpu} are timed only by pool {pool}", Tone.QUIET)
        for gpu, pool in board.pins
    )
    texts = (Text(task.description, has_markdown=True), Text(cases, Tone.QUIET), *pins, *unused)
    return Report(f"Task of {board.name}", (*texts, *files))


_MOST_ABOUT = 160
_MARKS = str.maketrans("", "", "`*$")


def about(task: TaskDefinition) -> str:
    """Return the first paragraph of the description, on one line, without headings and marks."""
    lines = task.description.strip()[: 10 * _MOST_ABOUT].splitlines()
    paragraphs = "\n".join("" if each.startswith("#") else each.strip() for each in lines)
    first = next((each for each in paragraphs.split("\n\n") if each.strip()), "")
    words = " ".join(first.translate(_MARKS).split())
    return words if len(words) <= _MOST_ABOUT else f"{words[: _MOST_ABOUT - 1]}…"


def template_report(board: Board, task: TaskDefinition, lang: str | None = None) -> Report:
    """Return the template of a language, by default the first; its header names the board.

    UserError when the task has none, or none of this language.
    """
    template = template_of(task, board.name, lang)
    language = lang or next(iter(task.templates))
    file = Attachment(template.name, template.content)
    return Report(f"Template of {board.name} ({language})", (file,))


_TONES = {Level.ERROR: Tone.BAD, Level.WARNING: Tone.PLAIN, Level.INFO: Tone.QUIET}


def task_check_report(report: TaskReport) -> Report:
    """Return which grader grades and why, then a line per finding; the title is the verdict."""
    head = (Text(report.grading),) if report.grading else ()
    lines = (*head, *(_line(finding) for finding in report.findings))
    if not report.was_run:
        lines += (Text(f"its solutions were not run: {report.obstacle}", Tone.BAD),)
    return Report(f"{report.task} on {report.gpu}: {_verdict(report)}", lines)


def _verdict(report: TaskReport) -> str:
    if report.undecided:
        return "choose the grader"
    if report.errors:
        return "errors to fix"
    return "ready to publish" if report.was_run else "well-formed, but not run"


def _line(finding: Finding) -> Text:
    words = f"{finding.level:<8} {finding.file}: {finding.message}"
    return Text(words, _TONES[finding.level])


def step_line(step: CheckStep, *, with_gpu: bool) -> str:
    """Return the state of a run of a check, such as `solutions/correct/fast.py: test 3/5`."""
    state = _state(step)
    words = state if state.startswith(step.name) else f"{step.name}: {state}"
    return f"{step.gpu}: {words}" if with_gpu else words


def _state(step: CheckStep) -> str:
    if step.finding is not None:
        return step.finding.message
    if step.stage is None:
        return "waiting"
    if step.note:
        return f"{step.stage}, {step.note}"
    return f"{step.stage} {step.done}/{step.total}" if step.total else step.stage


def grader_words(task: TaskDefinition) -> str:
    """Return which grader grades a published task, and which file is not run."""
    if task.grader is not Grader.NATIVE:
        return "The task's own evaluation grades"
    unused = ", ".join(sorted(not_run(task)))
    return f"Podium's judge grades{f', and {unused} is not run' if unused else ''}"


def upload_report(bundle: TaskBundle, parsed: ParsedTask) -> Report:
    """Return which grader grades, the upload's contents in numbers, and possible improvements."""
    task, shipped = parsed.task, solutions(bundle)
    right = sum(each.expect is Verdict.PASSED for each in shipped)
    counts = (
        _count(len(task.tests), "test"),
        _count(len(task.benchmarks), "benchmark"),
        _count(len(task.files), "file"),
        f"{right} correct and {_count(len(shipped) - right, 'wrong solution')}",
    )
    blocks: list[Block] = [
        Text(parsed.grading.why),
        Text("; ".join(filter(None, (", ".join(counts), ranked_by(task))))),
    ]
    remarks = (each.message for each in lint(task, shipped))
    blocks += [Text(f"warning: {words}") for words in (*parsed.warnings, *remarks)]
    return Report(f"Task {task.name}", tuple(blocks))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
