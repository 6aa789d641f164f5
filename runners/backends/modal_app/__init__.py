"""Runs the harness on Modal's GPUs, each evaluation in its own container.

Modal's client is imported only when needed, because it is an optional dependency and containers do
not use it.
"""

from collections.abc import Mapping

from runners.contract.evaluation import CPU
from runners.contract.runner import Runner, RunnerError


def create(*, slots: Mapping[str, int] | None = None, version: str | None = None) -> Runner:
    """A runner over the app from `deploy`; RunnerError for a GPU type unknown to Modal.

    `slots` is GPU type -> number of concurrent evaluations. The default is one on the CPU, because
    GPUs cost more. `version` is the harness version that the app must have.
    """
    from runners.backends.modal_app.app import OFFERED  # noqa: PLC0415 - see the top
    from runners.backends.modal_app.runner import ModalRunner  # noqa: PLC0415 - see the top

    wanted = slots or {CPU: 1}
    unknown = sorted(wanted.keys() - {*OFFERED, CPU})
    if unknown:
        offered = ", ".join(OFFERED)
        raise RunnerError(f"Modal has no GPU type {', '.join(unknown)}; it has {offered}")
    return ModalRunner(wanted, version)


async def deploy() -> str:
    """Build the image and deploy the app; return the URL of its page at Modal."""
    from runners.backends.modal_app.app import deploy as deploy_app  # noqa: PLC0415 - see the top

    return await deploy_app()
