"""Somebody who knows the CUDA Evaluation Server by its README, and sends its examples to `make up`.

Every body is as it stands there. Only the port is another one: each test has its own.
"""
# ruff: noqa: E501 - lines of the examples are as long as they are

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.e2e.command import Podium, fresh, read_until_up, terminate

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.timeout(240)]

ANSWER_S = 180
FIRST_REQUEST = r"""{
    "kernel": {
      "source_code": "class Model(torch.nn.Module):\n    def forward(self, x):\n        return torch.relu(x)",
      "kernel_type": "torch"
    },
    "num_trials": 100
  }"""
DOUBLED: dict[str, Any] = {
    "kernel": {
        "source_code": "class Model(torch.nn.Module):\n    def forward(self, x):\n"
        "        return x * 2",
        "kernel_type": "torch"
    },
    "num_trials": 100,
    "timeout": 120
}  # fmt: skip
CUSTOM_MATMUL: dict[str, Any] = {
    "ref_kernel": {
        "source_code": "class Model(torch.nn.Module):\n    def forward(self, x):\n"
        "        return torch.matmul(x, x.T)",
        "kernel_type": "torch"
    },
    "custom_kernel": {
        "source_code": "class Model(torch.nn.Module):\n    def forward(self, x):\n"
        "        return custom_matmul(x, x.T)",
        "kernel_type": "torch_cuda"
    },
    "num_trials": 200
}  # fmt: skip
TRANSFORMER: dict[str, Any] = {
    "kernel": {
        "source_code": """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(512, 8)
    
    def forward(self, x):
        return self.attention(x, x, x)[0]
""",  # noqa: W293 - as it stands there
        "kernel_type": "torch"
    },
    "num_trials": 100
}  # fmt: skip
STRATEGIES: dict[str, Any] = {
    "ref_kernel": {
        "source_code": "# Standard attention implementation",
        "kernel_type": "torch"
    },
    "custom_kernel": {
        "source_code": "# Flash attention implementation",
        "kernel_type": "torch_cuda"
    },
    "num_trials": 200
}  # fmt: skip
TRITON: dict[str, Any] = {
    "kernel": {
        "source_code": """
import triton
import triton.language as tl

@triton.jit
def vector_add(x_ptr, y_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    block_start = pid * BLOCK_SIZE
    offsets = block_start + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(output_ptr + offsets, x + y, mask=mask)
""",
        "kernel_type": "triton",
        "io": {
            "args": [
                {"name": "x", "type": "tensor", "tensor_spec": {"shape": [1024], "dtype": "float32", "init": {"kind": "randn", "seed": 42}}, "role": "input"},
                {"name": "y", "type": "tensor", "tensor_spec": {"shape": [1024], "dtype": "float32", "init": {"kind": "randn", "seed": 43}}, "role": "input"},
                {"name": "output", "type": "tensor", "tensor_spec": {"shape": [1024], "dtype": "float32"}, "role": "output"},
                {"name": "n_elements", "type": "int", "value": 1024, "role": "input"},
                {"name": "BLOCK_SIZE", "type": "int", "value": 256, "role": "input", "is_meta": True}
            ],
            "launch": {"grid": {"x": 4}, "num_warps": 4}
        }
    },
    "num_trials": 100
}  # fmt: skip


@pytest.fixture(scope="module")
def up() -> Iterator[tuple[Podium, str]]:
    """`ENABLE_DEVICE_METRICS=true LOG_LEVEL=debug podium up --port N`, and its address."""
    with fresh("local") as podium:
        podium.environment |= {"ENABLE_DEVICE_METRICS": "true", "LOG_LEVEL": "debug"}
        process = podium.start("up", "--port", "0")
        try:
            said = read_until_up(process)
            yield podium, next(word for word in said.split() if word.startswith("http://"))
        finally:
            terminate(process)


@pytest.fixture
def server(up: tuple[Podium, str]) -> str:
    return up[1]


def asked(url: str, body: str | None = None) -> tuple[int, dict[str, Any]]:
    """A GET, or a POST of this body, as `curl` sends it."""
    headers = {"Content-Type": "application/json", "User-Agent": "curl/8.5.0"}
    if body is None:
        answer = httpx.get(url, headers=headers, timeout=ANSWER_S)
    else:
        answer = httpx.post(url, content=body, headers=headers, timeout=ANSWER_S)
    return answer.status_code, answer.json()


