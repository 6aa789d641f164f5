"""A stranger has nothing but the wheel: in an empty folder, in an environment of its own.

First as `pip install kernel-podium` leaves them, without torch or a database, and then with the
extra `local`. Each follows what the commands say.
"""

import importlib.metadata
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.architecture.tree import ROOT
from tests.doubles import folders

pytestmark = [pytest.mark.slow, pytest.mark.postgres, pytest.mark.timeout(300)]

CALL_LIMIT_S = 120
NAME = "kernel-podium"
GET = "pip install 'kernel-podium[local]'"


@dataclass(frozen=True)
class Stranger:
    """Somebody in an empty folder, with an environment of which nothing but its wheel is ours."""

    environment: Path
    folder: Path

    @property
    def variables(self) -> dict[str, str]:
        """Nothing of Podium's."""
        return {"PATH": os.environ["PATH"], "HOME": str(self.folder)}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """The command under way."""
        return subprocess.Popen(
            [self.environment / "bin" / "podium", *arguments],
            cwd=self.folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def __call__(self, *arguments: str) -> tuple[int, str]:
        """Exit code and all that a command says."""
        with self.start(*arguments) as process:
            try:
                said, _ = process.communicate(timeout=CALL_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return process.returncode, said

    def piped(self, given: bytes, *arguments: str) -> tuple[int, bytes]:
        """Exit code and standard output of a command that is given something to read."""
        done = subprocess.run(
            [self.environment / "bin" / "podium", *arguments],
            cwd=self.folder,
            env=self.variables,
            input=given,
            stdout=subprocess.PIPE,
            timeout=CALL_LIMIT_S,
            check=False,
        )
        return done.returncode, done.stdout


def until(process: subprocess.Popen[str], words: str) -> str:
    """What a command says up to a line with these words."""
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if words in line:
            return said
    raise AssertionError(f"it never said {words!r}: {said}")


def interrupted(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit code and last words after Ctrl-C."""
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=CALL_LIMIT_S)
    return process.returncode, said


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, ROOT)
    (made,) = folder.glob("*.whl")
    return made


def pip(*arguments: str | Path) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def home() -> Iterator[Path]:
    """Not below pytest's folder: the database's account could not enter that one."""
    folder = Path(tempfile.mkdtemp(prefix="podium-stranger-", dir=folders.of_databases()))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def environment(wheel: Path, home: Path) -> tuple[Path, Path]:
    """A fresh environment with the wheel in it and nothing else; and its folder of packages."""
    made = home / "environment"
    venv.create(made, with_pip=False, symlinks=True)
    pip("--python", made, "install", "--no-deps", "--no-index", wheel)
    (packages,) = made.glob("lib/python*/site-packages")
    return made, packages


@pytest.fixture
def bare(wheel: Path, home: Path) -> Stranger:
    """With the packages that the wheel asks for, and none of its extras."""
    made, packages = environment(wheel, home)
    (metadata,) = packages.glob("*.dist-info/METADATA")
    asked = importlib.metadata.Distribution.at(metadata.parent).requires or []
    for name in needed(asked):
        link(importlib.metadata.distribution(name), packages)
    return Stranger(made, empty(home))


def needed(requirements: list[str], extra: str = "") -> set[str]:
    """The distributions that these ask for, and those that each of them does."""
    found: set[str] = set()
    waiting = [(each, extra) for each in requirements]
    seen = set(waiting)
    while waiting:
        text, extra = waiting.pop()
        wanted = Requirement(text)
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": extra}):
            continue
        found.add(wanted.name)
        further = importlib.metadata.distribution(wanted.name).requires or []
        new = {(each, part) for each in further for part in ("", *wanted.extras)} - seen
        seen |= new
        waiting += new
    return found


def link(distribution: importlib.metadata.Distribution, packages: Path) -> None:
    """Have a distribution of this environment in another one."""
    tops = {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}
    for top in tops:
        place = packages / top
        if not place.exists():
            place.symlink_to(Path(str(distribution.locate_file(top))).resolve())


@pytest.fixture
def whole(wheel: Path, home: Path) -> Stranger:
    """With the extra `local`, whose packages are here already."""
    made, packages = environment(wheel, home)
    here = [each for each in sys.path if each.endswith(("site-packages", "dist-packages"))]
    (packages / "here.pth").write_text("\n".join(here) + "\n", encoding="utf-8")
    return Stranger(made, empty(home))


def empty(home: Path) -> Path:
    folder = home / "empty"
    folder.mkdir()
    return folder


def test_without_the_extras_each_command_says_what_to_install(bare: Stranger) -> None:
    status, said = bare("--version")
    assert (status, said) == (0, f"podium {importlib.metadata.version(NAME)}\n")
    status, said = bare("doctor")
    assert status == 3
    for missing in ("torch", "Postgres"):
        assert re.search(rf"MISSING\s+{missing}: .*{re.escape(GET)}", said), said
    for command in (("up",), ("demo",), ("show",)):
        status, said = bare(*command)
        assert status == 3, said
        assert GET in said
        assert "Traceback" not in said
    (examples,) = bare.environment.glob("lib/python*/site-packages/bot/store/examples")
    kernel = str(examples / "identity/solutions/correct/torch_copy.py")
    status, said = bare("judge", str(examples / "identity"), kernel)
    assert status == 3
    assert said.endswith(f"the runner local needs torch; run `{GET}`\n")
    status, said = bare("export", "softmax", "--out", "data")
    assert status == 2
    assert "pip install 'kernel-podium[export]'" in said


def test_with_the_extra_local_it_is_up_and_judges_what_came_with_it(whole: Stranger) -> None:
    status, said = whole("doctor")
    assert status == 0, said
    up = whole.start("up")
    try:
        greeting = until(up, "Ctrl-C")
        advice = re.search(r"none yet: \S*podium task publish (\S+)", greeting)
        assert advice, greeting
        examples = Path(advice[1])
        assert ROOT not in examples.parents
        backup = judged_and_kept(whole, examples)
    finally:
        status, said = interrupted(up)
    assert status == 0, said
    restored_elsewhere(whole, backup)
    begins_the_demo(whole, len(list(examples.glob("*/task.yml"))))


def judged_and_kept(whole: Stranger, examples: Path) -> bytes:
    """Publish, submit a file and a pipe, and take a backup while Podium runs."""
    status, said = whole("task", "publish", str(examples / "identity"))
    assert status == 0, said
    kernel = examples / "identity/solutions/correct/torch_copy.py"
    order = ("--leaderboard", "identity", "--mode", "test")
    status, said = whole("submit", str(kernel), *order)
    assert status == 0, said
    status, out = whole.piped(kernel.read_bytes(), "submit", "-", *order, "--json")
    assert status == 0, out
    status, backup = whole.piped(b"", "backup", "-")
    assert status == 0
    return backup


def restored_elsewhere(whole: Stranger, backup: bytes) -> None:
    elsewhere = ("--data", "elsewhere")
    status, _ = whole.piped(backup, "restore", "-", *elsewhere)
    assert status == 0
    status, said = whole("show", "2", *elsewhere)
    assert "passed" in said
    status, _ = whole.piped(backup[:-50], "restore", "-", "--force", *elsewhere)
    assert status == 2


def begins_the_demo(whole: Stranger, tasks: int) -> None:
    demo = whole.start("demo", "--all")
    assert f"published {tasks} tasks" in until(demo, "published")
    status, _ = interrupted(demo)
    assert status == 130
