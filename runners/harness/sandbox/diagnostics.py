"""Compiler messages: removes this machine's paths and finds the line with the error."""

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from runners.harness.sandbox import view

_TEMPORARY = re.compile(r"tmpxft_[0-9a-f]+_[0-9a-f]+-\d+_")
_FOLDERS = r"(?:[^\s/:\"'`()<>]+/)*"
_LOCATED = re.compile(
    r"^(?P<file>[\w.+/-]+)(?:\((?P<nvcc>\d+)\)|:(?P<gcc>\d+)(?::\d+)?): "
    r"(?P<what>(?!warning|note|remark).*error.*)$",
    re.IGNORECASE,
)
_ERROR = re.compile(r"\berror\s*:|: error|fatal", re.IGNORECASE)
_SYMBOL = re.compile(r"(?:undefined reference|multiple definition).*", re.IGNORECASE)
_COMMAND = re.compile(
    r"^(?:\[\d+/\d+\] |FAILED: |ninja: |Command '"
    r"|(?:\S*/)?(?:cc|c\+\+|g\+\+|gcc|clang(?:\+\+)?|nvcc|hipcc|ld)(?:-\d+)? +-)"
)
_TORCH_HEADING = re.compile(r"^(Error building extension .*?:) *(?=\[\d+/\d+\] )", re.MULTILINE)
"""The text that torch puts before the first command, on the same line."""
_USAGE = re.compile(r"^(?:ptxas|nvlink) info .*\n(?:    \d+ bytes stack frame.*\n)?", re.MULTILINE)


def without_paths(output: str, folders: Iterable[str] = ()) -> str:
    """The text, with only the file name of each path in the system's or the given folders.

    The prefixes of nvcc's intermediate files are removed too.
    """
    roots = {*view.SYSTEM, *view.SCRATCH, view.TASK, sys.prefix, sys.base_prefix, *folders}
    longest = sorted((folder.rstrip("/") for folder in roots), key=len, reverse=True)
    known = "|".join(re.escape(folder) for folder in longest if folder)
    paths = re.compile(rf"(?<![\w.~/-])(?:{known})/{_FOLDERS}(?=[^\s/])")
    return _TEMPORARY.sub("", paths.sub("", output))


def without_resources(output: str) -> str:
    """The text without the lines about registers and memory, which matter only after a success."""
    return _USAGE.sub("", output)


def first_error(output: str) -> str:
    """The line with the error, with file and line number if the compiler gives them."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    located = next((match for line in lines if (match := _LOCATED.match(line))), None)
    if located is not None:
        number = located["nvcc"] or located["gcc"]
        return f"{located['file']}:{number}: {located['what']}"
    cause = next(filter(None, map(_cause, lines)), None)
    if cause is not None:
        return cause
    return lines[-1] if lines else "the compiler printed nothing"


def _cause(line: str) -> str | None:
    """What a line says about the cause of a failed build, in linear time: the line is hostile."""
    symbol = None if _ERROR.search(line) else _SYMBOL.search(line)
    return symbol[0] if symbol else line if _ERROR.search(line) else None


@dataclass(frozen=True, slots=True)
class FailedBuild:
    """The parts of a build tool's output."""

    reason: str
    """The first error, with its file and line."""
    errors: str
    """Everything except the command lines."""
    commands: str


def failed_build(output: str) -> FailedBuild | None:
    """The parts of a build tool's output; None if the text is not the output of a failed build."""
    lines = _TORCH_HEADING.sub(r"\1\n", without_paths(output)).splitlines()
    messages = [line for line in lines if not _COMMAND.match(line)]
    commands = [line for line in lines if _COMMAND.match(line)]
    has_location = any(_LOCATED.match(line.strip()) for line in messages)
    has_cause = bool(commands) and any(map(_cause, messages))
    if len(lines) < 2 or not (has_location or has_cause):
        return None
    errors = "\n".join(messages)
    return FailedBuild(first_error(errors), errors, "\n".join(commands))


def truncated(output: str, max_bytes: int) -> str:
    """The text or, if it is too long, the first lines that fit and the number of omitted lines."""
    if len(output.encode()) <= max_bytes:
        return output
    kept: list[str] = []
    remaining = max_bytes - 40  # for the last line
    lines = output.splitlines(keepends=True)
    for line in lines:
        remaining -= len(line.encode())
        if remaining < 0:
            break
        kept.append(line)
    return "".join([*kept, f"[... {len(lines) - len(kept)} lines are left out]\n"])
