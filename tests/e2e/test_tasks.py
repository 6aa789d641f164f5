"""`podium task` as a real process: sets, deadlines, dry runs, and what is left when it fails."""

import json
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doubles.kernelbot import EVAL
from tests.doubles.task_zips import WITH_EVAL
from tests.e2e.command import IDENTITY, Podium, fresh, json_refusal, refusal

SET = """\
name: Season
problems:
  - directory: set/double
    name: first-board
    deadline: 2099-06-30
    gpus: [CPU]
    prize: much
  - directory: set/triple
    name: second-board
    deadline: "2099-06-30 6:59"
"""
OURS = "Podium's judge grades: the task has no evaluation program of its own."


@pytest.fixture(scope="module")
def podium() -> Iterator[Podium]:
    """Two tasks in a folder `set`, a competition of them beside it, and the fake runner."""
    with fresh() as podium:
        for name in ("double", "triple"):
            assert podium("task", "new", f"set/{name}").returncode == 0
        text = podium.folder / "set" / "triple" / "task.yml"
        text.write_text(text.read_text(encoding="utf-8") + "points: 3\n", encoding="utf-8")
        podium.file("season.yaml", SET)
        yield podium


def _boards(podium: Podium) -> dict[str, str | None]:
    return {each["board"]: each["deadline"] for each in json.loads(podium("show", "--json").stdout)}


@pytest.mark.slow
def test_a_competition_opens_its_boards_or_none_of_them(podium: Podium) -> None:
    unsound = refusal(podium("task", "publish", "season.yaml"), 2)
    assert "first-board on CPU: solutions/wrong/almost_two.py: got passed" in unsound
    assert unsound.endswith("nothing was published")
    strict = refusal(podium("task", "publish", "set", "--unchecked"), 2)
    assert "triple/task.yml:" in strict
    assert "unknown key 'points'" in strict
    assert _boards(podium) == {}
    opened = podium("task", "publish", "season.yaml", "--unchecked", "--gpu", "CPU")
    assert opened.stdout.splitlines() == [
        f"first-board: {OURS}",
        "first-board on CPU: created, task version 1, until 2099-06-30 23:59 UTC",
        f"second-board: {OURS}",
        "second-board on CPU: created, task version 1, until 2099-06-30 06:59 UTC",
    ]
    assert "warning: season.yaml:7: unknown key 'prize'" in opened.stderr
    assert "unknown key 'points'" in opened.stderr
    again = json.loads(podium("task", "publish", "season.yaml", "--json").stdout)
    assert [(each["change"], each["dry_run"]) for each in again] == [("unchanged", [])] * 2
    assert again[0]["deadline"] == "2099-06-30T23:59:00+00:00"


@pytest.mark.slow
def test_a_deadline_is_told_with_its_zone_and_can_be_taken_away(podium: Podium) -> None:
    arguments = ("task", "publish", "set/double", "--name", "dated", "--gpu", "CPU", "--unchecked")
    dated = podium(*arguments, "--deadline", "2099-01-31 18:00")
    assert dated.stdout.endswith("created, task version 1, until 2099-01-31 18:00 UTC\n")
    kept = json.loads(podium(*arguments, "--json").stdout)
    assert kept[0]["deadline"] == "2099-01-31T18:00:00+00:00"
    endless = podium(*arguments, "--no-deadline")
    assert endless.stdout.splitlines() == [
        f"dated: {OURS}",
        "dated on CPU: configured, task version 1, no deadline",
    ]
    assert _boards(podium)["dated"] is None


@pytest.mark.slow
def test_a_note_is_shown_with_its_version(podium: Podium) -> None:
    arguments = ("task", "publish", "noted", "--gpu", "CPU", "--unchecked")
    folder = podium.folder / "noted"
    shutil.copytree(podium.folder / "set" / "double", folder)
    podium(*arguments)
    text = (folder / "task.yml").read_text(encoding="utf-8")
    changed = text + "seed: 5\nversion_note: another seed\n"
    (folder / "task.yml").write_text(changed, encoding="utf-8")
    assert "new-version, task version 2 (another seed), no deadline" in podium(*arguments).stdout
    assert "another seed" in podium("show", "noted").stdout


def test_a_check_that_could_not_run_anything_is_no_pass(podium: Podium) -> None:
    cuda = podium.folder / "cuda-only"
    shutil.copytree(podium.folder / "set" / "double", cuda)
    text = (cuda / "task.yml").read_text(encoding="utf-8")
    (cuda / "task.yml").write_text(text + "device: cuda\n", encoding="utf-8")
    checked = podium("task", "check", cuda, "--gpu", "CPU")
    assert checked.returncode == 1
    assert "cuda-only on CPU: well-formed, but not run" in checked.stdout
    assert "not run: missing the device cuda" in checked.stdout
    [report] = json.loads(podium("task", "check", cuda, "--gpu", "CPU", "--json").stdout)
    assert (report["ok"], report["dry_run"]) == (False, False)
    assert "sound" not in checked.stdout


