"""Shared host memory into which the judge writes one input at a time."""

import fcntl
import mmap
import os
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import torch

from runners.harness.protocol import values

ALIGNMENT = 4096
"""Bytes; every tensor starts on its own page, so that alignment never differs between runs."""
PREPARED = 512
"""For how many calls values are ready; a candidate for calibration makes up to 400."""
PREPARED_TENSORS = 4096
"""The most tensors of these values together."""
GAPS_MOST = 2
"""An output that takes more than this many times the memory of its elements has wide gaps."""
_MEMORY_FILE = re.compile(rb"(?m)^(\w+)-\w+ \S+ (\w+) \S+ (\d+) +(?:/memfd:|\[anon_shmem:)")
"""A mapping of a memory file, also with a name from PR_SET_VMA: address, offset and inode."""
_FILE = re.compile(
    rb"(?m)^(\w+)-(\w+) \S+ (\w+) (\S+ [1-9]\d*)\b(?! +/dev/(?:zero|dxg|nvidia\S*)$)"
)
"""A mapping of a file: addresses, offset, and device with inode. Devices have no such pages."""


def reach(value: torch.Tensor) -> int:
    """Return the bytes from a tensor's first element to the end of its last one."""
    if value.numel() == 0:
        return 0
    steps = ((n - 1) * s for n, s in zip(value.shape, value.stride(), strict=True))
    return (1 + sum(steps)) * value.element_size()


