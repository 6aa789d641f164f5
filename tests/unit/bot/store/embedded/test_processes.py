"""Which processes are a server of a folder."""

import asyncio
import shutil
import subprocess
from pathlib import Path

import pytest

from bot.store.embedded import programs


@pytest.mark.parametrize(("name", "is_server"), [("postgres", True), ("nano", False)])
def test_only_a_process_called_postgres_in_the_folder_is_its_server(
    tmp_path: Path, name: str, *, is_server: bool
) -> None:
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    program = shutil.copy("/bin/sleep", tmp_path / name)
    for folder in (data, elsewhere):
        folder.mkdir()
    with (
        subprocess.Popen([program, "60"], cwd=data) as one,
        subprocess.Popen([program, "60"], cwd=elsewhere) as other,
    ):
        try:
            assert asyncio.run(programs.server_processes(data)) == ((one.pid,) if is_server else ())
        finally:
            one.kill()
            other.kill()
