"""The app at Modal: its image, its deployment, its GPU types and time limits, and Modal's errors.

Modal has a separate container pool for each pair of GPU type and time limit, so only a few time
limits are used.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, redirect_stdout

import modal
import modal.exception as faults
from grpclib.exceptions import StreamTerminatedError

from runners.backends.modal_app import container
from runners.contract.evaluation import CPU
from runners.contract.gpus import GPU_TYPES
from runners.contract.runner import RunnerError

APP, FUNCTION = "podium", "evaluate"
_BASE = (
    "nvidia/cuda:13.0.2-devel-ubuntu24.04"
    "@sha256:5dc1bca23d05bd37b011be68ec470c03b403a5da07ec3a86e41af9470e9d0cc6"
)
_PYTHON = "3.12"
_PACKAGES = ("torch==2.13.0", "numpy>=2,<3", "ninja>=1.13,<2", "pydantic>=2.12,<3")
_CUTLASS = "nvidia-cutlass==4.2.0.0"
_START_S = 1200
"""Seconds for a container to start; the first one of an image downloads several gigabytes."""
DEPLOY = "podium modal deploy"
UNAVAILABLE = (
    faults.ConnectionError,
    faults.ServiceError,
    faults.InternalError,
    StreamTerminatedError,
    OSError,
)
"""Errors that mean that Modal cannot be reached now; running calls continue."""
OFFERED = tuple(each.name for each in GPU_TYPES.values() if each.modal)
"""The GPU types that Modal has."""
TIMEOUTS_S = (300, 900, 3600, 10_800)
"""The possible hard limits of a container, in seconds. The last is above any task's limit, but not
above all limits of a comparison."""
_MARGIN_S = 20.0


def image() -> modal.Image:
    """The same image as the one for GPUs in docker/, with `runners/` and no other Podium code."""
    return (
        modal.Image.from_registry(_BASE, add_python=_PYTHON)
        .entrypoint([])
        .apt_install("bubblewrap", "g++")
        .pip_install(*_PACKAGES)
        .run_commands(
            f"pip install --no-cache-dir --no-deps --target /opt/cutlass {_CUTLASS}",
            "cp -r /opt/cutlass/cutlass_library/source/include/. /usr/local/include/",
            "rm -rf /opt/cutlass",
            "chmod 755 /root",  # contains `runners/`, which a candidate reads as user `nobody`
        )
        .env({"CUDA_HOME": "/usr/local/cuda"})
        .add_local_python_source("runners")
    )


def make_app() -> modal.App:
    """The app to deploy; each call chooses its GPU and time limit."""
    app = modal.App(APP)
    app.function(
        name=FUNCTION,
        image=image(),
        cpu=4.0,
        memory=16 << 10,
        timeout=TIMEOUTS_S[0],
        startup_timeout=_START_S,
        retries=0,  # Podium's queue retries
        single_use_containers=True,
        block_network=True,
        restrict_modal_access=True,
        include_source=False,
        _experimental_restrict_output=True,  # a container cannot return pickles
    )(container.evaluate)
    return app


async def deploy() -> str:
    """Build and deploy the app; return the URL of its page at Modal.

    RunnerError if Modal refuses it or cannot be reached.
    """
    async with translated():
        # Modal's build messages go to stderr; stdout has only the command's result.
        with redirect_stdout(sys.stderr), modal.enable_output():
            app = await make_app().deploy.aio()
        return str(await app.get_dashboard_url.aio())


class NotDeployedError(RunnerError):
    """Modal has no such app or function."""


class NoTokenError(RunnerError):
    """Modal does not accept the token, or there is none."""


@asynccontextmanager
async def translated() -> AsyncIterator[None]:
    """Turn Modal's errors into RunnerErrors, with advice in the message where there is any."""
    try:
        yield
    except (faults.AuthError, faults.PermissionDeniedError) as error:
        advice = "run `modal token new`, or set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET"
        reason = _first_line(error).partition(". ")[0]
        raise NoTokenError(f"Modal refuses the token: {reason}; {advice}") from error
    except faults.NotFoundError as error:
        raise NotDeployedError(f"Modal: {_first_line(error)}; run `{DEPLOY}`") from error
    except UNAVAILABLE as error:
        raise RunnerError(f"Modal cannot be reached: {_first_line(error)}") from error
    except faults.Error as error:
        raise RunnerError(f"Modal: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    first = str(error).strip().partition("\n")[0]
    return first.rstrip(".") or type(error).__name__


def modal_gpu(kind: str, count: int) -> str | None:
    """The GPUs of one container in Modal's notation, such as `H100!:2`; None for the CPU.

    RunnerError if Modal does not offer the type or the number.
    """
    if kind == CPU:
        return None
    card = GPU_TYPES.get(kind)
    if card is None or card.modal is None:
        raise RunnerError(f"Modal has no GPU type {kind}; it has {', '.join(OFFERED)}")
    if count > card.modal_at_once:
        raise RunnerError(
            f"the evaluation needs {count} {kind}; Modal offers at most {card.modal_at_once}"
        )
    return card.modal if count == 1 else f"{card.modal}:{count}"


def container_timeout_s(harness_s: float) -> int:
    """The hard limit of a container whose harness has a limit of `harness_s` seconds."""
    needed = container.READY_S + harness_s + _MARGIN_S
    return next((limit for limit in TIMEOUTS_S if limit >= needed), TIMEOUTS_S[-1])
