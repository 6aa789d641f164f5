"""Two outputs beside each other, tensor by tensor, within a tolerance."""

from collections.abc import Sequence

import torch

_NARROW_BYTES = 2
"""Floats up to this size are compared as wider ones."""


def mismatch(
    right: Sequence[torch.Tensor], given: Sequence[torch.Tensor], atol: float, rtol: float
) -> str | None:
    """How outputs differ from the reference's; None where they do not. NaN equals nothing."""
    if len(right) != len(given):
        return f"Output count mismatch: ref={len(right)}, custom={len(given)}"
    for number, (want, got) in enumerate(zip(right, given, strict=True)):
        place = f"output {number}: " if len(right) > 1 else ""
        if want.shape != got.shape:
            return f"{place}Shape mismatch: ref={list(want.shape)}, custom={list(got.shape)}"
        if want.dtype != got.dtype:
            return f"{place}Dtype mismatch: ref={_name(want)}, custom={_name(got)}"
        wrong = _values(want, got, atol, rtol)
        if wrong:
            return place + wrong
    return None


def undefined(outputs: Sequence[torch.Tensor]) -> bool:
    """Whether there is a value that is no number at all."""
    floats = (each for each in outputs if each.is_floating_point() or each.is_complex())
    return any(bool(torch.isnan(_wide(each)).any()) for each in floats)


def _values(right: torch.Tensor, given: torch.Tensor, atol: float, rtol: float) -> str | None:
    if right.dtype == torch.bool:
        off = right != given
    else:
        right, given = _wide(right), _wide(given)
        off = ~torch.isclose(given, right, rtol=rtol, atol=atol)
    count = int(off.sum())
    if not count:
        return None
    exact = torch.complex128 if right.is_complex() else torch.float64
    apart = (right.to(exact) - given.to(exact)).abs()
    first = [int(each) for each in off.nonzero()[0]]
    return (
        f"{count} of {off.numel()} elements differ, the first at {first}. "
        f"Max difference: {apart.max().item():g}. Avg difference: {apart.mean().item():g}. "
        f"Tolerance: atol={atol:g}, rtol={rtol:g}."
    )


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    narrow = tensor.is_floating_point() and tensor.dtype.itemsize <= _NARROW_BYTES
    return tensor.float() if narrow else tensor


def _name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
