"""The program that runs under `ncu`: builds a submission and calls it once.

It is never imported; `python -s -P -m` runs it in its own sandbox, in the folder with `ORDER` and
`INPUT`. It gets only a public input. Its results are shown to the submitter, but never trusted.
"""

import mmap
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from runners.harness.build import kit
from runners.harness.gpu.device_code import ReadyLaunch
from runners.harness.protocol import arena, builds, channel, values
from runners.languages import Built

ORDER, INPUT = "order.json", "input.bin"
"""The files of this program: a ProfiledCall, and the bytes of the input's tensors."""


def run(order: channel.ProfiledCall, content: Path) -> None:
    """Build the submission, warm up, and make one call between the marks of the profiler."""
    torch.set_num_threads(order.threads)
    if order.gpu:
        torch.zeros(1, device="cuda")  # creates the context that device code needs
    kernel = build(order).kernel
    for _ in range(order.warm_ups):
        kernel(fresh_argument(order, content))
    data = fresh_argument(order, content)
    with profiling(gpu=order.gpu):
        kernel(data)


def build(order: channel.ProfiledCall) -> Built:
    """Build the submission and reuse what an earlier candidate compiled."""
    home = Path.home()
    os.chdir(home)
    for name, text in order.files.items():
        (home / name).write_text(text)
    if order.builds is not None:
        builds.adopt(order.builds, home, packed=True)
    return kit.build(home, order.recipe)


def fresh_argument(order: channel.ProfiledCall, content: Path) -> Any:  # noqa: ANN401 - as the task's input is
    """The kernel's argument, fresh for every call, with each tensor on its device."""
    with content.open("rb") as file:
        buffer = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
    data = values.restore(order.value, lambda node: _placed(buffer, node))
    if order.launch is None:
        return data
    outputs = [
        torch.empty(o.shape, dtype=values.DTYPES[o.dtype], device=o.device) for o in order.outputs
    ]
    return ReadyLaunch(order.launch, values.leaves(data), outputs)


def _placed(buffer: mmap.mmap, node: values.TensorNode) -> torch.Tensor:
    """The tensor on its device, with its original strides."""
    if node.device == "cpu" or node.span == 0:
        return arena.view(buffer, node).to(node.device)
    flat = node.model_copy(update={"shape": (node.span,), "stride": (1,)})
    return arena.view(buffer, flat).to(node.device).as_strided(node.shape, node.stride)


@contextmanager
def profiling(*, gpu: bool) -> Iterator[None]:
    """Make the profiler measure the kernels that the block launches; do nothing on the CPU."""
    if not gpu:
        yield
        return
    torch.cuda.synchronize()
    torch.cuda.profiler.start()  # type: ignore[no-untyped-call]
    try:
        yield
        torch.cuda.synchronize()
    finally:
        torch.cuda.profiler.stop()  # type: ignore[no-untyped-call]


def main() -> None:
    """Run the `ProfiledCall` in the current folder."""
    folder = Path.cwd()
    order = channel.ProfiledCall.model_validate_json((folder / ORDER).read_bytes())
    run(order, folder / INPUT)


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # may be killed
    main()
