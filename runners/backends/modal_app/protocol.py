"""What travels to a container and back; Modal's exceptions and GPU types as the contract's.

Every pair of them is a pool of containers of its own at Modal, which is why they are few.
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
"""Bytes of the longest answer that is taken."""


class ContainerRequest(Wire):
    """What a container is to do: evaluate a request, or only say what it offers."""

    request: EvaluationRequest | None = None
    gpus: int = 0
    """How many GPUs the container was asked to have."""
    limit_s: float = 0.0
    """After how long its harness counts as hanging, once it was ready."""
    asked_at: float
    """When Modal was asked, in seconds since 1970."""


class ContainerResponse(Wire):
    """What came of an order; times in seconds."""

    ready: Capabilities | None = None
    evaluation: Evaluation | None = None
    error: str | None = None
    """Why there is no evaluation, where the fault is ours."""
    cold: bool
    """Whether the container was begun for this order."""
    waited_s: float
    """Between the asking and the container's taking it: the queue, and a cold start."""
    ready_s: float = 0.0
    """What the harness took to be ready."""
    used_s: float
    """For how long the container worked on it."""


DEPLOY = "podium modal deploy"

AWAY = (
    faults.ConnectionError,
    faults.ServiceError,
    faults.InternalError,
    StreamTerminatedError,
    OSError,
)
"""Modal cannot be reached now; what was begun there goes on."""


class NotDeployedError(RunnerError):
    """Modal knows no such app or function."""


class NoTokenError(RunnerError):
    """Modal does not know who asks."""


@asynccontextmanager
async def translated() -> AsyncIterator[None]:
    """Raise a RunnerError, which says what to do, for what Modal refuses."""
    try:
        yield
    except (faults.AuthError, faults.PermissionDeniedError) as error:
        advice = "run `modal token new`, or set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET"
        reason = _words(error).partition(". ")[0]
        raise NoTokenError(f"Modal refuses the token: {reason}; {advice}") from error
    except faults.NotFoundError as error:
        raise NotDeployedError(f"Modal: {_words(error)}; run `{DEPLOY}`") from error
    except AWAY as error:
        raise RunnerError(f"Modal cannot be reached: {_words(error)}") from error
    except faults.Error as error:
        raise RunnerError(f"Modal: {_words(error)}") from error


def _words(error: BaseException) -> str:
    first = str(error).strip().partition("\n")[0]
    return first.rstrip(".") or type(error).__name__


OFFERED = tuple(each.name for each in GPU_TYPES.values() if each.modal)
"""The GPU types that Modal has."""

TIMEOUTS_S = (300, 900, 3600, 10_800)
"""The hard limits of a container, in seconds; the last is above what any task may take."""

READY_S = 120.0
"""What a harness may take to import torch in a fresh container."""
GRACE_S = 30.0
"""What a harness may take beyond the task's time limits: more than the grace after which it gives
up by itself, and says whose doing it was."""
_MARGIN_S = 20.0


def modal_gpu(kind: str, count: int) -> str | None:
    """The GPUs of one container in Modal's words, such as `H100!:2`; None for the CPU."""
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
    """The hard limit of a container whose harness has its own limit of so many seconds."""
    needed = READY_S + harness_s + _MARGIN_S
    return next((limit for limit in TIMEOUTS_S if limit >= needed), TIMEOUTS_S[-1])
