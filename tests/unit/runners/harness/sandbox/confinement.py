"""Runs a script inside the sandbox, from a process that plays the judge."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runners.contract.evaluation import Limits
from tests.doubles import footprints

DRIVER = Path(__file__).parent / "driver.py"
ROOT = Path(__file__).resolve().parents[5]


@dataclass(frozen=True)
class Outcome:
    """What a confined script left in `said`, and which layers it had."""

    said: Any
    layers: tuple[str, ...]
    missing: dict[str, str]
    stderr: str


Confined = Callable[..., Outcome]


def start(
    script: str,
    *,
    nested: bool = False,
    limits: Limits | None = None,
    refused: Sequence[str] = (),
) -> subprocess.Popen[str]:
    order = {
        "script": script,
        "nested": nested,
        "refused": refused,
        "limits": (limits or Limits()).model_dump_json(),
    }
    return subprocess.Popen(
        [sys.executable, str(DRIVER), json.dumps(order)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={
            "PATH": os.defpath,
            "LANG": "C.UTF-8",
            "PODIUM_SECRET": "hunter2",
            **footprints.inherited(),
        },
    )


def run(
    script: str, *, nested: bool, limits: Limits | None = None, refused: Sequence[str] = ()
) -> Outcome:
    with start(script, nested=nested, limits=limits, refused=refused) as process:
        out, err = process.communicate(timeout=60)
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    if not lines:
        raise AssertionError(f"the driver said nothing: {err}")
    said = lines[1]["said"] if len(lines) > 1 else f"died: {err}"
    return Outcome(said, tuple(lines[0]["layers"]), lines[0]["missing"], err)
