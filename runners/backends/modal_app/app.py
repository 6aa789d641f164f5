"""The app at Modal: its image, its function, and its deployment."""

import sys
from contextlib import redirect_stdout

import modal

from runners.backends.modal_app import container
from runners.backends.modal_app.protocol import TIMEOUTS_S, translated

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


def image() -> modal.Image:
    """The same image as docker/'s for GPUs, with `runners/` and no other code of Podium."""
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
