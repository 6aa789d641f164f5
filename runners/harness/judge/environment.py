"""The machine's hardware and software, which every evaluation records."""

import functools
import importlib.metadata
import os
import platform
from pathlib import Path

import torch

from runners.contract.evaluation import CPU, Environment
from runners.harness import HARNESS_VERSION
from runners.harness.gpu.health import first_gpu


@functools.cache
def cpu_model() -> str:
    """The processor's model name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _version_of(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def importable() -> tuple[str, ...]:
    """Return the names of importable packages, with which a task's `libraries` are compared."""
    found = importlib.metadata.packages_distributions()
    return tuple(sorted(name for name in found if name.isidentifier() and name[0] != "_"))


def host_environment() -> Environment:
    """The environment of a CPU evaluation."""
    return Environment(
        gpu=CPU,
        torch=torch.__version__,
        triton=_version_of("triton"),
        cuda=torch.version.cuda,
        python=platform.python_version(),
        cpu=cpu_model(),
        cores=len(os.sched_getaffinity(0)),
        platform=platform.platform(),
        harness_version=HARNESS_VERSION,
        transport="shared-memory",
    )


def gpu_environment(gpu: str, transport: str) -> Environment:
    """The environment of a GPU evaluation, with current readings of the first visible GPU."""
    host = host_environment()
    gpu_seen = first_gpu()
    readings = gpu_seen.read()
    return host.model_copy(
        update={
            "gpu": gpu,
            "gpu_uuid": gpu_seen.handle,
            "driver": readings.driver if readings else None,
            "transport": transport,
            "clocks": readings.clocks if readings else {},
        }
    )
