"""The process that reads: one call after the other, until its line ends.

It knows what to call from its parent alone, which has imported the same function; only the
arguments are a stranger's.
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
    """Read and answer until the parent has ended or has enough."""
    while (call := receive(sys.stdin.buffer, FunctionCall)) is not None:
        _limit(call)
        send(sys.stdout.buffer, _answer(call))


def _limit(call: FunctionCall) -> None:
    """By the kernel as well: also who has no parent any more ends."""
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
        raise SystemExit(1) from None  # what is left of the memory is not enough to go on with
    except Exception:  # noqa: BLE001 - the parent tells of the bug
        return CallResult(bug=traceback.format_exc(limit=-8))
