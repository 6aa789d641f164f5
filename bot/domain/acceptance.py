"""The rules by which a submission is taken in or refused at the door."""

import unicodedata
from collections.abc import Sequence
from datetime import datetime

from bot.domain.board import Board
from bot.domain.deadline import show_deadline
from bot.domain.errors import UserError, unknown_name
from bot.domain.heading import Heading

MAX_SOURCE_BYTES = 1_000_000
MAX_FILE_NAME = 100


def source_text(content: bytes) -> str:
    """The text of an uploaded file; UserError when it cannot be a source file."""
    if len(content) > MAX_SOURCE_BYTES:
        raise UserError(
            "too-large",
            f"the file has {len(content):,} bytes; at most {MAX_SOURCE_BYTES:,} are taken",
        )
    if b"\0" in content:
        raise UserError("not-text", "the file holds NUL bytes; submit a source file, as text")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(
            "not-utf8", f"the file is not UTF-8 (line {line}); save it as UTF-8 and submit again"
        ) from error
    if not text.strip():
        raise UserError("empty", "the file is empty; submit a file with your kernel in it")
    return text


def file_name(name: str) -> str:
    """The last part of the file's name, as it may be stored and shown."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1].strip()
    if not last or len(last) > MAX_FILE_NAME:
        raise UserError("bad-file-name", f"name the file with 1 to {MAX_FILE_NAME} characters")
    if any(unicodedata.category(character).startswith("C") for character in last):
        raise UserError("bad-file-name", "the file's name holds control characters; rename it")
    return last


def board_name(argument: str | None, heading: Heading) -> str:
    """The board that is meant; UserError when nobody names one, or two different ones are named."""
    if argument is not None and heading.leaderboard not in {None, argument}:
        raise UserError(
            "heading-disagrees",
            f"you chose leaderboard {argument!r}, but the file's heading says "
            f"{heading.leaderboard!r}; change one of them",
        )
    name = argument if argument is not None else heading.leaderboard
    if name is None:
        raise UserError(
            "no-leaderboard",
            "name the leaderboard, or begin the file with a line such as "
            "#!PODIUM leaderboard vectoradd",
        )
    return name


def check_open(board: Board, now: datetime) -> None:
    """UserError when the board's season is over at the aware time `now`."""
    if board.deadline is not None and not board.is_open(now):
        when = show_deadline(board.deadline)
        raise UserError(
            "closed",
            f"leaderboard {board.name!r} closed at {when}; it takes no more submissions",
            {f"at {when}": board.deadline},
        )


def choose_gpus(
    arguments: Sequence[str], heading: Sequence[str], board: Sequence[str]
) -> tuple[str, ...]:
    """The GPU types to run on, spelled as the board spells them and in the board's order."""
    wanted, written = _known(arguments, board), _known(heading, board)
    if wanted and written and wanted != written:
        raise UserError(
            "heading-disagrees",
            f"you chose {', '.join(wanted)}, but the file's heading says {', '.join(written)}; "
            "change one of them",
        )
    if wanted or written:
        return wanted or written
    if len(board) > 1:
        raise UserError("choose-gpu", f"choose one or more GPU types: {', '.join(board)}")
    return tuple(board)


def _known(names: Sequence[str], board: Sequence[str]) -> tuple[str, ...]:
    spelled = {name.casefold(): name for name in board}
    for name in names:
        if name.casefold() not in spelled:
            near = unknown_name("gpu", name, board).message
            raise UserError("unknown-gpu", f"{near}; the board runs on {', '.join(board)}")
    wanted = {name.casefold() for name in names}
    return tuple(name for name in board if name.casefold() in wanted)
