"""A task's templates as people get them, and what becomes of one that is handed in unchanged."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bot.domain.errors import UserError, unknown_name
from bot.domain.heading import parse_heading, with_board
from bot.domain.tasks.lint import parse_python
from runners.contract.task import TaskDefinition
from runners.contract.verdict import Verdict
from runners.languages import spec_by_suffix, spec_of

UNWRITTEN = frozenset({Verdict.WRONG_ANSWER, Verdict.INVALID_SUBMISSION, Verdict.CRASHED})
"""What a kernel may get whose body is still to be written."""
_ENTRIES = frozenset({"custom_kernel", "forward"})
_SHORT = 4096
"""Characters of the longest source that is looked through for a missing body."""


@dataclass(frozen=True, slots=True)
class Template:
    """One template as a board hands it out: its heading names that board, and nothing else does."""

    name: str
    text: str

    @property
    def content(self) -> bytes:
        """What is downloaded, and handed in again."""
        return self.text.encode()

    @property
    def marker(self) -> str:
        """The first word of each line of its heading."""
        return self.text.partition(" ")[0]

    @property
    def expected(self) -> frozenset[Verdict]:
        """The verdicts of which it must get one: `passed`, unless it is declared a stub.

        It is one where its heading expects another verdict, or its function has no body.
        UserError for a heading that no board takes.
        """
        expect = parse_heading(self.text).expect
        if expect is not None:
            return frozenset({Verdict(expect)})
        return UNWRITTEN if _is_unwritten(self) else frozenset({Verdict.PASSED})


def template_of(task: TaskDefinition, board: str, language: str | None = None) -> Template:
    """The template of a language as this board hands it out; without one the task's first.

    UserError when the task has none, or none of this language.
    """
    names = list(task.templates)
    if not names:
        raise UserError("no-template", "this task ships no template; look at the task itself")
    chosen = names[0] if language is None else language
    if chosen not in names:
        raise unknown_name("template", chosen, names)
    return _handed_out(task, board, task.templates[chosen])


def templates(task: TaskDefinition, board: str) -> dict[str, Template]:
    """Every template as this board hands it out, by the name of its file in the task."""
    files = sorted(set(task.templates.values()))
    return {file: _handed_out(task, board, file) for file in files}


def shown_files(task: TaskDefinition, board: str) -> Mapping[str, str]:
    """The files of a task as this board shows them: a template among them goes to this board."""
    return task.files | {file: each.text for file, each in templates(task, board).items()}


def _handed_out(task: TaskDefinition, board: str, file: str) -> Template:
    suffix = file.rpartition(".")[2]
    language = spec_by_suffix(f".{suffix}") or spec_of(task.lang)
    text = with_board(task.files[file], board, language.comment)
    return Template(f"{board}.{suffix}", text)


def _is_unwritten(template: Template) -> bool:
    """Whether the function that the task asks for says, in Python's words, that it has no body."""
    if not template.name.endswith(".py") or len(template.text) > _SHORT:
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
    return all(_says_nothing(statement) for statement in function.body)


def _says_nothing(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Expr(value=ast.Constant()):  # a docstring and `...` are constants
            return True
        case ast.Raise(exc=ast.Name(id=name) | ast.Call(func=ast.Name(id=name))):
            return name == "NotImplementedError"
        case _:
            return False
