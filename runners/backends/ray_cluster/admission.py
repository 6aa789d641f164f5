"""Whether a cluster lets us in, and strangers not: asked before anything is sent there."""

import re
import secrets
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from runners.contract.runner import RunnerError

LET_IN, REFUSED, NO_TOKEN = 0, 3, 4
"""How the probe ends."""
_ADDRESS = re.compile(r"(?P<host>[^/\s]+):(?P<port>\d{1,5})")
_ROOT = Path(__file__).resolve().parents[3]
_REACH_S, _PROBE_S = 5.0, 30.0
_MODE, _TOKEN = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN"
_HOW = f"start every node with {_MODE}=token and the token of `ray get-auth-token --generate`"


def check(environment: Mapping[str, str]) -> str:
    """The cluster's address; RunnerError, with what to do, unless our token alone opens it."""
    address = _address(environment.get("RAY_ADDRESS", ""))
    known = {_MODE: "token", **environment}
    stranger = {**known, _MODE: "token", _TOKEN: secrets.token_hex(16)}
    ours, theirs = (_begun(address, each) for each in (known, stranger))
    found, open_to_all = _ended(ours), _ended(theirs)
    if open_to_all == LET_IN:
        raise RunnerError(f"Ray at {address} lets in everybody; {_HOW}")
    if found == NO_TOKEN:
        raise RunnerError(f"there is no token for Ray at {address}; set {_TOKEN}")
    if found == REFUSED:
        raise RunnerError(f"Ray at {address} refuses our token; set {_MODE}=token and {_TOKEN}")
    if found != LET_IN or open_to_all != REFUSED:
        raise RunnerError(f"Ray at {address} cannot be asked; is it a Ray of this version?")
    return address


def _address(text: str) -> str:
    found = _ADDRESS.fullmatch(text)
    if found is None:
        raise RunnerError(
            "set RAY_ADDRESS to HOST:PORT of the cluster's head, on a machine of the cluster"
            + (f"; {text!r} is none" if text else "")
        )
    try:
        socket.create_connection((found["host"], int(found["port"])), _REACH_S).close()
    except (OSError, OverflowError) as error:
        raise RunnerError(f"Ray at {text} cannot be reached: {error}") from error
    return text


def _begun(address: str, environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    """A process of its own: Ray keeps the first token that it has seen."""
    return subprocess.Popen(
        [sys.executable, "-m", "runners.backends.ray_cluster.probe", address],
        env=dict(environment),
        cwd=_ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _ended(probe: "subprocess.Popen[bytes]") -> int | None:
    try:
        return probe.wait(_PROBE_S)
    except subprocess.TimeoutExpired:
        return None
    finally:
        probe.kill()
        probe.wait()
