"""New memory of a task's inputs shows nothing of what the judge held there."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from runners.harness.sandbox import syscalls

_aten = torch.ops.aten
_UNINITIALIZED = frozenset(
    (
        *(_aten.empty, _aten.empty_like, _aten.empty_strided, _aten.empty_permuted),
        *(_aten.new_empty, _aten.new_empty_strided),
    )
)
"""The operations by which torch creates a tensor without writing to it."""


@contextmanager
def filled() -> Iterator[None]:
    """Fill uninitialized memory that the block allocates with large numbers.

    Such an input, a buffer for the output for example, would otherwise hold what the judge had
    there: the last right answer, which a kernel could keep where it is still right. Zeros are right
    for most of some answers too.
    """
    low, high = 0x78 | secrets.randbelow(4), 0xF8 | secrets.randbelow(4)
    with syscalls.new_memory_filled(low), _Filling(low, high):
        yield


class _Filling(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Fills every tensor that an operation creates uninitialized, on the CPU or a GPU."""

    supports_higher_order_operators = True

    def __init__(self, low: int, high: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.pair = int.from_bytes((low, high), "little", signed=True)

    def dispatch(
        self,
        func: Any,  # noqa: ANN401 - an operation of torch, of a class of its own
        _: object,
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """Run an operation; this is `__torch_dispatch__`, see below."""
        made = func(*args, **(kwargs or {}))
        packet = getattr(func, "overloadpacket", None)
        if packet in _UNINITIALIZED and made.device.type in {"cpu", "cuda"}:
            self._fill(made)
        return made

    def _fill(self, tensor: torch.Tensor) -> None:
        if tensor.layout is not torch.strided:
            return
        storage = tensor.untyped_storage()
        held = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage)
        if tensor.dtype == torch.bool:
            held.fill_(secrets.randbelow(2))
            held[::2].logical_not_()
            return
        held[: held.numel() & ~1].view(torch.int16).fill_(self.pair)
        held[held.numel() & ~1 :].fill_(self.pair & 0xFF)


# As a method of the class, it would import torch's compiler when it is first called: some seconds.
setattr(_Filling, "__torch_dispatch__", _Filling.dispatch)  # noqa: B010 - for mypy
