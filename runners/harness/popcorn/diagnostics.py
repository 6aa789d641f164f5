"""What compilers say: without the paths of this machine, and which line of it tells the error."""

import re
import sys
from collections.abc import Iterable

from runners.harness.sandbox import view

_TEMPORARY = re.compile(r"tmpxft_[0-9a-f]+_[0-9a-f]+-\d+_")
_FOLDERS = r"(?:[^\s/:\"'`()<>]+/)*"
_AT = re.compile(
    r"^(?P<file>[\w.+/-]+)(?:\((?P<nvcc>\d+)\)|:(?P<gcc>\d+)(?::\d+)?): (?P<what>.*error.*)$",
    re.IGNORECASE,
)
_CAUSE = re.compile(
    r"(?:undefined reference|multiple definition).*|.*\berror\s*:.*|.*: error.*|.*fatal.*",
    re.IGNORECASE,
)
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
