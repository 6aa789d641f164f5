"""The harness's own confinement: its report, its strictness, its end."""

import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from runners.contract.task import IsolationLayer
from runners.harness.sandbox import isolate, outer
from tests.doubles import footprints

ROOT = Path(__file__).resolve().parents[5]
BEGIN = f"""
import json, os, sys
sys.path.insert(0, {str(ROOT)!r})
from runners.harness.sandbox import filters, outer, syscalls
from tests.doubles import footprints
footprints.begin()
"""
REFUSE_NAMESPACES = """
syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
numbers, filters._PRCTL = filters._PRCTL, (0xFFFF, 0xFFFF)
refused = dict(filters._REFUSED)
filters._REFUSED = {name: refused[name] for name in refused if not name.startswith("landlock")}
filters.refuse_calls(gpu=False)
filters._PRCTL, filters._REFUSED = numbers, refused
"""
"""Refuses what a candidate's filter refuses, except that the harness may adopt its orphans and use
Landlock."""
CONFINE = """
report = outer.confine([], strict={strict}, gpu=False)
print(json.dumps([json.loads(report.model_dump_json()), os.getuid(), dict(os.environ)]), flush=True)
"""
SETTLES_S = 5
WAIT = "sys.stdin.read()\n"
own_launcher = pytest.mark.skipif(
    os.getuid() != 0 and outer.bubblewrap_installed() is not None,
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
    assert set(IsolationLayer) <= set(report["layers"])  # of candidates: that is what is offered
    assert uid != 0
    assert set(environment) == {"HOME", "LANG", "PATH", "USER"}


UNDER_WAY = """
import resource, socket
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
outer.confine([], strict=False, gpu=False)
ends = socket.socketpair()
if os.fork() == 0:
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    try:
        while True:
            socket.send_fds(ends[0], [b"x"], [0] * 250)
    except OSError as error:
        print(error.errno, flush=True)
    os._exit(0)
os.wait()
socket.send_fds(ends[1], [b"x"], [0])
print("sent", hard > 512)
"""


@own_launcher
def test_descriptors_that_a_candidate_leaves_under_way_do_not_stop_the_judge_from_sending() -> None:
    out, err, _ = run(BEGIN + UNDER_WAY)
    assert out.split() == [str(errno.ETOOMANYREFS), "sent", "True"], err


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


def settled(pid: int, count: int) -> list[psutil.Process]:
    """What runs beneath it once so many are left: what a probe leaves is reaped a little later."""
    supervisor = psutil.Process(pid)
    deadline = time.monotonic() + SETTLES_S
    while len(found := supervisor.children(recursive=True)) != count:
        assert time.monotonic() < deadline, found
        time.sleep(0.005)
    return found


@own_launcher
def test_killing_the_supervisor_kills_everything() -> None:
    with start(BEGIN + CONFINE.format(strict=False) + WAIT) as process:
        assert process.stdout is not None
        process.stdout.readline()
        beneath = settled(process.pid, 2)
        process.send_signal(signal.SIGKILL)
        _, alive = psutil.wait_procs(beneath, timeout=5)
        assert alive == []
        process.communicate(timeout=10)


BUSY = """
report = outer.confine([], strict=False, gpu=False, until_orphaned=True)
os.fork()
os.setsid() if os.getpid() != os.getpgrp() else None
os.write(1, b"busy\\n")
while True: pass
"""


@own_launcher
@pytest.mark.parametrize("refuse", ["", REFUSE_NAMESPACES])
def test_everything_ends_when_the_process_that_started_it_is_killed(refuse: str) -> None:
    keeper = "import os, signal\nif os.fork():\n    signal.pause()\n"
    with start(keeper + BEGIN + refuse + BUSY) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["busy\n"] * 2
        beneath = psutil.Process(process.pid).children(recursive=True)
        assert len(beneath) >= 4
        process.send_signal(signal.SIGKILL)
        _, alive = psutil.wait_procs(beneath, timeout=5)
        for each in alive:
            each.kill()
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


HIDDEN = """
from runners.harness.sandbox import view

view.SYSTEM = (*view.SYSTEM, {shown!r})
view.hide([{data!r}])
outer.confine([], strict=False, gpu=False)
paths = [{root!r} + name for name in ("/tasks", "/bot", "/.git", "/runners")]
paths.append({data!r} + "/secret")
print(json.dumps([path for path in paths if os.path.exists(path)]), flush=True)
syscalls.adopt_orphans()
if os.fork() == 0:
    isolate.enter(Limits(), lambda _: None, keep_fds=frozenset(), gpu=False)
    print(json.dumps([path for path in paths if os.path.exists(path)]), flush=True)
    os._exit(0)
os.wait()
os.wait()
"""


@own_launcher
@pytest.mark.skipif(ROOT.is_relative_to("/tmp"), reason="no folder of the system lies there")  # noqa: S108
def test_a_checkout_and_data_among_the_systems_folders_are_not_seen() -> None:
    with tempfile.TemporaryDirectory(dir=ROOT.parent) as data:
        Path(data, "secret").write_text("hunter2")
        Path(data).chmod(0o755)
        begin = BEGIN + "from runners.contract.evaluation import Limits\n"
        begin += "from runners.harness.sandbox import isolate\n"
        shown = {"shown": str(ROOT.parent), "data": data, "root": str(ROOT)}
        out, err, status = run(begin + HIDDEN.format(**shown))
    if "MISSING harness filesystem" in err:
        pytest.skip("no view of the files here")
    assert status == 0, err
    assert [json.loads(line) for line in out.splitlines()] == [[f"{ROOT}/runners"]] * 2


REFUSE = """
from runners.harness.sandbox import isolate, process_limits

def refuse(*_, **__):
    raise OSError("refused here")

{place} = refuse
"""


@own_launcher
@pytest.mark.parametrize(
    ("place", "layer"),
    [("filters.restrict_paths", "landlock"), ("filters.refuse_calls", "seccomp")],
)
def test_strict_refuses_without_a_layer_of_the_candidate(place: str, layer: str) -> None:
    begin = BEGIN + REFUSE.format(place=place)
    out, err, status = run(begin + CONFINE.format(strict=True))
    if "candidate namespaces" in err:
        pytest.skip("no namespaces here")
    assert (out, status) == ("", outer.STRICT_EXIT)
    assert f"refusing to run without {layer} (strict)" in err
    out, err, status = run(begin + CONFINE.format(strict=False))
    assert status == 0, err
    report = json.loads(out)[0]
    assert report["missing"][layer] == "refused here"
    assert layer not in report["layers"]


@own_launcher
def test_a_machine_without_cgroups_is_strict_enough_and_it_is_said() -> None:
    strict = CONFINE.format(strict=True)
    if run(BEGIN + strict)[2] == outer.STRICT_EXIT:
        pytest.skip("this machine lacks other layers")
    out, err, status = run(BEGIN + REFUSE.format(place="process_limits.make_cgroup") + strict)
    assert status == 0
    why = "refused here; process limits and the watchdog replace it"
    assert json.loads(out)[0]["missing"]["harness cgroup"] == why
    assert f"MISSING harness cgroup: {why}" in err


GROUP = """
from pathlib import Path
from runners.harness.sandbox import process_limits

class Group(process_limits.Group):
    def enter(self):
        Path({record!r}).write_text(str(os.getpid()))

process_limits.make_cgroup = lambda: Group((Path({folder!r}),))
supervisor = os.getpid()
"""


@own_launcher
def test_the_harness_enters_its_group_and_the_supervisor_removes_it(tmp_path: Path) -> None:
    folder, record = tmp_path / "group", tmp_path / "record"
    folder.mkdir()
    grouped = BEGIN + GROUP.format(folder=str(folder), record=str(record))
    with start(grouped + CONFINE.format(strict=False) + WAIT) as process:
        assert process.stdout is not None
        report = json.loads(process.stdout.readline())[0]
        assert folder.exists()
        process.communicate(timeout=10)
    assert "cgroup" in report["layers"]
    assert int(record.read_text()) != process.pid
    assert not folder.exists()


@own_launcher
def test_the_signal_that_ended_it_is_handed_on_as_a_shell_would() -> None:
    died = "import signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
    assert run(BEGIN + CONFINE.format(strict=False) + died)[2] == 128 + signal.SIGKILL


ORPHAN = """
def processes():
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())

if os.fork() == 0:
    if os.fork() == 0:
        os._exit(0)
    os._exit(0)
os.wait()
while len(processes()) > 2:
    continue
print(processes(), flush=True)
"""


@own_launcher
def test_orphans_are_collected_and_the_harness_goes_on() -> None:
    out, err, status = run(BEGIN + CONFINE.format(strict=False) + ORPHAN)
    if "MISSING harness namespaces" in err:
        pytest.skip("no namespaces here")
    assert status == 0, err
    assert out.splitlines()[1] == "[1, 2]"


def test_inside_bubblewrap_nothing_is_made_again() -> None:
    wrapped = f"os.environ[{outer.MARKER!r}] = {outer.BUBBLEWRAP!r}\n"
    out, err, status = run(BEGIN + wrapped + CONFINE.format(strict=False))
    assert status == 0, err
    report, uid, environment = json.loads(out)
    assert report["outer"] == outer.BUBBLEWRAP
    assert "harness filesystem" not in report["missing"]
    assert "limits" in report["layers"]
    assert "no cgroup was made" in report["missing"]["harness cgroup"]
    assert uid == os.getuid()
    assert set(environment) == {"HOME", "LANG", "PATH", "USER"}


def test_a_trial_candidate_that_dies_is_missing_every_layer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def die(*_: object, **__: object) -> None:
        os._exit(1)

    monkeypatch.setattr(isolate, "enter", die)
    active, missing = outer.candidate_layers(gpu=False)
    assert active == ()
    assert missing == dict.fromkeys(IsolationLayer, "the trial candidate died")


def test_whoever_lost_its_parent_before_it_could_know_ends_at_once() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as parent:
        gone = os.pidfd_open(parent.pid)
        parent.wait()
    child = os.fork()
    if child == 0:
        outer._exit_with(gone)
        os._exit(77)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    os.close(gone)


AS_NOBODY = """
if os.getuid() == 0:
    isolate.build_view(1 << 30, gpu=False)
    isolate.leave_root(isolate.Layers())
outer.bubblewrap_installed = lambda: {installed!r}
"""


@pytest.mark.parametrize("installed", [None, "/usr/bin/bwrap"])
def test_an_ordinary_user_without_a_working_bubblewrap_gets_the_own_launcher(
    installed: str | None,
) -> None:
    begin = (
        BEGIN
        + REFUSE.format(place="outer.enter_bubblewrap")
        + AS_NOBODY.format(installed=installed)
    )
    out, err, status = run(begin + CONFINE.format(strict=False))
    assert status == 0, err
    report, uid, _ = json.loads(out)
    if report["outer"] == outer.NONE:
        pytest.skip(f"no namespaces for users here: {report['missing']}")
    assert report["outer"] == outer.LAUNCHER
    assert {"filesystem", "namespaces", "network"} <= set(report["layers"])
    assert report["missing"].get("harness bubblewrap") == (installed and "refused here")
    assert uid != 0


AS_USER = """
import os, runpy, sys
sys.path.insert(0, {root!r})
from runners.harness.sandbox import isolate
from tests.doubles import footprints
footprints.begin()
if os.getuid() == 0:
    isolate.build_view(1 << 30, gpu=False)
    isolate.leave_root(isolate.Layers())
os.chdir({root!r})
sys.argv[1:] = ["--serve"]
runpy.run_module("runners.harness", run_name="__main__", alter_sys=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(outer.bubblewrap_installed() is None, reason="bubblewrap is not installed")
def test_an_ordinary_user_gets_bubblewrap_with_candidates_inside() -> None:
    out, err, status = run(AS_USER.format(root=str(ROOT)))
    assert status == 0, err
    isolation = json.loads(out.splitlines()[0])["ready"]["isolation"]
    assert isolation["outer"] == outer.BUBBLEWRAP
    assert "MISSING candidate" not in err
