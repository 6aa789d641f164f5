"""The evaluation server's surface with real processes: killed in mid-run, nothing is lost."""

import re
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.e2e.command import Podium, fresh, terminate

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.timeout(180)]

WITHIN_S = 90
REFERENCE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1

def get_inputs():
    return [torch.randn(64, 64)]

def get_init_inputs():
    return []
"""
RIGHT = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n{}"
QUICK = RIGHT.format("        return torch.clamp(x, min=0) + 1\n")
SLOW = RIGHT.format("        import time; time.sleep(0.2)\n        return x.clamp(min=0) + 1\n")


def kernel(source: str) -> dict[str, object]:
    return {"source_code": source, "kernel_type": "torch"}


def comparison(custom: str) -> dict[str, object]:
    return {
        "ref_kernel": kernel(REFERENCE),
        "custom_kernel": {"source_code": custom, "kernel_type": "torch_cuda"},
        "num_trials": 1,
        "timeout": 60,
    }


@pytest.fixture
def podium() -> Iterator[Podium]:
    with fresh("local") as podium:
        podium.environment["PODIUM_HTTP_PORT"] = "0"
        podium.environment["PODIUM_LEASE_S"] = "2"
        yield podium


class _Site:
    """A Podium that is up, and its address for the evaluation server's client."""

    def __init__(self, podium: Podium) -> None:
        self.process = podium.start("up")
        said = ""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said += line
            if "Ctrl-C" in line:
                break
        self.url = re.findall(r"http://\S+", said)[0]

    def asked(self, method: str, path: str, body: object = None) -> httpx.Response:
        """What the client's `requests` would get."""
        return httpx.request(method, f"{self.url}/eval{path}", json=body, timeout=60)


def job_when(site: _Site, number: str, statuses: set[str]) -> dict[str, Any]:
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline:
        found: dict[str, Any] = site.asked("GET", f"/job/{number}").json()
        if found["status"] in statuses:
            return found
        time.sleep(0.1)
    raise TimeoutError(f"job {number} is not {' or '.join(statuses)} within {WITHIN_S} s")


def test_a_server_that_is_killed_in_mid_run_loses_no_accepted_job(podium: Podium) -> None:
    """The evaluation server kept its jobs in memory."""
    site = _Site(podium)
    try:
        right = site.asked("POST", "/compare", comparison(QUICK)).json()
        assert right["kernel_exec_result"]["correctness"], right
        assert right["kernel_exec_result"]["runtime_stats"]["mean"] > 0
        assert right["ref_runtime"]["mean"] > 0
        number = str(int(right["job_id"]) + 1)
        asks = threading.Thread(target=_broken_off, args=(site, comparison(SLOW)))
        asks.start()
        while site.asked("GET", f"/job/{number}").status_code == 404:
            time.sleep(0.05)
        job_when(site, number, {"validating", "profiling"})
    finally:
        site.process.send_signal(signal.SIGKILL)
        site.process.communicate()
    asks.join(20)

    site = _Site(podium)
    try:
        job = job_when(site, number, {"completed", "failed"})
        assert job["status"] == "completed", job
        assert job["result"]["kernel_exec_result"]["correctness"], job
        assert job["result"]["kernel_exec_result"]["runtime"] > 150
        assert site.asked("GET", f"/job/{right['job_id']}").json()["result"] == right
        assert site.asked("GET", "/stats").json()["job_stats"]["by_status"] == {"completed": 2}
    finally:
        status, said = terminate(site.process)
    assert status == 0, said


def _broken_off(site: _Site, body: object) -> None:
    with pytest.raises(httpx.TransportError):
        site.asked("POST", "/compare", body)
