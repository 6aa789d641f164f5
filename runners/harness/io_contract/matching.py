"""Which of a contract's arguments a Python function takes, and how.

This runs in the candidate, beside the submission: nothing here protects the judge.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from runners.contract.io_contract import Argument, Role, ScalarArgument, TensorArgument
from runners.languages import InvalidSubmissionError

Match = tuple[tuple[int, ...], dict[str, int]]
"""The places of the arguments that are passed by position, and of those that are by name."""


def matched(function: Callable[..., Any], arguments: Sequence[Argument]) -> Match:
    """How a function is called: by name where all that it needs is named so, else by position.

    By position it gets all arguments, or those that are not outputs, or of these the ones that are
    no compile-time constants: the first of these that fits. InvalidSubmissionError when none does.
    """
    everything = tuple(range(len(arguments)))
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return everything, {}  # calling it will tell
    named = _by_name(signature, arguments)
    if named is not None:
        return (), named
    read = tuple(place for place in everything if not _is_output(arguments[place]))
    plain = tuple(place for place in read if not _is_meta(arguments[place]))
    for places in (everything, read, plain):
        if _fits(signature, len(places)):
            return places, {}
    names = ", ".join(argument.name for argument in arguments)
    raise InvalidSubmissionError(
        f"`{getattr(function, '__name__', 'the kernel')}{signature}` cannot be called with the"
        f" arguments of io: {names}"
    )


def _by_name(signature: inspect.Signature, arguments: Sequence[Argument]) -> dict[str, int] | None:
    """The places by the parameters' names; None where a needed one is no argument's."""
    places = {argument.name: place for place, argument in enumerate(arguments)}
    plain = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = signature.parameters.values()
    if not parameters or any(each.kind not in plain for each in parameters):
        return None
    needed = {each.name for each in parameters if each.default is inspect.Parameter.empty}
    needed |= {argument.name for argument in arguments if not _is_output(argument)}
    if needed - places.keys() or needed - {each.name for each in parameters}:
        return None
    return {each.name: places[each.name] for each in parameters if each.name in places}


def _is_output(argument: Argument) -> bool:
    return isinstance(argument, TensorArgument) and argument.role is Role.OUTPUT


def _is_meta(argument: Argument) -> bool:
    return isinstance(argument, ScalarArgument) and argument.meta


def _fits(signature: inspect.Signature, count: int) -> bool:
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True
