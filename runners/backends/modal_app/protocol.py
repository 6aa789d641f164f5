"""Messages to and from a container; Modal's exceptions, GPU types and time limits.

Modal has a separate container pool for each pair of GPU type and time limit, so there are only few
time limits.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import modal.exception as faults
from grpclib.exceptions import StreamTerminatedError

from runners.contract.evaluation import CPU, Evaluation, EvaluationRequest
from runners.contract.gpus import GPU_TYPES
from runners.contract.runner import Capabilities, RunnerError
from runners.contract.wire import Wire

ANSWER_MAX = 16 << 20
"""The most bytes of an accepted answer."""


class ContainerRequest(Wire):
    """The request to a container: evaluate `request`, or only report capabilities if it is None."""

    request: EvaluationRequest | None = None
    gpus: int = 0
    """How many GPUs were requested for the container."""
    limit_s: float = 0.0
    """Seconds after which a ready harness counts as hung."""
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
    """From the acceptance until the response."""


DEPLOY = "podium modal deploy"

AWAY = (
    faults.ConnectionError,
    faults.ServiceError,
    faults.InternalError,
    StreamTerminatedError,
    OSError,
)
"""Errors that mean that Modal cannot be reached now; running calls continue."""


class NotDeployedError(RunnerError):
    """Modal knows no such app or function."""


class NoTokenError(RunnerError):
    """Modal does not accept the token, or there is none."""


@asynccontextmanager
async def translated() -> AsyncIterator[None]:
    """Turn Modal's errors into RunnerErrors; if advice exists, the message has it."""
    try:
        yield
    except (faults.AuthError, faults.PermissionDeniedError) as error:
        advice = "run `modal token new`, or set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET"
        reason = _first_line(error).partition(". ")[0]
        raise NoTokenError(f"Modal refuses the token: {reason}; {advice}") from error
    except faults.NotFoundError as error:
        raise NotDeployedError(f"Modal: {_first_line(error)}; run `{DEPLOY}`") from error
    except AWAY as error:
        raise RunnerError(f"Modal cannot be reached: {_first_line(error)}") from error
    except faults.Error as error:
        raise RunnerError(f"Modal: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    first = str(error).strip().partition("\n")[0]
    return first.rstrip(".") or type(error).__name__


OFFERED = tuple(each.name for each in GPU_TYPES.values() if each.modal)
"""The GPU types that Modal has."""

TIMEOUTS_S = (300, 900, 3600, 10_800)
"""The possible hard limits of a container, in seconds; the last is above any task's limit."""

READY_S = 120.0
"""Seconds for a harness to start in a fresh container, including the import of torch."""
GRACE_S = 30.0
"""Seconds by which a harness may exceed the task's time limits before it is killed; more than the
harness's own grace, after which it returns a verdict."""
_MARGIN_S = 20.0


def modal_gpu(kind: str, count: int) -> str | None:
    """The GPUs of one container in Modal's notation, such as `H100!:2`; None for the CPU.

    RunnerError if Modal does not offer the type or the number.
    """
    if kind == CPU:
        return None
    found = GPU_TYPES.get(kind)
    if found is None or found.modal is None:
        raise RunnerError(f"Modal has no GPU type {kind}; it has {', '.join(OFFERED)}")
    if count > found.modal_at_once:
        most = found.modal_at_once
        raise RunnerError(f"{count} {kind} are asked for; Modal gives at most {most}")
    return found.modal if count == 1 else f"{found.modal}:{count}"


def container_timeout_s(harness_s: float) -> int:
    """The hard limit of a container whose harness has a limit of `harness_s` seconds."""
    needed = READY_S + harness_s + _MARGIN_S
    return next((limit for limit in TIMEOUTS_S if limit >= needed), TIMEOUTS_S[-1])
