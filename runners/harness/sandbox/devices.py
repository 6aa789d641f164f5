"""The device nodes that a sandbox gets."""

import os
import re
from pathlib import Path

_USUAL = ("null", "zero", "full", "random", "urandom", "tty")
_CARDS = Path("/proc/driver/nvidia/gpus")
_UUID = re.compile(r"GPU UUID:\s*(\S+)")
_MINOR = re.compile(r"Device Minor:\s*(\d+)")


def devices(*, gpu: bool) -> tuple[str, ...]:
    """All device nodes that a harness needs; those of every GPU of the machine, if it needs any."""
    names = list(_USUAL)
    if gpu:
        names += [path.name for path in Path("/dev").glob("nvidia*")]
        names += [name for name in ("dxg", "nvidia-caps") if Path("/dev", name).exists()]
    return tuple(f"/dev/{name}" for name in dict.fromkeys(names))


def own_devices(*, gpu: bool) -> tuple[str, ...]:
    """The device nodes that a candidate needs: without the GPUs of which its harness has none.

    `CUDA_VISIBLE_DEVICES` is only a setting. A child that changes it could compute on the other
    GPUs, also while the judge waits on this one, or disturb those who use them.
    """
    others = _other_cards() if gpu else frozenset()
    return tuple(path for path in devices(gpu=gpu) if path not in others)


def _other_cards() -> frozenset[str]:
    """The nodes of the GPUs that `CUDA_VISIBLE_DEVICES` does not name; none if it has no UUIDs."""
    own = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    nodes = {}
    for path in _CARDS.glob("*/information"):
        text = path.read_text()
        uuid, minor = _UUID.search(text), _MINOR.search(text)
        if uuid and minor:
            nodes[uuid[1]] = f"/dev/nvidia{minor[1]}"
    if not all(name in nodes for name in own):
        return frozenset()
    return frozenset(node for uuid, node in nodes.items() if uuid not in own)
