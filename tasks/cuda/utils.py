"""The tasks' shared functions: the device of tensors, and the comparison of outputs."""

import torch


def device() -> torch.device:
    """The device of the inputs: the GPU if there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def normal(seed: int, *shapes: tuple[int, ...], dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    """Tensors of normally distributed numbers, determined by the seed."""
    random = torch.Generator(device=device()).manual_seed(seed)
    return tuple(
        torch.randn(shape, generator=random, device=device()).to(dtype) for shape in shapes
    )


def compared(
    output: torch.Tensor, exact: torch.Tensor, rtol: float, atol: "float | torch.Tensor"
) -> tuple[bool, str]:
    """The return value of `check_implementation`, which allows `atol + rtol * abs(exact)`.

    `exact` is in double precision; NaN is never right, and infinity only where it is expected.
    """
    got = output.to(exact.dtype)
    near = (got - exact).abs() <= atol + rtol * exact.abs()
    wrong = ~(near & exact.isfinite() | (got == exact))
    count = int(wrong.sum())
    if count == 0:
        return True, ""
    first = tuple(int(i) for i in wrong.nonzero()[0])
    return False, (
        f"{count} of {wrong.numel()} elements differ; the first at {list(first)}: "
        f"got {output[first].item()}, expected {exact[first].item()}"
    )