def test_a_task_at_the_top_of_a_zip_is_called_as_the_zip(podium: Podium) -> None:
    zipped = podium.folder / "quadruple.zip"
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted((podium.folder / "set" / "double").rglob("*.*")):
            packed.write(path, path.relative_to(podium.folder / "set" / "double"))
    judged = podium("judge", zipped, podium.file("k.py", "# fake: time_us=1\n"), "--json")
    assert json.loads(judged.stdout)["task"] == "quadruple"


def test_a_new_task_is_made_where_it_is_asked_for(podium: Podium) -> None:
    assert podium("task", "new", "bare").returncode == 0
    assert podium("task", "new", "deep/er/path").returncode == 0
    assert podium("task", "new", "inner", "--into", "deep").returncode == 0
    for folder in ("tasks/bare", "deep/er/path", "deep/inner"):
        assert (podium.folder / folder / "task.yml").is_file()


def test_a_new_task_that_cannot_be_made_leaves_nothing(podium: Podium) -> None:
    podium.file("in-the-way", "a file")
    message = refusal(podium("task", "new", "double", "--into", "in-the-way"), 2)
    assert (
        message
        == "in-the-way/double: cannot be created (Not a directory); choose another with --into"
    )
    code, _ = json_refusal(podium("task", "new", "set/double", "--json"), 2)
    assert code == "task-exists"
    code, _ = json_refusal(podium("task", "new", f"{'x' * 64}/" * 80 + "a", "--json"), 2)
    assert code == "cannot-write"


def test_a_competition_that_cannot_be_read_is_refused_with_its_line(podium: Podium) -> None:
    podium.file("bad.yaml", SET.replace("name: first-board", "name: First Board"))
    assert "bad.yaml:4: problems.0.name" in refusal(podium("task", "check", "bad.yaml"), 2)
    podium.file("absent.yaml", SET.replace("set/double", "set/nothing"))
    assert "set/nothing: there is no such folder" in refusal(
        podium("task", "check", "absent.yaml"), 2
    )


def test_a_task_file_stands_for_its_folder(podium: Podium) -> None:
    checked = podium("task", "check", IDENTITY / "task.yml", "--json")
    assert [each["task"] for each in json.loads(checked.stdout)] == ["identity"]


@pytest.mark.slow
def test_publishing_runs_the_tasks_own_solutions_first(podium: Podium) -> None:
    real = Podium(podium.folder, runner="local")
    reference = podium.folder / "set" / "double" / "reference.py"
    sharp = reference.read_text(encoding="utf-8")
    reference.write_text(sharp.replace("1e-6 * data.abs()", "100"), encoding="utf-8")
    arguments: tuple[str | Path, ...] = (
        "task", "publish", "set/double", "--name", "proven", "--gpu", "CPU", "--gpu", "H100",
    )  # fmt: skip
    code, message = json_refusal(real(*arguments, "--json"), 2)
    assert (code, "almost_two.py: got passed" in message) == ("unsound-task", True)
    assert "proven" not in _boards(podium)
    reference.write_text(sharp, encoding="utf-8")
    opened = real(*arguments)
    assert opened.stdout.splitlines() == [
        f"proven: {OURS}",
        "proven on CPU, H100: created, task version 1, no deadline",
    ]
    assert "proven: not run on H100: missing GPU type H100" in opened.stderr


@pytest.mark.slow
def test_an_eval_py_is_never_ignored_in_silence(podium: Podium) -> None:
    real = Podium(podium.folder, runner="local")
    assert podium("task", "new", "own").returncode == 0
    folder = podium.folder / "tasks" / "own"
    (folder / "task.yml").write_text(WITH_EVAL.replace("# double", "# own"), encoding="utf-8")
    (folder / "eval.py").write_text("raise SystemExit('no luck')\n", encoding="utf-8")
    code, message = json_refusal(real("task", "publish", folder, "--json"), 2)
    assert code == "choose-grader"
    assert "correct/torch_add.py: the graders disagree; Podium's judge: passed;" in message
    assert "the task's own evaluation: crashed (" in message
    assert "no luck" in message
    assert "own" not in _boards(podium)
    chosen = real("task", "publish", folder, "--grader", "native")
    first = chosen.stdout.splitlines()[0]
    assert first.startswith("own: Podium's judge grades, and eval.py is not run: the task's")
    assert "warning: own: solutions/correct/torch_add.py: the graders disagree;" in chosen.stderr
    assert "the task's own evaluation: crashed (" in chosen.stderr
    assert "in-process" not in podium("show", "own").stdout
    (folder / "eval.py").write_text(EVAL, encoding="utf-8")
    own = real("task", "publish", folder).stdout.splitlines()
    assert own[0].startswith("own: The task's own eval.py grades: Podium does not know")
    assert "Both agree on all solutions (1 correct, 1 wrong)." in own[0]
    assert "the times come from the task's own evaluation" in podium("show", "own").stdout
