"""Decides whether a submission is accepted, and reads its header."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from bot.domain.board import Board
from bot.domain.errors import UserError
from bot.domain.times import show_deadline
from runners.contract.formula import FormulaError
from runners.contract.gpus import find_gpu_type
from runners.contract.launch import MARKER, OVERRIDES, header_lines, parse_sizes
from runners.contract.task import Mode, TaskDefinition
from runners.contract.verdict import Verdict
from runners.languages import spec_by_suffix, spec_of, specs

MAX_SOURCE_BYTES = 1_000_000
MAX_FILE_NAME = 100
_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")
"""UTF-16 or UTF-32 in little-endian order, then each in big-endian order."""
_UTF16_NUL_SHARE = 0.2
"""A file without a byte order mark counts as UTF-16 if more than this share of its bytes is NUL."""


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a file; `expect` and `needs` are for files that tasks ship."""

    leaderboard: str | None = None
    gpus: tuple[str, ...] = ()
    expect: str | None = None
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that may be submitted, with its header."""

    name: str
    source: str
    header: Header


def read_file(name: str, content: bytes) -> SourceFile:
    """Return an uploaded file after the checks of every board; UserError says what to change."""
    source = source_text(content)
    return SourceFile(file_name(name), source, parse_header(source))


def source_text(content: bytes) -> str:
    """Return the text of an uploaded file; UserError when it cannot be a source file."""
    if len(content) > MAX_SOURCE_BYTES:
        raise UserError(
            "too-large",
            f"the file has {len(content):,} bytes; at most {MAX_SOURCE_BYTES:,} are allowed",
        )
    if _is_utf16(content):
        raise UserError(
            "not-utf8",
            "the file is UTF-16, as older PowerShells write it; save it as UTF-8 and submit again: "
            "`iconv -f UTF-16 -t UTF-8 FILE > NEW_FILE`, or in PowerShell "
            "`(Get-Content FILE) | Set-Content -Encoding utf8 FILE`",
        )
    if b"\0" in content:
        raise UserError("not-text", "the file contains NUL bytes; submit a text source file")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(
            "not-utf8", f"line {line} of the file is not UTF-8; save it as UTF-8 and submit again"
        ) from error
    if not text.strip():
        raise UserError("empty", "the file is empty; submit a file with your kernel in it")
    return text


def _is_utf16(content: bytes) -> bool:
    """Return whether the bytes are text in UTF-16 or UTF-32, as opposed to a binary file."""
    if content.startswith(_BYTE_ORDER_MARKS):
        return True
    # Source code is mostly ASCII, so in UTF-16 every other byte is NUL.
    halves = content[::2], content[1::2]
    return len(content) % 2 == 0 and any(
        half.count(0) > _UTF16_NUL_SHARE * len(content) and b"\0" not in other
        for half, other in (halves, halves[::-1])
    )


def check_language(name: str, board: str, task: TaskDefinition) -> None:
    """Raise UserError when the file's suffix does not belong to the language of the task."""
    dot = name.rfind(".")
    suffix, language = name[dot:].casefold() if dot >= 0 else "", spec_of(task.lang)
    if suffix in language.suffixes:
        return
    other = spec_by_suffix(suffix)
    if other is None:
        end = f"ends with {suffix!r}" if suffix else "has no suffix"
        raise UserError(
            "bad-suffix",
            f"the file name {end}, but leaderboard {board!r} accepts {language.title}; use a name "
            f"such as kernel{language.suffixes[0]}",
        )
    remedy = other.in_python if language.is_python else ""
    raise UserError(
        "other-language",
        f"{name!r} is a {other.title} file, but leaderboard {board!r} accepts {language.title}; "
        f"{remedy or f'write it as a {language.suffixes[0]} file'}, or choose a leaderboard for "
        f"{other.title}",
    )


def suffixes() -> tuple[str, ...]:
    """Return the suffixes of submissions in all languages."""
    return tuple(suffix for language in specs() for suffix in language.suffixes)


def file_name(name: str) -> str:
    """Return the last part of a path; UserError when it must not be stored or shown."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1].strip()
    if not last or len(last) > MAX_FILE_NAME:
        raise UserError("bad-file-name", f"a file name must have 1 to {MAX_FILE_NAME} characters")
    if any(unicodedata.category(character).startswith("C") for character in last):
        raise UserError(
            "bad-file-name", "the file name contains control characters; rename the file"
        )
    return last


def board_name(argument: str | None, header: Header) -> str:
    """Return the chosen board's name; UserError when none was chosen, or two different ones."""
    if argument is not None and header.leaderboard not in {None, argument}:
        raise UserError(
            "heading-disagrees",
            f"you chose leaderboard {argument!r}, but the file's header says "
            f"{header.leaderboard!r}; change one of them",
        )
    name = argument if argument is not None else header.leaderboard
    if name is None:
        raise UserError(
            "no-leaderboard",
            "name the leaderboard, or begin the file with a line such as #!PODIUM leaderboard NAME",
        )
    return name


def check_open(board: Board, mode: Mode, now: datetime) -> None:
    """Raise UserError when the board accepts no submissions in this mode at `now`."""
    if board.deadline is None or board.accepts(mode, now):
        return
    when = show_deadline(board.deadline)
    kind = "submissions"
    if board.rules.late_runs:
        kind = "ranked submissions; submit in another mode, such as benchmark"
    raise UserError(
        "closed",
        f"leaderboard {board.name!r} closed at {when} and accepts no more {kind}",
        {f"at {when}": board.deadline},
    )