def judged(server: str, path: str, body: str | dict[str, Any]) -> dict[str, Any]:
    text = body if isinstance(body, str) else json.dumps(body)
    status, found = asked(server + path, text)
    assert (status, found["status"]) == (200, "success"), found
    return found


def test_they_look_whether_it_is_healthy(server: str) -> None:
    for place in ("", "/eval"):
        status, found = asked(f"{server}{place}/health")
        assert (status, found["status"]) == (200, "healthy")
        assert {"gpu_available", "gpu_count"} <= found.keys()


def test_their_first_request_is_judged(server: str) -> None:
    found = judged(server, "/evaluate", FIRST_REQUEST)
    result = found["kernel_exec_result"]
    assert (result["compiled"], result["correctness"]) == (True, True), result
    assert {"mean", "std", "median", "percentile_95"} <= result["runtime_stats"].keys()
    assert result["runtime"] > 0
    assert result["metadata"]["inputs"] == "float32[1024, 1024]"
    assert "there is no GPU here" in result["metadata"]["device_metrics_error"]
    number = found["job_id"]
    status, job = asked(f"{server}/job/{number}")
    assert (status, job["status"]) == (200, "completed")
    assert asked(f"{server}/eval/job/{number}")[1] == job


def test_the_readme_s_other_kernels_are_judged(server: str) -> None:
    assert judged(server, "/eval/evaluate", DOUBLED)["kernel_exec_result"]["correctness"]
    result = judged(server, "/evaluate", TRANSFORMER)["kernel_exec_result"]
    assert result["correctness"], result
    assert result["metadata"]["inputs"] == "float32[128, 16, 512]"


def test_what_a_comparison_s_kernel_lacks_is_told(server: str) -> None:
    result = judged(server, "/compare", CUSTOM_MATMUL)["kernel_exec_result"]
    assert not result["correctness"]
    assert "name 'custom_matmul' is not defined" in result["validation_error"], result
    result = judged(server, "/compare", STRATEGIES)["kernel_exec_result"]
    assert (result["compiled"], result["correctness"]) == (False, False), result
    assert "there is no `ModelNew`" in result["compilation_error"]


def test_a_triton_kernel_needs_a_gpu_and_they_are_told_what_to_do(server: str) -> None:
    status, found = asked(f"{server}/evaluate", json.dumps(TRITON))
    assert status == 500, found
    assert found["error"].endswith("start a worker on a machine with a GPU")


def test_a_missing_entry_point_is_named(server: str) -> None:
    kernel = {
        "source_code": "def go(x): return x",
        "kernel_type": "multi_kernel",
        "metadata": {"entry_point": "run"},
        "io": {"args": [{"name": "x", "type": "tensor", "tensor_spec": {"shape": [4]}}]},
    }
    result = judged(server, "/evaluate", {"kernel": kernel})["kernel_exec_result"]
    assert not result["compiled"]
    assert "Entry point 'run' not found" in result["compilation_error"]


def test_a_model_that_takes_no_shape_is_told_what_to_define(server: str) -> None:
    source = "class Model(nn.Module):\n    def forward(self, x):\n        return x.reshape(7, 11)"
    kernel = {"source_code": source, "kernel_type": "torch"}
    result = judged(server, "/evaluate", {"kernel": kernel})["kernel_exec_result"]
    assert not result["correctness"]
    assert "Define get_inputs, or give io" in result["validation_error"], result


def test_they_look_at_its_counts_and_clean_up(server: str) -> None:
    status, found = asked(f"{server}/stats")
    assert status == 200
    assert found["job_stats"]["total_jobs"] > 0
    status, found = asked(f"{server}/admin/cleanup-jobs", "")
    assert (status, found["status"]) == (200, "cleanup_completed")


def test_a_level_that_the_log_does_not_have_is_refused(up: tuple[Podium, str]) -> None:
    podium, _ = up
    refused = podium("show", LOG_LEVEL="loud")
    assert refused.returncode == 3, refused.stderr
    assert "LOG_LEVEL" in refused.stderr
    assert "'debug', 'info'" in refused.stderr
