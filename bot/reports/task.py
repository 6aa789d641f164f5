"""The reports of a task: what it asks for, and a file to begin with."""

from bot.domain.board import Board
from bot.domain.errors import UserError, unknown_name
from bot.reports.blocks import Attachment, Report, Text, Tone
from runners.contract.task import TaskDefinition


def task_report(board: Board, task: TaskDefinition) -> Report:
    """The description, how much there is to pass, and every file."""
    cases = f"{len(task.tests)} tests, {len(task.benchmarks)} benchmarks"
    files = (Attachment(name, text.encode()) for name, text in task.files.items())
    return Report(
        f"Task of {board.name}", (Text(task.description), Text(cases, Tone.QUIET), *files)
    )


def template_report(board: Board, task: TaskDefinition, lang: str | None = None) -> Report:
    """The template of a language, with the heading that names its board in place.

    UserError when the task has none, or none of this language; without one the first is given.
    """
    name = _language(task, lang)
    file_name = task.templates[name]
    mark = "#" if file_name.endswith(".py") else "//"
    text = f"{mark}!PODIUM leaderboard {board.name}\n{task.files[file_name]}"
    suffix = file_name.rpartition(".")[2]
    file = Attachment(f"{board.name}.{suffix}", text.encode())
    return Report(f"Template of {board.name} ({name})", (file,))


def _language(task: TaskDefinition, lang: str | None) -> str:
    names = list(task.templates)
    if not names:
        raise UserError("no-template", "this task ships no template; look at the task itself")
    if lang is None:
        return names[0]
    if lang not in names:
        raise unknown_name("template", lang, names)
    return lang