def closes_early(board: str | None, opens_at: datetime) -> UserError:
    """Return the refusal of a deadline before the board opens."""
    return UserError(
        "bad-deadline",
        f"the board{f' {board!r}' if board else ''} closes before it opens at "
        f"{show_deadline(opens_at)}; choose a later deadline, or an earlier opening date on its "
        "competition's page or by publishing the competition again",
    )


def not_yet_open(name: str, opens_at: datetime) -> UserError:
    """Return the refusal of a leaderboard or competition that opens later."""
    when = show_deadline(opens_at)
    words = f"{name} opens at {when}; until then you can neither see it nor submit to it"
    return UserError("not-open", words, {f"at {when}": opens_at})


def choose_gpus(
    arguments: Sequence[str], header: Sequence[str], board: Sequence[str]
) -> tuple[str, ...]:
    """Return the GPU types to run on, in the board's format and order."""
    chosen, in_header = _board_gpus(arguments, board), _board_gpus(header, board)
    if chosen and in_header and chosen != in_header:
        raise UserError(
            "heading-disagrees",
            f"you chose {', '.join(chosen)}, but the file's header says {', '.join(in_header)}; "
            "change one of them",
        )
    if chosen or in_header:
        return chosen or in_header
    if len(board) > 1:
        raise UserError("choose-gpu", f"choose one or more GPU types: {', '.join(board)}")
    return tuple(board)


def _board_gpus(names: Sequence[str], board: Sequence[str]) -> tuple[str, ...]:
    gpus = {name: find_gpu_type(name, board) for name in names}
    for name, gpu in gpus.items():
        if gpu is None:
            offers = f"the board runs on {', '.join(board)}, not on {name[:100]!r}"
            words = f"{offers}; choose a GPU type of the board"
            raise UserError("unknown-gpu", words)
    return tuple(name for name in board if name in gpus.values())


_COMMENTS = tuple(dict.fromkeys(language.comment for language in specs()))
_PODIUM = tuple(f"{comment}!PODIUM" for comment in _COMMENTS)
_MARKERS = (*(f"{comment}!POPCORN" for comment in _COMMENTS), *_PODIUM)
"""The first words of header lines, KernelBot's and Podium's, in every language."""
_MARKERS_OF = dict.fromkeys(("leaderboard", "gpus", "gpu"), _MARKERS)
_MARKERS_OF |= dict.fromkeys(("expect", "needs"), _PODIUM) | dict.fromkeys(OVERRIDES, (MARKER,))
"""By key, the first words of the lines that may set it."""
_MOST_NAMES = 100
"""The most values of a header line."""
_BOARD_KEYS = frozenset({"leaderboard", "gpus", "gpu"})
"""The keys that choose a file's board and GPU types."""


def parse_header(source: str) -> Header:
    """Return the header of a source; UserError `bad-heading` names the wrong line."""
    header = Header()
    seen: dict[str, int] = {}
    for number, words in header_lines(source, _MARKERS, _COMMENTS):
        key, values = _directive(number, words)
        if key in seen:
            raise _bad(number, f"{key!r} was set in line {seen[key]} already; delete one of them")
        seen[key] = number
        header = _with_value(header, number, key, values)
    return header


def with_board(source: str, board: str, comment: str) -> str:
    """Return the source with a header line for this board, and no other that chooses board or GPU.

    `comment` starts a comment in the source's language.
    """
    source = source.removeprefix("\ufeff")  # a byte order mark is only valid at the start of a file
    dropped = {
        number
        for number, words in header_lines(source, _MARKERS, _COMMENTS)
        if _chooses_board(words)
    }
    lines = enumerate(source.splitlines(keepends=True), start=1)
    kept = "".join(line for number, line in lines if number not in dropped)
    return f"{comment}!PODIUM leaderboard {board}\n{kept}"


def _chooses_board(words: list[str]) -> bool:
    return len(words) > 1 and words[1].lower() in _BOARD_KEYS


def _directive(number: int, words: list[str]) -> tuple[str, tuple[str, ...]]:
    if len(words) == 1:
        raise _bad(number, f"{words[0]} needs a key and a value")
    key = words[1].lower()
    if words[0] not in _MARKERS_OF.get(key, ()):
        known = ", ".join(name for name, markers in _MARKERS_OF.items() if words[0] in markers)
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


def _with_value(header: Header, number: int, key: str, values: tuple[str, ...]) -> Header:
    most = _MOST_NAMES if key in {"gpus", "needs"} else 1
    if len(values) > most:
        takes = "one value" if most == 1 else f"at most {most} values"
        raise _bad(number, f"{key!r} takes {takes}, not {len(values)}")
    if key == "gpus":
        return replace(header, gpus=values)
    if key == "needs":
        return replace(header, needs=values)
    if key in OVERRIDES:
        _check_sizes(number, key, values[0])
        return header
    if key == "leaderboard":
        return replace(header, leaderboard=values[0])
    if values[0] not in set(Verdict):
        raise _bad(number, f"unknown verdict {values[0]!r}; the verdicts are: {', '.join(Verdict)}")
    return replace(header, expect=values[0])


def _check_sizes(number: int, key: str, text: str) -> None:
    """Refuse an invalid formula; the judge decides whether a valid one fits the task's cases."""
    try:
        parse_sizes(key, text)
    except FormulaError as error:
        raise _bad(number, f"{key}: {error}") from error


def _bad(number: int, what: str) -> UserError:
    return UserError("bad-heading", f"line {number} of the header: {what}")
