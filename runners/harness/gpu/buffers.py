"""The memory that judge and candidate share on a GPU: its size, its layout and its host part.

Some cache lines of every input become visible last; see `Withheld`.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch

from runners.contract.verdict import Verdict
from runners.harness.gpu.memory import SEGMENT_BYTES, DeviceBuffer, DriverError, HostBuffer
from runners.harness.protocol import values
from runners.harness.protocol.arena import Layout, Plan
from runners.harness.protocol.channel import TRAIN_MOST
from runners.harness.supervision.process import UnreadableError
from runners.harness.verdicts import VerdictError

LINE_BYTES = 128
"""Bytes of a cache line."""
LINES_PER_WITHHELD = 8
"""One line in this many is withheld, at least one of each tensor, up to `MAX_LINES` in all."""
LAST_BITS = {1: 2, 2: 6, 4: 18, 8: 40}
"""Size of a number in bytes -> how many low bits are randomized; few enough to stay plausible."""
MAX_LINES = 512
"""The most withheld lines of an input; more would bring a large input into the cache."""


class Withheld:
    """Cache lines of the next input that hold wrong data in `staging` until after the flush.

    The input is in shared memory during the whole flush, which takes about 50 us on a large GPU. In
    that time no kernel of a candidate can run, but a copy engine can. A candidate could copy a
    small input to the host and compute the output there before it is released. Some unpredictable
    lines therefore hold the contents of other lines until the flush is done. The low bits of their
    numbers are also randomized, because exchanging lines alone would not change a sum. A line that
    is withheld alone holds random bytes.
    """

    def __init__(self, staging: torch.Tensor) -> None:
        """`staging` has as many bytes as the shared input, a whole number of lines."""
        self.staging = _lines_of(staging)
        self.random = torch.Generator()
        self._set_lines(torch.tensor([[0], [0]]))

    def _set_lines(self, lines_and_masks: torch.Tensor) -> None:
        """Set the withheld lines, and for each the mask of the bits that are randomized."""
        self.indices, masks = lines_and_masks.to(self.staging.device)
        self.masks = masks.unsqueeze(1)
        self.correct = self.staging[self.indices]

    def take(self, nodes: Sequence[values.TensorNode]) -> None:
        """Withhold lines of these tensors in staging, whose bytes are all correct so far."""
        if not nodes:
            self._set_lines(torch.tensor([[0], [0]]))
            return
        self.random.manual_seed(secrets.randbits(32))  # of 32 bits, which earlier lines would tell
        limit = MAX_LINES // len(nodes)
        self._set_lines(torch.cat([self._choose_lines(each, limit) for each in nodes], dim=1))
        wrong = torch.randint(1 << 62, self.correct.shape, device=self.staging.device)
        if len(self.indices) > 1:
            wrong = self.correct.roll(1, 0) ^ (wrong & self.masks)
        self.staging.index_copy_(0, self.indices, wrong)

    def _choose_lines(self, node: values.TensorNode, limit: int) -> torch.Tensor:
        """Return two rows: random lines of a tensor, each once, and the mask of each."""
        start = node.offset or 0
        first, last = start // LINE_BYTES, (start + node.reach - 1) // LINE_BYTES
        count = min(-(-(last - first + 1) // LINES_PER_WITHHELD), max(1, limit))
        chosen = torch.randint(first, last + 1, (count,), generator=self.random)
        lines = torch.unique(chosen)
        return torch.stack((lines, torch.full_like(lines, _last_bits(node))))

    def reveal(self, memory: torch.Tensor) -> None:
        """Queue a write of the correct lines to the shared memory."""
        _lines_of(memory).index_copy_(0, self.indices, self.correct)

    def restore(self) -> None:
        """Write the correct lines back to staging."""
        self.staging.index_copy_(0, self.indices, self.correct)


def _last_bits(node: values.TensorNode) -> int:
    """A 64-bit mask of the least significant bits of each of the tensor's numbers."""
    size = min(8, node.itemsize // (2 if node.dtype.startswith("complex") else 1))
    bits = 1 if node.dtype == "bool" else LAST_BITS[size]
    return int.from_bytes(((1 << bits) - 1).to_bytes(size, "little") * (8 // size), "little")


def _lines_of(memory: torch.Tensor) -> torch.Tensor:
    return memory.view(torch.int64).view(-1, LINE_BYTES // 8)


SPARE = 64 << 20
"""Bytes for outputs in addition to twice the input, if no reference defines the output's size."""
POOL_SPARE = 128 << 20
"""Bytes of pool beyond the multiple of the output."""
POOL_OUTPUTS = (4, 2, 1)
"""How many outputs a pool holds, without those of trains: as many of these as memory allows."""
PLACE_TENSORS_MOST = 4
"""The most tensors of an output in a train, because one frame describes all outputs."""
PLACE_MOST = 64 << 20
"""The most bytes of a place; a kernel that reads and writes more is not short."""
PLACES_SHARE = 8
"""At most 1 / `PLACES_SHARE` of the free memory is used for trains: for the places of all
candidates that exist at once, and for the judge's copies of one candidate's places."""
CONTEXT_BYTES = 1 << 30
"""Upper estimate of the GPU memory that a process with a CUDA context needs, in bytes."""


def aligned(size: int) -> int:
    """The size, rounded up to a multiple of `SEGMENT_BYTES`."""
    return -(-size // SEGMENT_BYTES) * SEGMENT_BYTES


@dataclass(slots=True)
class Buffers:
    """The device memory that judge and candidate share, and the judge's private device memory."""

    memory: DeviceBuffer | HostBuffer
    """Shared: the input, the room for copied outputs, the pool for the kernel's allocations, and
    the places of a train."""
    words: DeviceBuffer | HostBuffer
    output_at: int
    pool_at: int
    places_at: int
    place_size: int
    """Bytes of one place of a train: an input and its rooms; 0 if there are no places."""
    staging: torch.Tensor
    """The judge's copy of the next input. Its address affects the time, so it never changes."""
    withheld: Withheld
    """The lines of the input that a candidate sees last."""
    flush: torch.Tensor
    """Twice as large as the L2 cache; writing it flushes the cache."""
    free_before: int
    """Free bytes on the GPU before the candidate ran."""

    @classmethod
    def create(
        cls, plan: Plan, expected: values.Node | None, *, pooled: bool = True, places: int = 0
    ) -> Self:
        """Allocate buffers for inputs like `plan` and outputs like `expected`.

        Without a pool, `pooled` is False. `places` is the number of places for trains; pinned host
        memory has none.
        """
        output_bytes = room_for_output(plan, expected)
        output_at = aligned(max(1, plan.device_size))
        pool_at = output_at + aligned(max(1, output_bytes))
        (memory, words), pool = share(
            pool_at, pool_size(output_bytes, places) if pooled else 0, places * pool_at
        )
        staging = torch.zeros(output_at, dtype=torch.uint8, device="cuda")  # gaps are copied too
        buffers = cls(
            memory=memory,
            words=words,
            output_at=output_at,
            pool_at=pool_at,
            places_at=pool_at + pool,
            place_size=pool_at if places and isinstance(memory, DeviceBuffer) else 0,
            staging=staging,
            withheld=Withheld(staging),
            flush=torch.zeros(2 * l2_cache_bytes(), dtype=torch.uint8, device="cuda"),
            free_before=torch.cuda.mem_get_info()[0],
        )
        buffers.reveal()  # loads its CUDA kernels, which is impossible while a stream waits
        buffers.complete()
        return buffers

    def check_free_memory(self, inputs: int = 0) -> None:
        """Raise VerdictError if the candidate left the judge too little GPU memory to continue.

        `inputs` is how many further inputs the judge needs at once.
        """
        free, _ = torch.cuda.mem_get_info()
        needed = SPARE + 8 * self.pool_at + inputs * self.output_at
        if free < min(needed, self.free_before // 8):
            raise VerdictError(
                Verdict.MEMORY_EXCEEDED, f"only {free >> 20} MiB of the GPU's memory were left"
            )

    def flush_cache(self) -> None:
        """Flush the L2 cache."""
        self.flush.add_(1)

    def reveal(self) -> None:
        """Show the candidate the next input except for the withheld lines, then flush the cache."""
        self.memory.bytes[: self.output_at].copy_(self.staging)
        self.flush_cache()

    def complete(self) -> None:
        """Show the candidate the withheld lines too."""
        self.withheld.reveal(self.memory.bytes[: self.output_at])

    def close(self) -> None:
        """Free the shared memory."""
        self.memory.close()
        self.words.close()


def l2_cache_bytes() -> int:
    """The size of this GPU's L2 cache."""
    return int(torch.cuda.get_device_properties(0).L2_cache_size)


def is_held_by_others() -> bool:
    """Whether candidates hold more than three quarters of the GPU's memory.

    Those that start in parallel get at most half of it from the judge.
    """
    free, whole = torch.cuda.mem_get_info()
    return free + torch.cuda.memory_reserved() < whole // 4


def room_for_output(plan: Plan, expected: values.Node | None) -> int:
    """Bytes for outputs like `expected` or, if that is None, of any structure."""
    usual = max(2 * plan.device_size + SPARE, plan.output_size)
    return usual if expected is None else device_bytes(expected)


def pool_size(output_bytes: int, places: int) -> int:
    """Bytes for the kernel's own allocations, including its output; 0 if memory is scarce.

    All outputs of a train exist at the same time, one for each of its places. The pool is much
    larger than them, because torch requests segments of up to 20 MiB even for small tensors, and
    the kernel allocates scratch memory too.
    """
    most = torch.cuda.mem_get_info()[0] // 8
    sizes = (aligned((each + places) * output_bytes + POOL_SPARE) for each in POOL_OUTPUTS)
    return next((size for size in sizes if size < most), 0)


def max_spares() -> int:
    """How many spares may exist: as many contexts as fit into an eighth of the free memory."""
    free, _ = torch.cuda.mem_get_info()
    return free // 8 // CONTEXT_BYTES


def max_parallel_candidates(
    plan: Plan, expected: values.Node | None, places: int = 0, *, varies: bool = False
) -> int:
    """How many candidates may exist at once without filling the GPU's memory.

    `varies` is whether they have a pool although no structure of the outputs is `expected`.
    """
    output_bytes = room_for_output(plan, expected) if varies or expected is not None else 0
    candidate_bytes = CONTEXT_BYTES + plan.device_size + 5 * output_bytes + POOL_SPARE
    candidate_bytes += places * (plan.device_size + 2 * output_bytes)
    free, _ = torch.cuda.mem_get_info()
    return max(1, free // 2 // candidate_bytes)


def place_count(plan: Plan, expected: values.Node | None, candidates: int) -> int:
    """The number of places for trains of each candidate, given how many candidates exist at once.

    It is 0 if the places would be too large, or if outputs cannot be described in one frame or
    have a part on the host.
    """
    parts = 0 if expected is None else len(values.tensors(expected))
    if expected is None or parts > PLACE_TENSORS_MOST or has_host_part(plan, expected):
        return 0
    size = aligned(max(1, plan.device_size)) + aligned(max(1, device_bytes(expected)))
    free, _ = torch.cuda.mem_get_info()
    fitting = (
        count
        for count in (TRAIN_MOST, TRAIN_MOST // 2)
        if (candidates + 1) * count * size <= free // PLACES_SHARE
    )
    return next(fitting, 0) if size <= PLACE_MOST else 0


def has_host_part(plan: Plan, expected: values.Node) -> bool:
    """Whether a part of the input or of the output is on the host."""
    return any(map(values.on_host, values.tensors(plan.node))) or values.has_host_part(expected)


def share(fixed: int, pool: int, places: int) -> tuple[list[DeviceBuffer] | list[HostBuffer], int]:
    """Create the shared memory and the words; return both, and the size of the pool.

    All sizes are in bytes; `fixed` is that of the input and the rooms for outputs.
    They are on the device or, if the driver refuses, in pinned host memory, which has neither pool
    nor places.
    """
    torch.cuda.init()  # type: ignore[no-untyped-call]
    torch.zeros(1, device="cuda")  # creates the context
    buffers: list[DeviceBuffer] = []
    try:
        for size in (fixed + pool + places, SEGMENT_BYTES):
            buffers.append(DeviceBuffer.create(size))  # noqa: PERF401 - created ones must be closed
    except (DriverError, AttributeError):
        for buffer in buffers:
            buffer.close()
        return [HostBuffer.create(size) for size in (fixed, SEGMENT_BYTES)], 0
    return buffers, pool


def device_bytes(node: values.Node) -> int:
    """Bytes of device memory from the start to the end of the structure's last tensor."""
    return max((tensor.reach + (tensor.offset or 0) for tensor in on_device(node)), default=0)


def on_device(node: values.Node) -> list[values.TensorNode]:
    """The tensors of a structure that are on the GPU."""
    return [tensor for tensor in values.tensors(node) if tensor.device == "cuda"]


def replan(node: values.Node) -> values.Node:
    """The description of the same output with contiguous tensors in a buffer of the judge."""
    layout = Layout()
    nodes = iter(values.tensors(node))

    def shape_of(tensor_node: values.TensorNode) -> torch.Tensor:
        dtype = values.DTYPES.get(tensor_node.dtype)
        if dtype is None:
            raise UnreadableError(f"the output is a {tensor_node.dtype} tensor")
        try:
            return torch.empty(tensor_node.shape, dtype=dtype, device="meta")
        except RuntimeError as error:
            raise UnreadableError(f"the output cannot be laid out: {error}") from error

    return values.describe(
        values.restore(node, shape_of), lambda tensor: layout.place(tensor, next(nodes).device)
    )
