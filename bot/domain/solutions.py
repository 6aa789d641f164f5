"""The solutions that a task ships, each with the verdict it must get."""

from dataclasses import dataclass

from bot.domain.acceptance import MAX_SOURCE_BYTES, suffixes
from bot.domain.errors import UserError
from bot.domain.heading import parse_heading
from bot.domain.tasks.bundle import TaskBundle
from runners.contract.verdict import Verdict

_EXPECTED = {"correct": Verdict.PASSED, "wrong": Verdict.WRONG_ANSWER}


@dataclass(frozen=True, slots=True)
class Solution:
    """One shipped submission; `name` is its path inside the task, `needs` what it runs on."""

    name: str
    source: str
    expect: Verdict
    needs: tuple[str, ...] = ()


def solutions(bundle: TaskBundle) -> tuple[Solution, ...]:
    """The files of solutions/correct and solutions/wrong, by name, correct ones first."""
    return tuple(
        _solution(bundle, f"solutions/{kind}/{name}", expected)
        for kind, expected in _EXPECTED.items()
        for name in bundle.under(f"solutions/{kind}")
        if name.endswith(suffixes())
    )


def _solution(bundle: TaskBundle, name: str, expected: Verdict) -> Solution:
    source = bundle.text(name)
    if len(source) > MAX_SOURCE_BYTES:
        where = bundle.locate(name)
        raise UserError("bad-task", f"{where}: a submission has at most {MAX_SOURCE_BYTES:,} bytes")
    try:
        heading = parse_heading(source)
        verdict = expected if heading.expect is None else Verdict(heading.expect)
    except UserError as error:
        raise UserError(error.code, f"{bundle.locate(name)}: {error.message}") from error
    if (verdict is Verdict.PASSED) != (expected is Verdict.PASSED):
        raise UserError(
            "bad-heading",
            f"{bundle.locate(name)}: expects {verdict.value!r}; a solution that passes lies under "
            "solutions/correct, any other under solutions/wrong",
        )
    return Solution(name, source, verdict, heading.needs)
