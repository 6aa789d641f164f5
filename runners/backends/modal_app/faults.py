"""Modal's exceptions, in the words of the contract."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import modal.exception as faults
from grpclib.exceptions import StreamTerminatedError

from runners.contract.runner import RunnerError

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
