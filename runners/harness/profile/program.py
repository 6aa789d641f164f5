"""The program under the profiler of kernels: builds a submission and makes one call of it.

It is run, never imported, as `python -P -s -m` in a sandbox of its own, which stands in the folder
that holds `ORDER` and `INPUT`. It is told nothing but a public input; what comes of it is shown and
never believed.
"""

import mmap
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

from runners.harness.build import kit
from runners.harness.gpu.device_code import ReadyLaunch
from runners.harness.protocol import builds
from runners.harness.protocol.arena import view
from runners.harness.protocol.channel import ProfiledCall
from runners.harness.protocol.values import DTYPES, TensorNode, leaves, restore
from runners.languages import Built

ORDER, INPUT = "order.json", "input.bin"
"""The files that it finds: a ProfiledCall, and the bytes of the input's tensors."""


def run(order: ProfiledCall, content: Path) -> None:
    """Build, warm up, and make one call between the marks of the profiler."""
    torch.set_num_threads(order.threads)
    if order.gpu:
        torch.zeros(1, device="cuda")  # makes the context, in which device code is loaded
    kernel = build(order).kernel
    for _ in range(order.warm_ups):
        kernel(given(order, content))
    data = given(order, content)
    with marked(gpu=order.gpu):
        kernel(data)


def build(order: ProfiledCall) -> Built:
    """The submission, with what an earlier candidate compiled of it at hand."""
    home = Path.home()
    os.chdir(home)
    for name, text in order.files.items():
        (home / name).write_text(text)
    if order.builds is not None:
        with suppress(Exception):  # it compiles for itself, then
            builds.unpack(order.builds, home)
    return kit.build(home, order.recipe)


def given(order: ProfiledCall, content: Path) -> Any:  # noqa: ANN401 - as the task's input is
    """What the kernel is called with, fresh for every call, on the devices that are named."""
    with content.open("rb") as file:
        buffer = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
    data = restore(order.value, lambda node: _placed(buffer, node))
    if order.launch is None:
        return data
    outputs = [torch.empty(o.shape, dtype=DTYPES[o.dtype], device=o.device) for o in order.outputs]
    return ReadyLaunch(order.launch, leaves(data), outputs)


def _placed(buffer: mmap.mmap, node: TensorNode) -> torch.Tensor:
    """The tensor on its device, with the strides that it had."""
    if node.device == "cpu" or node.span == 0:
        return view(buffer, node).to(node.device)
    flat = node.model_copy(update={"shape": (node.span,), "stride": (1,)})
    return view(buffer, flat).to(node.device).as_strided(node.shape, node.stride)


@contextmanager
def marked(*, gpu: bool) -> Iterator[None]:
    """What is launched in the block is what the profiler looks at; there is none on the CPU."""
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
    """Do what lies ready in the folder that this stands in."""
    folder = Path.cwd()
    order = ProfiledCall.model_validate_json((folder / ORDER).read_bytes())
    run(order, folder / INPUT)


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # may be killed
    main()
