"""The GPUs of this machine, found without loading CUDA."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from runners.contract.gpus import gpu_type
from runners.slots.harness import Gpu

_NOISE = re.compile(r"NVIDIA|Tesla|GeForce|Quadro|SXM\d*|HBM\w*|\d+GB", re.IGNORECASE)
_LISTED = re.compile(r"^GPU (\d+): (.+?) \(UUID: (\S+)\)$", re.MULTILINE)
_DRIVER = Path("/proc/driver/nvidia/gpus")
_TOOL_S = 30


def type_of_model(model: str) -> str:
    """The one name of a card that the driver calls so: H200, A100-80GB, L4, RTX-4090 and so on."""
    words = [word for word in re.split(r"[\s_-]+", model) if word and not _NOISE.fullmatch(word)]
    name = "-".join(words) or "GPU"
    if words[:1] == ["A100"]:  # the one card whose memory makes two types
        name = "A100-80GB" if "80GB" in model else "A100"
    return gpu_type(name)


def from_driver(folder: Path) -> Iterator[Gpu]:
    """The cards that the driver's folder in /proc describes, by bus number as nvidia-smi does."""
    for index, card in enumerate(sorted(folder.glob("*/information"))):
        lines = (line.partition(":") for line in card.read_text().splitlines())
        facts = {name.strip(): value.strip() for name, _, value in lines}
        handle = facts.get("GPU UUID", "?")  # question marks until the card was first used
        yield Gpu(index, str(index) if "?" in handle else handle, type_of_model(facts["Model"]))


def from_listing(text: str) -> Iterator[Gpu]:
    """The cards in the output of `nvidia-smi -L`."""
    for found in _LISTED.finditer(text):
        yield Gpu(int(found[1]), found[3], type_of_model(found[2]))


def find_gpus(driver: Path = _DRIVER) -> tuple[Gpu, ...]:
    """The GPUs of this machine, by number."""
    if found := tuple(from_driver(driver)):
        return found
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ()
    try:
        listed = subprocess.run(
            [tool, "-L"], capture_output=True, text=True, timeout=_TOOL_S, check=False
        )
    except (subprocess.TimeoutExpired, OSError):
        return ()
    return tuple(from_listing(listed.stdout))
