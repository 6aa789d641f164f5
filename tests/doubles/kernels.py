"""KernelBench problems and kernels for them, small enough for a CPU."""

from typing import Any

LINEAR = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return torch.relu(self.linear(x))

def get_inputs():
    return [torch.randn(16, 32)]

def get_init_inputs():
    return [32]
"""
RIGHT = LINEAR.partition("def get_inputs")[0].replace("Model(", "ModelNew(")
RENAMED = RIGHT.replace("self.linear", "self.other_name")
BY_SEED = """
import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        made = nn.Linear(width, width)
        self.both = nn.Parameter(torch.cat([made.weight.t(), made.bias[None]]))

    def forward(self, x):
        return torch.relu(x @ self.both[:-1] + self.both[-1])
"""
WRONG = RIGHT.replace("torch.relu(", "1 + torch.relu(")
RAISING = RIGHT.replace("return torch.relu", "raise ValueError('boom')\n        return torch.relu")
BROKEN = "class ModelNew(\n"
SHAPELESS = "x = 1\n"
ENDLESS = RIGHT.replace("return torch.relu", "while True: pass\n        return torch.relu")

FAKE = "class ModelNew: ...\n"
"""A kernel for the fake runner, which reads only a directive."""


def told(directive: str) -> str:
    """A kernel whose directive tells the fake runner the result."""
    return f"{FAKE}# fake: {directive}\n"


def make_job(kernel_code: str = RIGHT, **changes: object) -> dict[str, Any]:
    """A job as a training environment writes it."""
    job: dict[str, Any] = {"ref_code": LINEAR, "kernel_code": kernel_code, "num_correct_trials": 2}
    return job | changes
