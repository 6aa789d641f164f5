"""Runs in Modal's container: accepts one request, runs the harness once, returns one response."""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Self, TypeVar

from pydantic import ValidationError

from runners.contract.evaluation import Evaluation, EvaluationRequest
from runners.contract.runner import Capabilities, ServedLine
from runners.contract.wire import Wire

ANSWER_MAX = 16 << 20
"""The most bytes of one line of the harness, and of the data in a container's response."""
READY_S = 120.0
"""Seconds for a harness to start in a fresh container, including the import of torch."""
_ROOT = Path(__file__).resolve().parents[3]
_SEARCH_PATH = "/usr/local/cuda/bin:/usr/local/bin:/usr/bin:/bin"
_STDERR_MAX = 2000
_STARTED_AT = time.time()


class ContainerRequest(Wire):
    """The request to a container: evaluate `request`; if it is None, only report capabilities."""

    request: EvaluationRequest | None = None
    gpus: int = 0
    """How many GPUs were requested for the container."""
    limit_s: float = 0.0
    """Seconds that a ready harness may take for the evaluation before it is killed."""
    asked_at: float
    """When the call was sent to Modal, in seconds since 1970."""


class ContainerResponse(Wire):
    """The response of a container; times in seconds."""

    ready: Capabilities | None = None
    evaluation: Evaluation | None = None
    error: str | None = None
    """Why there is no evaluation, if the system is at fault."""
    cold: bool
    """Whether the container was started for this request."""
    waited_s: float
    """From the call until the container accepted it: the queue and a cold start."""
    ready_s: float = 0.0
    """From the start of the harness until it was ready."""
    used_s: float
    """From the moment at which the container accepted the call until its response."""


def evaluate(request_json: str) -> str:
    """Execute a `ContainerRequest` and return a `ContainerResponse`, both as JSON.

    A failure of the harness becomes the response's `error`; it raises no exception.
    """
    accepted_at = time.time()
    asked = ContainerRequest.model_validate_json(request_json)
    with tempfile.TemporaryFile() as stderr, _Harness(asked.gpus, stderr) as harness:
        try:
            answer = _exchange(harness, asked)
        except (OSError, ValidationError, _HarnessError) as error:
            answer = {"error": f"{error}: {harness.stderr_end()}"[: 2 * _STDERR_MAX]}
    return ContainerResponse.model_validate(
        {
            **answer,
            "cold": asked.asked_at < _STARTED_AT,
            "waited_s": max(0.0, accepted_at - asked.asked_at),
            "ready_s": harness.ready_s,
            "used_s": time.time() - accepted_at,
        }
    ).model_dump_json()


_T = TypeVar("_T")


class _HarnessError(Exception):
    """The harness ended, hung, or sent an invalid line."""


def _exchange(harness: "_Harness", asked: ContainerRequest) -> dict[str, object]:
    capabilities = harness.wait_ready(READY_S)
    if asked.request is None:
        return {"ready": capabilities}
    answer = harness.evaluate(asked.request.model_dump_json().encode(), asked.limit_s)
    if answer.evaluation is None:
        return {"error": answer.error or "the harness returned no evaluation"}
    return {"ready": capabilities, "evaluation": answer.evaluation}


class _Harness:
    """A harness process for one request; at the end of the context all its processes are killed."""

    def __init__(self, gpus: int, stderr: IO[bytes]) -> None:
        self._gpus = gpus
        self._stderr = stderr
        self.ready_s = 0.0

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        indexed = ["--gpu-index", "0"] if self._gpus else []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "runners.harness", "--serve", *indexed],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=_environment(self._gpus),
            cwd=_ROOT,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()  # its supervisor's exit ends all its processes
        self._process.communicate()

    def wait_ready(self, limit_s: float) -> Capabilities | None:
        """Return the capabilities in its first line once its second line reports good health.

        _HarnessError if it is not ready within `limit_s` seconds or its GPU is unfit.
        """
        first, second = self._within(limit_s, lambda: (self._line(), self._line()))
        if second.health is None or second.health.unfit:
            raise _HarnessError(second.health.unfit if second.health else "it reported no health")
        self.ready_s = time.monotonic() - self._began
        return first.ready

    def evaluate(self, request: bytes, limit_s: float) -> ServedLine:
        """Send a request and return the first line of the answer that is not progress."""
        return self._within(limit_s, lambda: self._answer(request))

    def _answer(self, request: bytes) -> ServedLine:
        stdin = self._process.stdin
        if stdin is None:
            raise _HarnessError("the harness has no input")
        stdin.write(request + b"\n")
        stdin.flush()
        line = self._line()
        while line.progress is not None:
            line = self._line()
        return line

    def _line(self) -> ServedLine:
        stdout = self._process.stdout
        text = stdout.readline(ANSWER_MAX) if stdout else b""
        if not text.endswith(b"\n"):
            raise _HarnessError("the harness ended before it answered")
        return ServedLine.model_validate_json(text)

    def _within(self, limit_s: float, exchange: Callable[[], _T]) -> _T:
        """Return the result of `exchange`; after `limit_s` seconds kill the harness to stop it."""
        killer = threading.Timer(limit_s, self._process.kill)
        killer.start()
        try:
            return exchange()
        except (_HarnessError, BrokenPipeError) as error:
            if killer.is_alive():
                raise
            raise _HarnessError(f"the harness did not answer within {limit_s:.0f} s") from error
        finally:
            killer.cancel()

    def stderr_end(self) -> str:
        """The end of its standard error."""
        end = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, end - _STDERR_MAX))
        return self._stderr.read().decode(errors="replace").strip() or "it printed no error"


def _environment(gpus: int) -> dict[str, str]:
    """The whole environment of a harness, which inherits no variable of the container."""
    return {
        "PATH": _SEARCH_PATH,
        "LANG": "C.UTF-8",
        "HOME": tempfile.gettempdir(),
        "CUDA_HOME": "/usr/local/cuda",
        "CUDA_VISIBLE_DEVICES": ",".join(map(str, range(gpus))),
    }
