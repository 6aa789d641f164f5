"""The harness's own confinement: its report, its strictness, its end."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from runners.harness.sandbox import bubblewrap, outer
from tests.doubles import footprints

ROOT = Path(__file__).resolve().parents[5]
BEGIN = f"""
import json, os, sys
sys.path.insert(0, {str(ROOT)!r})
from runners.harness.sandbox import kernel, outer, seccomp
from tests.doubles import footprints
footprints.begin()
"""
REFUSE_NAMESPACES = """
kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
seccomp.install(gpu=False)
"""
CONFINE = """
report = outer.confine([], strict={strict}, gpu=False)
print(json.dumps([json.loads(report.model_dump_json()), os.getuid(), dict(os.environ)]), flush=True)
"""
WAIT = "sys.stdin.read()\n"
own_launcher = pytest.mark.skipif(
    os.getuid() != 0 and bubblewrap.installed() is not None,
    reason="bubblewrap starts the harness program itself, not a test's script",
)


def start(script: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PATH": os.defpath, "PODIUM_SECRET": "hunter2", **footprints.inherited()},
    )


def run(script: str) -> tuple[str, str, int]:
    with start(script) as process:
        out, err = process.communicate(timeout=60)
    return out, err, process.returncode


@own_launcher
def test_the_harness_gets_its_layers_and_no_secret() -> None:
    out, err, status = run(BEGIN + CONFINE.format(strict=False))
    assert status == 0, err
    report, uid, environment = json.loads(out)
    if report["outer"] == outer.NONE:
        pytest.skip(f"no namespaces here: {report['missing']}")
    assert {"filesystem", "namespaces", "network", "limits"} <= set(report["layers"])
    assert uid != 0
    assert set(environment) == {"HOME", "LANG", "PATH", "USER"}


@own_launcher
def test_missing_layers_are_said_loudly_and_the_harness_still_runs() -> None:
    out, err, status = run(BEGIN + REFUSE_NAMESPACES + CONFINE.format(strict=False))
    assert status == 0, err
    report, _, _ = json.loads(out)
    assert report["outer"] == outer.NONE
    assert {"filesystem", "namespaces", "network"} <= set(report["missing"])
    assert "MISSING harness namespaces" in err
    assert "MISSING candidate namespaces" in err


@own_launcher
def test_strict_refuses_to_run_with_layers_missing() -> None:
    out, err, status = run(BEGIN + REFUSE_NAMESPACES + CONFINE.format(strict=True))
    assert (out, status) == ("", outer.STRICT_EXIT)
    assert "refusing to run without filesystem, namespaces, network" in err


@own_launcher
def test_its_exit_status_is_handed_on() -> None:
    assert run(BEGIN + CONFINE.format(strict=False) + "raise SystemExit(7)\n")[2] == 7


@own_launcher
def test_killing_the_supervisor_kills_everything() -> None:
    with start(BEGIN + CONFINE.format(strict=False) + WAIT) as process:
        assert process.stdout is not None
        process.stdout.readline()
        beneath = psutil.Process(process.pid).children(recursive=True)
        assert len(beneath) == 2
        process.send_signal(signal.SIGKILL)
        _, alive = psutil.wait_procs(beneath, timeout=5)
        assert alive == []
        process.communicate(timeout=10)


@own_launcher
def test_the_end_of_input_ends_everything_and_leaves_no_cgroup() -> None:
    with start(BEGIN + CONFINE.format(strict=False) + WAIT) as process:
        assert process.stdout is not None
        process.stdout.readline()
        beneath = psutil.Process(process.pid).children(recursive=True)
        process.communicate(timeout=10)
    assert process.returncode == 0
    assert not any(each.is_running() for each in beneath)
    assert list(Path("/sys/fs/cgroup").rglob(f"podium-{process.pid}")) == []


AS_USER = """
import os, runpy, sys
sys.path.insert(0, {root!r})
from runners.harness.sandbox import isolate, layers
from tests.doubles import footprints
footprints.begin()
if os.getuid() == 0:
    isolate.build_view(1 << 30, gpu=False)
    isolate.leave_root(layers.Layers())
os.chdir({root!r})
sys.argv[1:] = ["--serve"]
runpy.run_module("runners.harness", run_name="__main__", alter_sys=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(bubblewrap.installed() is None, reason="bubblewrap is not installed")
def test_an_ordinary_user_gets_bubblewrap_with_candidates_inside() -> None:
    out, err, status = run(AS_USER.format(root=str(ROOT)))
    assert status == 0, err
    isolation = json.loads(out.splitlines()[0])["ready"]["isolation"]
    assert isolation["outer"] == bubblewrap.NAME
    assert "MISSING candidate" not in err
