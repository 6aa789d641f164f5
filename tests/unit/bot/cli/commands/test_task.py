"""`podium task pack`: one zip that stands alone."""

import json
from pathlib import Path

import pytest

from bot.app.installation import Installation
from bot.cli.app import run
from bot.domain.tasks.bundle import read_zip
from bot.domain.tasks.competition import read_competition
from bot.domain.tasks.scaffold import scaffold
from bot.domain.tasks.task_file import digest, parse_task
from bot.settings import Settings
from bot.store.task_folders import read_folder


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """A scaffold whose task.py lies in another set."""
    folder = tmp_path / "set" / "double"
    for path, text in scaffold("double").items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            text.replace("source: task.py", "source: ../../shared/task.py"), encoding="utf-8"
        )
    (tmp_path / "shared").mkdir()
    (folder / "task.py").rename(tmp_path / "shared" / "task.py")
    return folder


def _pack(*arguments: str | Path) -> int:
    return run(("task", "pack", *map(str, arguments)), Installation(Settings()))


def test_a_zip_has_all_that_the_task_takes_and_is_the_same_task(
    task: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "packed.zip"
    assert _pack(task, "--root", tmp_path, "--out", file, "--json") == 0
    assert json.loads(capsys.readouterr().out)["zip"] == str(file)
    alone = parse_task(read_zip(file.read_bytes()))
    assert digest(alone) == digest(parse_task(read_folder(task, tmp_path)))
    assert _pack(task, "--root", tmp_path, "--out", file) == 0  # again, after a change


def test_a_zip_is_called_as_its_task(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert _pack("set/double", "--root", ".") == 0
    assert (tmp_path / "double.zip").is_file()


def test_a_competition_is_packed_with_its_tasks(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    problems = "[{directory: set/double, name: one}, {directory: set/double, name: two}]"
    (tmp_path / "cup.yaml").write_text(f"name: Cup\nproblems: {problems}\n", encoding="utf-8")
    assert _pack("cup.yaml") == 0
    assert "podium task publish cup.yaml, or upload the zip as a competition in " in (
        capsys.readouterr().out
    )
    parsed = read_competition((tmp_path / "cup.zip").read_bytes())
    assert [each.name for each in parsed.definition.problems] == ["one", "two"]
    assert {digest(each.task) for each in parsed.tasks} == {
        digest(parse_task(read_folder(task, tmp_path)))
    }
    (tmp_path / "set.zip").write_bytes(b"")
    assert _pack("set.zip") == 2


@pytest.mark.parametrize("said", ["cannot be written", "is outside the task", "'flopz'"])
def test_what_no_server_would_take_is_not_packed(
    task: Path, tmp_path: Path, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "absent" / "x.zip" if said == "cannot be written" else tmp_path / "x.zip"
    root = tmp_path / "set" if said == "is outside the task" else tmp_path
    if said == "'flopz'":
        with (task / "task.yml").open("a", encoding="utf-8") as file:
            file.write("flopz: 1\n")
    assert _pack(task, "--root", root, "--out", out) == 2
    assert said in capsys.readouterr().err
    assert not out.exists()
