"""Checks that a cluster accepts our token and rejects a wrong one, before anything is sent."""

import os
import re
import secrets
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.context import ForkProcess
from typing import Any

from ray.exceptions import AuthenticationError, RaySystemError

from runners.contract.runner import RunnerError

_raylet: Any = import_module("ray._raylet")  # private, compiled, and without types

ACCEPTED, REFUSED, NO_TOKEN, NO_ANSWER = 0, 3, 4, 5
"""The results of `try_token`; also the exit statuses of the process with a wrong token."""
MODE, TOKEN = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN"
_ADVICE = f"start every node with {MODE}=token and the token of `ray get-auth-token --generate`"
_ADDRESS = re.compile(r"(?P<host>[^/\s]+):(?P<port>\d{1,5})")
_CONNECT_S, _REQUEST_S, _WRONG_TOKEN_S = 5.0, 10, 30.0


def check(address: str) -> None:
    """Check that the cluster requires a token and accepts ours; RunnerError with advice if not."""
    _require_reachable(address)
    with _wrong_token_process(address) as process:
        ours = try_token(address)
        process.join(_WRONG_TOKEN_S)
        wrong = process.exitcode
    if wrong is None:
        raise RunnerError(f"Ray at {address} did not answer a wrong token")
    require_protected(address, ours, wrong)


def require_protected(address: str, ours: int, wrong: int) -> None:
    """Raise RunnerError unless our token was accepted and a wrong one was rejected.

    `ours` and `wrong` are the results of `try_token` with our token and with a wrong one.
    """
    if wrong == ACCEPTED:
        raise RunnerError(f"Ray at {address} accepts any token; {_ADVICE}")
    if ours == NO_TOKEN:
        raise RunnerError(f"there is no token for Ray at {address}; set {TOKEN}")
    if ours == REFUSED:
        raise RunnerError(f"Ray at {address} refuses the token; set {MODE}=token and {TOKEN}")
    if (ours, wrong) != (ACCEPTED, REFUSED):
        raise RunnerError(f"Ray at {address} does not answer; does it run this version of Ray?")


def try_token(address: str) -> int:
    """Send a request with this process's token; return `ACCEPTED`, `REFUSED` and so on.

    It does not use Ray's own client, whose retries take 20 s.
    """
    if not _raylet.AuthenticationTokenLoader.instance().has_token(ignore_auth_mode=True):
        return NO_TOKEN
    try:
        _raylet.GcsClient(address=address).get_all_node_info(timeout=_REQUEST_S)
    except AuthenticationError:
        return REFUSED
    except (RaySystemError, OSError):
        return NO_ANSWER
    return ACCEPTED


def _require_reachable(address: str) -> None:
    parts = _ADDRESS.fullmatch(address)
    if parts is None:
        reason = f"{address!r} is not HOST:PORT" if address else "RAY_ADDRESS is not set"
        raise RunnerError(f"{reason}; set RAY_ADDRESS to HOST:PORT of the Ray cluster's head")
    try:
        socket.create_connection((parts["host"], int(parts["port"])), _CONNECT_S).close()
    except (OSError, OverflowError) as error:
        message = f"Ray at {address} cannot be reached: {error}; check RAY_ADDRESS"
        raise RunnerError(message) from error


@contextmanager
def _wrong_token_process(address: str) -> Iterator[ForkProcess]:
    """Run `try_token` with a wrong token in a fork, because Ray caches the token.

    This process has not used Ray yet, so the fork inherits no thread and no connection of Ray's.
    """
    process = get_context("fork").Process(target=_try_wrong_token, args=(address,), daemon=True)
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def _try_wrong_token(address: str) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    os.environ.update({MODE: "token", TOKEN: secrets.token_hex(16)})
    sys.exit(try_token(address))
