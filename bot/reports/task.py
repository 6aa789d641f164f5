"""The reports of a task: what it asks for, and a file to begin with."""

from bot.domain.board import Board
from bot.domain.tasks.template import shown_files, template_of
from bot.reports.blocks import Attachment, Report, Text, Tone
from runners.contract.task import TaskDefinition


def task_report(board: Board, task: TaskDefinition) -> Report:
    """The description, how much there is to pass, and every file."""
    cases = f"{len(task.tests)} tests, {len(task.benchmarks)} benchmarks"
    shown = shown_files(task, board.name)
    files = (Attachment(name, text.encode()) for name, text in shown.items())
    pins = (
        Text(f"ranked runs on {gpu} are timed only by pool {pool}", Tone.QUIET)
        for gpu, pool in board.pins
    )
    return Report(
        f"Task of {board.name}", (Text(task.description), Text(cases, Tone.QUIET), *pins, *files)
    )


def template_report(board: Board, task: TaskDefinition, lang: str | None = None) -> Report:
    """The template of a language, else the first, whose heading names the board.

    UserError when the task has none, or none of this language.
    """
    template = template_of(task, board.name, lang)
    language = lang or next(iter(task.templates))
    file = Attachment(template.name, template.content)
    return Report(f"Template of {board.name} ({language})", (file,))
