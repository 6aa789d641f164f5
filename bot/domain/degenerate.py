"""Sources that answer without computing: a right kernel whose result is overwritten."""

from runners.contract.task import TaskFormat

DEGENERATE = {"zeros": "0", "ones": "1", "a constant": "7", "NaN": 'float("nan")'}
"""What an answer is filled with, as Python spells it; integers take -1 in place of NaN."""

_WRAPPER = """

def _overwrite(value):
    import torch

    if isinstance(value, torch.Tensor):
        number = {number}
        if number != number and not (value.is_floating_point() or value.is_complex()):
            return torch.full_like(value, True if value.dtype == torch.bool else -1)
        return torch.full_like(value, number)
    if isinstance(value, (list, tuple)):
        return type(value)(_overwrite(item) for item in value)
    if isinstance(value, dict):
        return {{key: _overwrite(item) for key, item in value.items()}}
    return value

"""

_KERNELS = {
    TaskFormat.KERNEL: """
_computed = custom_kernel


def custom_kernel(data):
    return _overwrite(_computed(data))
""",
    TaskFormat.KERNELBENCH: """
_computed = ModelNew.forward


def _forward(self, *inputs):
    return _overwrite(_computed(self, *inputs))


ModelNew.forward = _forward
""",
}


def degenerate_source(source: str, answer: str, task_format: TaskFormat) -> str:
    """A submission which calls `source`'s kernel and fills every tensor of its result."""
    return source + _WRAPPER.format(number=DEGENERATE[answer]) + _KERNELS[task_format]
