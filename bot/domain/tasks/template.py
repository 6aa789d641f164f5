"""A task's templates as boards offer them, and the verdicts that unchanged ones must get."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bot.domain.acceptance import parse_header, with_board
from bot.domain.errors import UserError, unknown_name
from bot.domain.tasks.lint import parse_python
from runners.contract.task import TaskDefinition
from runners.contract.verdict import Verdict
from runners.languages import spec_by_suffix, spec_of

STUB_VERDICTS = frozenset({Verdict.WRONG_ANSWER, Verdict.INVALID_SUBMISSION, Verdict.CRASHED})
"""Verdicts that a kernel without a body may get."""
_ENTRIES = frozenset({"custom_kernel", "forward"})
_LONGEST_STUB = 4096
"""Longer sources, in characters, are not searched for a missing body."""


@dataclass(frozen=True, slots=True)
class Template:
    """A template as a board offers it: its header names only that board."""

    name: str
    text: str

    @property
    def content(self) -> bytes:
        """Return the bytes for download, which can be submitted unchanged."""
        return self.text.encode()

    @property
    def marker(self) -> str:
        """Return the first word of each header line."""
        return self.text.partition(" ")[0]

    @property
    def expected(self) -> frozenset[Verdict]:
        """Return the accepted verdicts: only `passed`, unless it is a stub.

        It is a stub when its header expects another verdict, or its function has no body. UserError
        for a header that no board accepts.
        """
        expect = parse_header(self.text).expect
        if expect is not None:
            return frozenset({Verdict(expect)})
        return STUB_VERDICTS if _is_stub(self) else frozenset({Verdict.PASSED})


def template_of(task: TaskDefinition, board: str, language: str | None = None) -> Template:
    """Return the template of a language as this board offers it; by default the first.

    UserError when the task has none, or none in this language.
    """
    names = list(task.templates)
    if not names:
        raise UserError(
            "no-template", "this task has no template; look at the task's files instead"
        )
    chosen = names[0] if language is None else language
    if chosen not in names:
        raise unknown_name("template", chosen, names)
    return _board_template(task, board, task.templates[chosen])


def templates(task: TaskDefinition, board: str) -> dict[str, Template]:
    """Return every template as this board offers it, by its file name in the task."""
    files = sorted(set(task.templates.values()))
    return {file: _board_template(task, board, file) for file in files}


def shown_files(task: TaskDefinition, board: str) -> Mapping[str, str]:
    """Return a task's files as this board shows them; its templates name this board."""
    return task.files | {file: each.text for file, each in templates(task, board).items()}


def _board_template(task: TaskDefinition, board: str, file: str) -> Template:
    suffix = file.rpartition(".")[2]
    language = spec_by_suffix(f".{suffix}") or spec_of(task.lang)
    text = with_board(task.files[file], board, language.comment)
    return Template(f"{board}.{suffix}", text)


def _is_stub(template: Template) -> bool:
    """Return whether the function that the task requires has no body, in Python."""
    if not template.name.endswith(".py") or len(template.text) > _LONGEST_STUB:
        return False
    try:
        tree = parse_python(template.text, template.name)
    except UserError:
        return False
    return any(_has_no_body(function) for function in _entries(tree))


def _entries(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in _ENTRIES:
            yield node


def _has_no_body(function: ast.FunctionDef) -> bool:
    return all(_is_placeholder(statement) for statement in function.body)


def _is_placeholder(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Expr(value=ast.Constant()):  # a docstring and `...` are constants
            return True
        case ast.Raise(exc=ast.Name(id=name) | ast.Call(func=ast.Name(id=name))):
            return name == "NotImplementedError"
        case _:
            return False