def apart(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor or, if its elements share memory or are far apart, a copy of it.

    A check that writes to such a tensor changes several elements at once, and wide gaps take long
    to compare. The copy is not contiguous either, because a task may require contiguous memory.
    """
    last, shared = 0, False
    for stride, extent in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if extent != 1:
            shared = shared or stride <= last
            last += (extent - 1) * stride
    count = tensor.numel()
    if tensor.is_contiguous() or not (shared or last >= GAPS_MOST * count):
        return tensor
    *rows, width = tensor.shape
    if count > width:
        copied = torch.empty((*rows, width + 1), dtype=tensor.dtype)[..., :-1]
    else:
        copied = torch.empty((*rows, width, 2), dtype=tensor.dtype)[..., 0]
    values.bits(copied).copy_(values.bits(tensor))
    return copied


class SeparateSpans:
    """SeparateSpans of memory that do not overlap."""

    def __init__(self) -> None:
        self._spans: list[tuple[int, int]] = []

    def add(self, begin: int, size: int) -> bool:
        """Add a span; False, and nothing is added, if it overlaps another one."""
        if not size:
            return True
        place = bisect_left(self._spans, (begin, 0))
        before = self._spans[place - 1] if place else (0, begin)
        after = self._spans[place] if place < len(self._spans) else (begin + size, 0)
        if before[1] > begin or after[0] < begin + size:
            return False
        self._spans.insert(place, (begin, begin + size))
        return True


def pages(size: int) -> int:
    """Return the bytes that a layout uses for so many bytes: whole pages, and a free one."""
    return -(-size // ALIGNMENT) * ALIGNMENT + ALIGNMENT


class Layout:
    """Assigns page-aligned offsets to the tensors of one value, separately for each device."""

    def __init__(self) -> None:
        self.sizes = {"cpu": 0, "cuda": 0}

    def place(self, value: torch.Tensor, device: str | None = None) -> values.TensorNode:
        """Assign the next free pages of `device`, by default the tensor's own, to the tensor.

        UndescribableError if it cannot be transferred.
        """
        device = device or value.device.type
        dtype = str(value.dtype).removeprefix("torch.")
        strided = value.layout is torch.strided
        if not strided or dtype not in values.DTYPES or device not in self.sizes:
            layout = "" if strided else f" of layout {value.layout}"
            raise values.UndescribableError(f"a tensor{layout} of type {dtype} on device {device}")
        if value.dim() > values.DIMENSIONS_MOST:
            raise values.UndescribableError(f"a tensor of {value.dim()} dimensions")
        offset = self.sizes[device]
        self.sizes[device] += pages(reach(value))
        return values.TensorNode(
            dtype=dtype,
            shape=tuple(value.shape),
            stride=tuple(value.stride()),
            offset=offset,
            device=device,
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """The memory layout of a value; sizes in bytes."""

    node: values.Node
    host_size: int
    device_size: int
    output_size: int = 0
    """How much a right output takes on the device; 0 if it is unknown or small."""


def covering(plans: Sequence[Plan]) -> Plan:
    """Return the layout of the largest input on a GPU, with the size of the largest output."""
    empty = Plan(values.ScalarNode(), 0, 0)
    largest = max(plans, key=lambda plan: plan.device_size, default=empty)
    output_size = max((plan.output_size for plan in plans), default=0)
    return replace(largest, output_size=output_size)


def lay_out(value: object) -> Plan:
    """Plan the memory layout of a value; UndescribableError if it cannot be transferred."""
    layout = Layout()
    node = values.describe(value, layout.place)
    return Plan(node, layout.sizes["cpu"], layout.sizes["cuda"])


def compact_description(value: object) -> values.Node:
    """Describe a value as if its tensors were contiguous."""
    layout = Layout()

    def place(tensor: torch.Tensor) -> values.TensorNode:
        contiguous = torch.empty_like(tensor, memory_format=torch.contiguous_format, device="meta")
        return layout.place(contiguous, tensor.device.type)

    return values.describe(value, place)


def view(buffer: mmap.mmap, node: values.TensorNode) -> torch.Tensor:
    """The tensor at the node's offset, without a copy."""
    dtype = values.DTYPES[node.dtype]
    if node.span == 0 or node.offset is None:
        return torch.empty(node.shape, dtype=dtype)
    flat = torch.frombuffer(buffer, dtype=dtype, count=node.span, offset=node.offset)
    return flat.as_strided(node.shape, node.stride)


def reader(buffer: mmap.mmap, node: values.Node) -> Callable[[], Any]:
    """Return a function that makes the value in the buffer in each call.

    Its tensors are aliases of ones that are made once, because that takes a tenth of the time.
    """
    return values.restorer(node, lambda tensor: view(buffer, tensor).detach)


def prepared_reader(buffer: mmap.mmap, node: values.Node) -> Callable[[], Any]:
    """Return the same function, which has the values of the first `PREPARED` calls ready.

    So a call on the CPU takes 40 us less before its input is there. A submission that needs no
    tensors could use this time for work that does not depend on the input.
    """
    make = reader(buffer, node)
    tensors = max(1, len(values.tensors(node)))
    ready = [make() for _ in range(min(PREPARED, PREPARED_TENSORS // tensors))]
    return lambda: ready.pop() if ready else make()


def sealed_memory(name: str, size: int) -> int:
    """Create a memory file whose size no process can change; return its descriptor."""
    fd = os.memfd_create(name, os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.ftruncate(fd, size)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL)
    return fd


class Arena:
    """A memory file that the judge owns and a candidate maps; its size can never change.

    It is as large as the largest allowed input. It is sparse: only written pages take memory.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.input_size = 0
        self.fd = sealed_memory("arena", self.size)
        self.buffer = mmap.mmap(self.fd, self.size)

    def write(self, node: values.Node, value: object) -> None:
        """Copy every host tensor of `value` to its place in `node`."""
        for tensor_node, tensor in zip(values.tensors(node), values.leaves(value), strict=True):
            if tensor_node.device == "cpu":
                values.copy_into(view(self.buffer, tensor_node), tensor)
                self.count_as_input((tensor_node.offset or 0) + tensor_node.reach)

    def count_as_input(self, size: int) -> None:
        """Count the first `size` bytes as the judge's own memory, not as the candidate's."""
        self.input_size = max(self.input_size, -(-size // ALIGNMENT) * ALIGNMENT)

    def free_excess(self) -> None:
        """Free the memory beyond the judge's input, which the end of a candidate does not free."""
        if self.input_size < self.size:
            self.buffer.madvise(mmap.MADV_REMOVE, self.input_size, self.size - self.input_size)

    @property
    def excess_bytes(self) -> int:
        """Bytes of memory that the candidate occupies in the file beyond the judge's input.

        They are counted here because no process's memory usage includes pages that were unmapped.
        """
        return max(0, os.fstat(self.fd).st_blocks * 512 - self.input_size)

    def close(self) -> None:
        """Release the memory; tensors that view it keep it mapped until they are freed."""
        os.close(self.fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def places_of(mappings: bytes, fd: int) -> frozenset[int]:
    """Return the addresses at which the memory file `fd` begins, by a process's mappings."""
    own, found = os.fstat(fd).st_ino, _MEMORY_FILE.findall(mappings)
    return frozenset(int(a, 16) - int(b, 16) for a, b, inode in found if int(inode) == own)


def repeats_memory(mappings: bytes, spans: Iterable[tuple[int, int]]) -> bool:
    """Whether two addresses within these spans (begin, end) are the same byte of a file."""
    rows = _FILE.findall(mappings)
    files = [(int(a, 16), int(b, 16), int(offset, 16), file) for a, b, offset, file in rows]
    begins, ends = [each[0] for each in files], [each[1] for each in files]
    parts, done = defaultdict[bytes, SeparateSpans](SeparateSpans), 0
    for begin, end in sorted(spans):
        at, done = max(begin, done), max(end, done)  # spans may overlap
        for index in range(bisect_right(ends, at), bisect_left(begins, done)):
            first, last, offset, file = files[index]
            here = max(first, at)
            if not parts[file].add(offset + here - first, min(last, done) - here):
                return True
    return False
