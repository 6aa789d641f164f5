"""The parsing process: runs one call after another until its input ends.

Only its parent tells it what to call, and the parent has imported the same function; only the
arguments are untrusted.
"""

import math
import pkgutil
import resource
import sys
import traceback

from bot.domain.errors import UserError
from bot.services.apart.calls import (
    CallResult,
    FunctionCall,
    answer_type,
    argument_types,
    receive,
    send,
)


def main() -> None:
    """Read calls and answer them until the parent closes the pipe."""
    while (call := receive(sys.stdin.buffer, FunctionCall)) is not None:
        _limit(call)
        send(sys.stdout.buffer, _answer(call))


def _limit(call: FunctionCall) -> None:
    """Let the kernel enforce the limits too, so that the process ends even without its parent."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = math.ceil(used.ru_utime + used.ru_stime + call.limit_s) + 1
    for kind, limit in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, call.memory)):
        _, hard = resource.getrlimit(kind)
        lower = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (lower, hard))


def _answer(call: FunctionCall) -> CallResult:
    try:
        function = pkgutil.resolve_name(call.function)
        kinds = argument_types(function)
        if call.arguments is None:
            return CallResult()
        arguments = [
            kind.validate_json(text) for kind, text in zip(kinds, call.arguments, strict=True)
        ]
        value = answer_type(function).dump_json(function(*arguments)).decode()
        return CallResult(value=value)
    except UserError as error:
        return CallResult(code=error.code, words=error.message)
    except MemoryError:
        raise SystemExit(1) from None  # too little memory is left to continue
    except Exception:  # noqa: BLE001 - the parent reports the bug
        return CallResult(bug=traceback.format_exc(limit=-8))
