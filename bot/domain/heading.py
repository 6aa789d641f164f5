"""The header that a submission may have in comments above its first line of code."""

from dataclasses import dataclass, replace

from bot.domain.errors import UserError
from runners.contract.formula import FormulaError
from runners.contract.launch import MARKER, OVERRIDES, comment_lines, parse_sizes
from runners.contract.verdict import Verdict
from runners.languages import specs

_COMMENTS = tuple(dict.fromkeys(each.comment for each in specs()))
_OURS = tuple(f"{comment}!PODIUM" for comment in _COMMENTS)
_BOTH = (*(f"{comment}!POPCORN" for comment in _COMMENTS), *_OURS)
_KEYS = {"leaderboard": _BOTH, "gpus": _BOTH, "gpu": _BOTH, "expect": _OURS, "needs": _OURS}
_KEYS |= dict.fromkeys(OVERRIDES, (MARKER,))
_PLACE = frozenset({"leaderboard", "gpus", "gpu"})
"""The keys that choose a file's board and GPU types."""


@dataclass(frozen=True, slots=True)
class Heading:
    """The header of a file; `expect` and `needs` are for files that tasks ship."""

    leaderboard: str | None = None
    gpus: tuple[str, ...] = ()
    expect: str | None = None
    needs: tuple[str, ...] = ()


def parse_heading(source: str) -> Heading:
    """Return the header of a source; UserError `bad-heading` names the wrong line."""
    heading = Heading()
    seen: dict[str, int] = {}
    for number, words in comment_lines(source, _COMMENTS):
        if words[0] in _BOTH:
            key, values = _directive(number, words)
            if key in seen:
                raise _bad(number, f"{key!r} was set in line {seen[key]} already")
            seen[key] = number
            heading = _with(heading, number, key, values)
    return heading


def with_board(source: str, board: str, comment: str) -> str:
    """Return the source with a single header line: this board, on all its GPU types.

    `comment` starts a comment in the source's language.
    """
    source = source.removeprefix("\ufeff")  # a byte order mark is only valid at the start of a file
    dropped = {number for number, words in comment_lines(source, _COMMENTS) if _names_place(words)}
    lines = enumerate(source.splitlines(keepends=True), start=1)
    kept = "".join(line for number, line in lines if number not in dropped)
    return f"{comment}!PODIUM leaderboard {board}\n{kept}"


def _names_place(words: list[str]) -> bool:
    return words[0] in _BOTH and len(words) > 1 and words[1].lower() in _PLACE


def _directive(number: int, words: list[str]) -> tuple[str, tuple[str, ...]]:
    if len(words) == 1:
        raise _bad(number, f"{words[0]} needs a key and a value")
    key = words[1].lower()
    if words[0] not in _KEYS.get(key, ()):
        known = ", ".join(name for name, markers in _KEYS.items() if words[0] in markers)
        raise _bad(number, f"unknown key {words[1]!r}; the keys are: {known}")
    text = " ".join(words[2:])
    values = (text,) if key in OVERRIDES and text else tuple(text.replace(",", " ").split())
    if not values:
        raise _bad(number, f"{key!r} needs a value, as in {words[0]} {key} {_EXAMPLES[key]}")
    return "gpus" if key == "gpu" else key, values


_EXAMPLES = {
    "leaderboard": "vectoradd",
    "gpus": "H100 L4",
    "gpu": "H100",
    "expect": "wrong_answer",
    "needs": "triton",
    "block": "32, 8",
    "grid": "(size + 255) // 256",
    "shared": "4*block_x",
}


def _with(heading: Heading, number: int, key: str, values: tuple[str, ...]) -> Heading:
    if key == "gpus":
        return replace(heading, gpus=values)
    if key == "needs":
        return replace(heading, needs=values)
    if key in OVERRIDES:
        _check_sizes(number, key, values[0])
        return heading
    if len(values) > 1:
        raise _bad(number, f"{key!r} takes one value, not {len(values)}")
    if key == "leaderboard":
        return replace(heading, leaderboard=values[0])
    if values[0] not in set(Verdict):
        raise _bad(number, f"unknown verdict {values[0]!r}; the verdicts are: {', '.join(Verdict)}")
    return replace(heading, expect=values[0])


def _check_sizes(number: int, key: str, text: str) -> None:
    """Refuse an invalid formula; whether it fits the task's cases is for the judge to decide."""
    try:
        parse_sizes(key, text)
    except FormulaError as error:
        raise _bad(number, f"{key}: {error}") from error


def _bad(number: int, what: str) -> UserError:
    return UserError("bad-heading", f"line {number} of the header: {what}")
