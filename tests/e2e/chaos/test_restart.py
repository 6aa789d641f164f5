"""Starts, ends and restarts of `podium up`, and the places where it cannot start."""

import json
import os
import random
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bot.store.embedded.programs import server_account
from bot.store.embedded.server import Cluster, socket_folder, stop
from tests.e2e.command import Podium, running, terminate

pytestmark = [pytest.mark.slow, pytest.mark.postgres]
DEBIAN = sorted(path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/postgres"))
WAIT_S = 40.0


@pytest.fixture
def podium(folder: Path) -> Podium:
    return Podium(folder, PODIUM_LEASE_S="3")


@pytest.fixture
def disk(folder: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A file system of so many MiB."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small file system")
    place = folder / "disk"
    place.mkdir()
    mount = [
        "mount",
        "-t",
        "tmpfs",
        "-o",
        f"size={request.param}m,mode=0711",
        "podium-test",
        str(place),
    ]
    mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.fixture
async def debian(folder: Path) -> AsyncIterator[str]:
    """The URL of a server of Debian's package."""
    if not DEBIAN:
        pytest.skip("Debian's postgresql package is not installed")
    home = folder / "debian"
    home.mkdir(mode=0o711)
    account = server_account()
    server = Cluster(
        home=home,
        programs=DEBIAN[-1],
        account=account,
        password="only-for-this-test",  # noqa: S106 - the server is gone after the test
        sockets=socket_folder(home, account),
        log=home / "postgres.log",
    )
    await server.create()
    process = await server.start()
    yield server.dsn
    await stop(process)


def until_state(podium: Podium, submission: int, state: str) -> dict[str, Any]:
    """The only job of a submission once it is in that state."""
    deadline = time.monotonic() + WAIT_S
    while True:
        job: dict[str, Any] = podium.shown(submission)["jobs"][0]
        if job["state"] == state:
            return job
        assert time.monotonic() < deadline, job


def test_a_second_up_is_refused_and_told_who_has_the_folder(podium: Podium) -> None:
    with running(podium) as first:
        second = podium("up")
        assert second.returncode == 3
        assert f"data folder in use by Podium pid {first.pid};" in second.stderr
        assert "--data" in second.stderr
        assert "Traceback" not in second.stderr
        assert first.poll() is None


def test_an_up_killed_while_it_evaluates_is_made_up_for_by_the_next(podium: Podium) -> None:
    with running(podium) as first:
        podium.publish()
        podium.queue("ada", "seconds=4 time_us=30")
        until_state(podium, 1, "running")
        first.kill()
        first.wait()
    with running(podium):
        job = until_state(podium, 1, "succeeded")
    assert (job["attempt"], job["verdict"]) == (2, "passed")


def test_a_polite_end_finishes_what_runs_and_keeps_what_waits(podium: Podium) -> None:
    with running(podium) as process:
        podium.publish()
        podium.queue("ada", "seconds=5 time_us=30")
        until_state(podium, 1, "running")
        podium.queue("ken", "time_us=20")
        status, said = terminate(process)
    assert status == 0, said
    assert "stopping: running jobs finish, queued jobs stay queued" in said
    assert until_state(podium, 1, "succeeded")["attempt"] == 1
    assert until_state(podium, 2, "queued")["attempt"] == 0


@pytest.mark.parametrize("disk", [30], indirect=True)
def test_a_full_disk_is_said_and_is_our_fault(disk: Path, folder: Path) -> None:
    podium = Podium(folder, PODIUM_DATA_DIR=str(disk / "data"))
    refused = podium("up")
    assert refused.returncode == 3
    assert "the disk is full" in refused.stderr
    assert "choose another data folder" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize("disk", [170], indirect=True)
def test_a_disk_that_fills_up_is_said_and_harms_nothing_stored(disk: Path, folder: Path) -> None:
    podium = Podium(folder, PODIUM_DATA_DIR=str(disk / "data"))
    with running(podium) as process:
        podium.publish()
        filler = disk / "filler"
        with suppress(OSError):  # the database writes as well
            filler.write_bytes(bytes(shutil.disk_usage(disk).free))
        letters = random.Random(1).choices("abcdefghij", k=900_000)  # noqa: S311 - no secret
        large = folder / "large.py"
        large.write_text("# fake: time_us=1\ndef custom_kernel(data): ...\n#" + "".join(letters))
        refused = podium("submit", large, "--leaderboard", "identity", "--no-wait")
        assert refused.returncode == 3
        assert "disk is full" in refused.stderr
        assert "Traceback" not in refused.stderr
        filler.unlink()
        kept = podium.directed("ada", "time_us=30")
        told = podium("submit", kept, "--leaderboard", "identity", "--json")
        assert json.loads(told.stdout)["state"] == "finished", told.stderr
        assert process.poll() is None


async def test_the_main_job_runs_on_debians_postgres(debian: str, folder: Path) -> None:
    podium = Podium(folder, DATABASE_URL=debian)
    with running(podium) as process:
        podium.publish()
        podium.queue("ada", "time_us=30")
        assert until_state(podium, 1, "succeeded")["verdict"] == "passed"
        assert process.poll() is None
    assert "ada" in podium("show", "identity").stdout
    assert not (folder / "data" / "postgres").exists()
