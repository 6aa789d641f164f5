"""Failures of submitted code: its exceptions become replies, with their tracebacks in the log."""

import errno
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from runners.harness.protocol import channel
from runners.harness.sandbox import diagnostics

MESSAGE_MAX = 1000
"""The most characters of a message; every front end can show that many."""
TOO_LONG = channel.encode(
    channel.CandidateReply(
        status=channel.Status.INVALID, message=f"the output has {channel.TOO_LONG}"
    )
)


def guarded(
    step: Callable[[], channel.CandidateReply | bytes], failure: channel.Status
) -> channel.CandidateReply | bytes:
    """Turn exceptions of submitted code into a reply, and print the traceback to the log."""
    try:
        return step()
    except BaseException as error:  # noqa: BLE001 - submitted code may raise anything at all
        build = diagnostics.failed_build(_text_of(error))
        if build is None:
            traceback.print_exception(error.with_traceback(_submitted_frames(error)))
        else:  # the log is truncated at its end: errors come first, commands last
            print(build.errors)  # noqa: T201 - the log
            traceback.print_tb(_submitted_frames(error))
            print(build.commands)  # noqa: T201 - the log
        message = _headline(error, None if build is None else build.reason)
        message = message.encode(errors="replace").decode()  # JSON has no lone surrogates
        return channel.CandidateReply(status=_status(error, failure), message=message)


def _text_of(error: BaseException) -> str:
    """Return an exception's text; for one of `subprocess.run` also the program's output."""
    texts = [str(error)]
    for printed in (getattr(error, "stderr", None), getattr(error, "stdout", None)):
        if isinstance(printed, bytes):
            texts.append(printed.decode(errors="replace"))
        elif isinstance(printed, str):
            texts.append(printed)
    return "\n".join(texts)


def _in_home(file: str) -> bool:
    return file.startswith(str(Path.home()))


def _submitted_frames(error: BaseException) -> Any:  # noqa: ANN401 - a traceback or None
    """Return the traceback from the submission's first frame on."""
    frames = error.__traceback__
    while frames and not _in_home(frames.tb_frame.f_code.co_filename):
        frames = frames.tb_next
    return frames


def _headline(error: BaseException, reason: str | None) -> str:
    """Return the error in a few lines; `reason` is a compiler's message."""
    kind = type(error).__name__
    if isinstance(error, SyntaxError):
        text = f"{kind}: {error.msg} ({error.filename}, line {error.lineno})"
        return text.replace(f"{Path.home()}/", "")[:MESSAGE_MAX]
    frames = [each for each in traceback.extract_tb(error.__traceback__) if _in_home(each.filename)]
    where = f" (line {frames[-1].lineno})" if frames else ""
    text = f"{kind}: {error if reason is None else reason}"
    if len(text) > MESSAGE_MAX:  # Triton quotes the kernel first and gives the reason at the end
        text = f"{text[: MESSAGE_MAX // 3]}\n[...]\n{text[-MESSAGE_MAX // 2 :]}"
    return text + where


def _status(error: BaseException, failure: channel.Status) -> channel.Status:
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return channel.Status.MEMORY
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return channel.Status.DISK
    if isinstance(error, RuntimeError) and "can't allocate memory" in str(error):
        return channel.Status.MEMORY  # torch's host allocator has no exception type of its own
    return failure


def encoded(reply: channel.CandidateReply) -> bytes:
    """Return the encoded reply, or an error reply if the output's description is too long."""
    try:
        return channel.encode(reply)
    except ValueError:
        return TOO_LONG
