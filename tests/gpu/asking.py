"""A warm harness on this machine's first GPU, called through its pipes as by a runner."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from runners.contract.evaluation import Evaluation, EvaluationRequest

ROOT = Path(__file__).resolve().parents[2]
ON_CPU = (sys.executable, "-m", "runners.harness", "--serve")
COMMAND = (*ON_CPU, "--gpu-index", "0")


class HarnessError(Exception):
    """The harness failed, not the submission."""


@dataclass(frozen=True, slots=True)
class Server:
    """A serving harness and its ready line."""

    process: subprocess.Popen[bytes]
    ready: str

    def ask(self, request: EvaluationRequest) -> tuple[Evaluation, float]:
        """The evaluation and the seconds that it took; HarnessError when there is none."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        begin = time.monotonic()
        self.process.stdin.write(request.model_dump_json().encode() + b"\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            said = json.loads(line)
            if "error" in said:
                raise HarnessError(said["error"])
            if "evaluation" in said:
                found = Evaluation.model_validate_json(json.dumps(said["evaluation"]))
                return found, time.monotonic() - begin
        raise HarnessError(f"the harness ended with status {self.process.wait(timeout=30)}")


@contextmanager
def serving(environment: Mapping[str, str] | None = None, *, gpu: bool = True) -> Iterator[Server]:
    """A harness that is ready, ended at the end; without `environment`, in this process's own."""
    pipe, command = subprocess.PIPE, COMMAND if gpu else ON_CPU
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, env=environment) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield Server(process, process.stdout.readline().decode().strip())
        finally:
            process.stdin.close()
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()


def gpus_here() -> int:
    """The number of GPUs, found in another process, because this one must create no context."""
    code = "import torch; print(torch.cuda.device_count())"
    asked = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    return int(asked.stdout)
