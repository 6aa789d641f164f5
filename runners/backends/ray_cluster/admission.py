"""Checks that a cluster accepts our token and rejects a wrong one, before anything is sent."""

import os
import re
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from ray.exceptions import AuthenticationError, RaySystemError

from runners.contract.runner import RunnerError

_raylet: Any = import_module("ray._raylet")  # private, compiled, and without types

LET_IN, REFUSED, NO_TOKEN, NO_ANSWER = 0, 3, 4, 5
"""The results of a check; also this program's exit statuses."""
MODE, TOKEN = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN"
_HOW = f"start every node with {MODE}=token and the token of `ray get-auth-token --generate`"
_ADDRESS = re.compile(r"(?P<host>[^/\s]+):(?P<port>\d{1,5})")
_ROOT = Path(__file__).resolve().parents[3]
_REACH_S, _ASK_S, _WRONG_TOKEN_S = 5.0, 10, 30.0


def check(address: str) -> None:
    """Check that the address requires a token and accepts ours; RunnerError with advice if not."""
    _reach(address)
    with _wrong_token(address) as wrong_token:
        ours = ask(address)
        theirs = wrong_token.wait(_WRONG_TOKEN_S)
    refuse(address, ours, theirs)


def refuse(address: str, ours: int, theirs: int) -> None:
    """Raise RunnerError unless our token was accepted and a wrong one was rejected.

    `ours` and `theirs` are the results of `ask` with our token and with a wrong one.
    """
    if theirs == LET_IN:
        raise RunnerError(f"Ray at {address} lets in everybody; {_HOW}")
    if ours == NO_TOKEN:
        raise RunnerError(f"there is no token for Ray at {address}; set {TOKEN}")
    if ours == REFUSED:
        raise RunnerError(f"Ray at {address} refuses the token; set {MODE}=token and {TOKEN}")
    if (ours, theirs) != (LET_IN, REFUSED):
        raise RunnerError(f"Ray at {address} gives no answer; is it a Ray of this version?")


def ask(address: str) -> int:
    """Try to list the nodes with this process's token and return the result, such as `LET_IN`.

    This avoids Ray's own retries, which take 20 s.
    """
    if not _raylet.AuthenticationTokenLoader.instance().has_token(ignore_auth_mode=True):
        return NO_TOKEN
    try:
        _raylet.GcsClient(address=address).get_all_node_info(timeout=_ASK_S)
    except AuthenticationError:
        return REFUSED
    except (RaySystemError, OSError):
        return NO_ANSWER
    return LET_IN


def _reach(address: str) -> None:
    found = _ADDRESS.fullmatch(address)
    if found is None:
        words = (
            f"{address!r} is no address of a Ray cluster" if address else "no Ray cluster is named"
        )
        raise RunnerError(f"{words}; set RAY_ADDRESS to HOST:PORT of its head")
    try:
        socket.create_connection((found["host"], int(found["port"])), _REACH_S).close()
    except (OSError, OverflowError) as error:
        raise RunnerError(
            f"Ray at {address} cannot be reached: {error}; set RAY_ADDRESS anew"
        ) from error


@contextmanager
def _wrong_token(address: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run `ask` with a wrong token, in another process because Ray caches a process's token."""
    process = subprocess.Popen(
        [sys.executable, "-m", "runners.backends.ray_cluster.admission", address],
        env={**os.environ, MODE: "token", TOKEN: secrets.token_hex(16)},
        cwd=_ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    except subprocess.TimeoutExpired as error:
        raise RunnerError(f"Ray at {address} gave a stranger no answer") from error
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    raise SystemExit(ask(sys.argv[1]))
