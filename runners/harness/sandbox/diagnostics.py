"""What compilers say: without the paths of this machine, and which line of it tells the error."""

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from runners.harness.sandbox import view

_TEMPORARY = re.compile(r"tmpxft_[0-9a-f]+_[0-9a-f]+-\d+_")
_FOLDERS = r"(?:[^\s/:\"'`()<>]+/)*"
_AT = re.compile(
    r"^(?P<file>[\w.+/-]+)(?:\((?P<nvcc>\d+)\)|:(?P<gcc>\d+)(?::\d+)?): "
    r"(?P<what>(?!warning|note|remark).*error.*)$",
    re.IGNORECASE,
)
_CAUSE = re.compile(
    r"(?:undefined reference|multiple definition).*|.*\berror\s*:.*|.*: error.*|.*fatal.*",
    re.IGNORECASE,
)
_COMMAND = re.compile(
    r"^(?:\[\d+/\d+\] |FAILED: |ninja: |Command '"
    r"|(?:\S*/)?(?:cc|c\+\+|g\+\+|gcc|clang(?:\+\+)?|nvcc|hipcc|ld)(?:-\d+)? +-)"
)
_HEADED = re.compile(r"^(Error building extension .*?:) *(?=\[\d+/\d+\] )", re.MULTILINE)
"""What torch writes before the first command, in one line with it."""
_USE = re.compile(r"^(?:ptxas|nvlink) info .*\n(?:    \d+ bytes stack frame.*\n)?", re.MULTILINE)


def without_paths(said: str, folders: Iterable[str] = ()) -> str:
    """The text with files called by their names, where they lie in the system's or these folders.

    What nvcc calls its own files in between is left out of their names too.
    """
    roots = {*view.SYSTEM, *view.SCRATCH, view.TASK, sys.prefix, sys.base_prefix, *folders}
    longest = sorted((each.rstrip("/") for each in roots), key=len, reverse=True)
    known = "|".join(re.escape(each) for each in longest if each)
    paths = re.compile(rf"(?<![\w.~/-])(?:{known})/{_FOLDERS}(?=[^\s/])")
    return _TEMPORARY.sub("", paths.sub("", said))


def without_use(said: str) -> str:
    """The text without the lines on registers and memory, which matter where all went well."""
    return _USE.sub("", said)


def first_error(said: str) -> str:
    """The line that says what is wrong, with file and line where the compiler tells them."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    placed = next((found for line in lines if (found := _AT.match(line))), None)
    if placed is not None:
        number = placed["nvcc"] or placed["gcc"]
        return f"{placed['file']}:{number}: {placed['what']}"
    cause = next((found for line in lines if (found := _CAUSE.search(line))), None)
    if cause is not None:
        return cause[0]
    return lines[-1] if lines else "the compiler said nothing"


@dataclass(frozen=True, slots=True)
class FailedBuild:
    """What a build tool said, by what of it matters."""

    reason: str
    """The first error, with its file and line."""
    errors: str
    """Everything but the command lines."""
    commands: str


def failed_build(said: str) -> FailedBuild | None:
    """What a text of several lines tells of a compiler's errors; None where it tells of none."""
    lines = _HEADED.sub(r"\1\n", without_paths(said)).splitlines()
    words = [line for line in lines if not _COMMAND.match(line)]
    commands = [line for line in lines if _COMMAND.match(line)]
    placed = any(_AT.match(line.strip()) for line in words)
    caused = bool(commands) and any(_CAUSE.search(line) for line in words)
    if len(lines) < 2 or not (placed or caused):
        return None
    errors = "\n".join(words)
    return FailedBuild(first_error(errors), errors, "\n".join(commands))


def cut(said: str, most: int) -> str:
    """The first whole lines that are no longer than `most` bytes, and how many are left out."""
    if len(said.encode()) <= most:
        return said
    kept: list[str] = []
    room = most - 40  # for the last line
    lines = said.splitlines(keepends=True)
    for line in lines:
        room -= len(line.encode())
        if room < 0:
            break
        kept.append(line)
    return "".join([*kept, f"[... {len(lines) - len(kept)} lines are left out]\n"])
