"""The rules by which a submission is accepted or refused at once."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.domain.board import Board
from bot.domain.errors import UserError, unknown_name
from bot.domain.heading import Heading, parse_heading
from bot.domain.times import show_deadline
from runners.contract.gpus import spelled
from runners.contract.task import TaskDefinition
from runners.languages import spec_by_suffix, spec_of, specs

MAX_SOURCE_BYTES = 1_000_000
MAX_FILE_NAME = 100
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
"""The byte order marks at the start of a UTF-16 or UTF-32 file."""
_MANY = 0.2
"""From this share of NUL bytes on, a file without a byte order mark is taken for UTF-16."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that may be submitted, with its header."""

    name: str
    source: str
    heading: Heading


def read_file(name: str, content: bytes) -> SourceFile:
    """Return an uploaded file that any board accepts; UserError says what to change."""
    source = source_text(content)
    return SourceFile(file_name(name), source, parse_heading(source))


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
    """Return whether it is text with two or four bytes per character, not a binary file."""
    if content.startswith((*_UTF16, b"\0\0\xfe\xff")):
        return True
    # Source code is mostly ASCII, so in UTF-16 every other byte is NUL.
    halves = content[::2], content[1::2]
    return len(content) % 2 == 0 and any(
        half.count(0) > _MANY * len(content) and b"\0" not in other
        for half, other in (halves, halves[::-1])
    )


def check_language(name: str, board: str, task: TaskDefinition) -> None:
    """Raise UserError when the file's suffix is not of the language of the board's task."""
    dot = name.rfind(".")
    suffix, wanted = name[dot:].casefold() if dot >= 0 else "", spec_of(task.lang)
    if suffix in wanted.suffixes:
        return
    other = spec_by_suffix(suffix)
    if other is None:
        end = f"ends with {suffix!r}" if suffix else "has no suffix"
        raise UserError(
            "bad-suffix",
            f"the file name {end}, but leaderboard {board!r} accepts {wanted.title}; use a name "
            f"such as kernel{wanted.suffixes[0]}",
        )
    remedy = other.in_python if wanted.is_python else ""
    raise UserError(
        "other-language",
        f"{name!r} is a {other.title} file, but leaderboard {board!r} accepts {wanted.title}; "
        f"{remedy or f'write it as a {wanted.suffixes[0]} file'}, or choose a leaderboard for "
        f"{other.title}",
    )


def suffixes() -> tuple[str, ...]:
    """Return the suffixes of submissions in all languages."""
    return tuple(suffix for each in specs() for suffix in each.suffixes)


def file_name(name: str) -> str:
    """Return the last part of the file's name, as it may be stored and shown."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1].strip()
    if not last or len(last) > MAX_FILE_NAME:
        raise UserError("bad-file-name", f"a file name must have 1 to {MAX_FILE_NAME} characters")
    if any(unicodedata.category(character).startswith("C") for character in last):
        raise UserError(
            "bad-file-name", "the file name contains control characters; rename the file"
        )
    return last


def board_name(argument: str | None, heading: Heading) -> str:
    """Return the chosen board's name; UserError when none was chosen, or two different ones."""
    if argument is not None and heading.leaderboard not in {None, argument}:
        raise UserError(
            "heading-disagrees",
            f"you chose leaderboard {argument!r}, but the file's header says "
            f"{heading.leaderboard!r}; change one of them",
        )
    name = argument if argument is not None else heading.leaderboard
    if name is None:
        raise UserError(
            "no-leaderboard",
            "name the leaderboard, or begin the file with a line such as #!PODIUM leaderboard NAME",
        )
    return name


def check_open(board: Board, now: datetime) -> None:
    """Raise UserError when the board's season is over at the aware time `now`."""
    if board.deadline is not None and not board.is_open(now):
        when = show_deadline(board.deadline)
        raise UserError(
            "closed",
            f"leaderboard {board.name!r} closed at {when} and accepts no more submissions",
            {f"at {when}": board.deadline},
        )


def choose_gpus(
    arguments: Sequence[str], heading: Sequence[str], board: Sequence[str]
) -> tuple[str, ...]:
    """Return the GPU types to run on, in the board's format and order."""
    wanted, written = _known(arguments, board), _known(heading, board)
    if wanted and written and wanted != written:
        raise UserError(
            "heading-disagrees",
            f"you chose {', '.join(wanted)}, but the file's header says {', '.join(written)}; "
            "change one of them",
        )
    if wanted or written:
        return wanted or written
    if len(board) > 1:
        raise UserError("choose-gpu", f"choose one or more GPU types: {', '.join(board)}")
    return tuple(board)


def _known(names: Sequence[str], board: Sequence[str]) -> tuple[str, ...]:
    found = {name: spelled(name, board) for name in names}
    for name, meant in found.items():
        if meant is None:
            near = unknown_name("gpu", name, board).message
            raise UserError("unknown-gpu", f"{near}; the board runs on {', '.join(board)}")
    return tuple(name for name in board if name in found.values())
