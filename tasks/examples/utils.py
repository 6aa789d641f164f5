"""The tasks' shared functions: the device of tensors, and the comparison of outputs."""

import torch


def device() -> torch.device:
    """The device of the inputs: the GPU if there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def generator(seed: int) -> torch.Generator:
    """A source of random numbers on the inputs' device."""
    return torch.Generator(device=device()).manual_seed(seed)


def difference(
    output: object,
    expected: torch.Tensor,
    rtol: float = 0.0,
    atol: "float | torch.Tensor" = 0.0,
) -> str:
    """How `output` differs from `expected`, as a text; empty if it does not.

    Each element may be off by `atol + rtol * abs(expected)`; NaN is never right, and infinity only
    where it is expected.
    """
    if not isinstance(output, torch.Tensor):
        return f"a {type(output).__name__} was returned, a tensor is expected"
    for name in ("shape", "dtype"):
        got, want = getattr(output, name), getattr(expected, name)
        if got != want:
            return f"the output has {name} {got}, {want} is expected"
    if output.device.type != expected.device.type:
        return f"the output is on {output.device}, {expected.device} is expected"
    if torch.equal(output, expected):
        return ""
    wide = torch.complex128 if expected.is_complex() else torch.float64
    exact = expected.to(wide)
    near = (output.to(wide) - exact).abs() <= atol + rtol * exact.abs()
    if not isinstance(atol, torch.Tensor) and atol == rtol == 0:
        near.fill_(False)  # large integers differ although they are equal in double precision
    wrong = ~(near & exact.isfinite() | (output == expected))
    count = int(wrong.sum())
    if count == 0:
        return ""
    index = tuple(int(i) for i in wrong.nonzero()[0])
    return (
        f"{count} of {wrong.numel()} elements differ; the first at {list(index)}: "
        f"got {output[index].item()}, expected {expected[index].item()}"
    )


def ruling(text: str) -> tuple[bool, str]:
    """The return value of `check_implementation` for a difference."""
    return not text, text
