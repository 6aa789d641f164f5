"""Keeping an installation running, with real processes: backup, restore, export."""

import json

import pyarrow.parquet
import pytest

from tests.e2e.command import fresh, refusal
from tests.e2e.command import served as running


@pytest.mark.slow
def test_a_backup_of_a_running_podium_is_a_podium_again() -> None:
    with fresh() as podium:
        file, out, other = podium.folder / "b", podium.folder / "out", podium.folder / "other"
        with running(podium):
            podium.publish()
            kernel = podium.directed("ada", "time_us=30")
            judged = podium("submit", kernel, "--leaderboard", "identity", "--as", "ada")
            assert judged.returncode == 0, judged.stderr
            made = podium("backup", file, "--json")
            assert json.loads(made.stdout)["rows"]["boards"] == 1
            assert "exists already" in refusal(podium("backup", file), 2)
            assert "stop it first" in refusal(podium("restore", file, "--force"), 3)
        assert "--force" in refusal(podium("restore", file), 2)
        restored = podium("restore", file, "--data", other)
        assert "restored" in restored.stdout, restored.stderr
        assert "ada" in podium("show", "identity", "--data", other).stdout
        exported = podium("export", "identity", "--out", out, "--data", other)
        assert exported.returncode == 0, exported.stderr
        [row] = pyarrow.parquet.read_table(out / "submissions.parquet").to_pylist()
        assert (out / "sources" / row["sha256"]).read_text("utf-8") == kernel.read_text("utf-8")
        [case] = pyarrow.parquet.read_table(out / "cases.parquet").to_pylist()[-1:]
        assert case["time_ns"] == 30_000
        assert "nanoseconds" in (out / "README.md").read_text("utf-8")
        assert "another" in refusal(podium("export", "identity", "--out", out), 2)
