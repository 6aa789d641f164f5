"""A task's files, and the solutions among them."""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from bot.domain.errors import UserError
from bot.domain.acceptance import MAX_SOURCE_BYTES, suffixes
from bot.domain.heading import parse_heading
from runners.contract.verdict import Verdict


TASK_FILE = "task.yml"
"""The file that makes a folder a task."""
_PACK = "`podium task pack DIR` creates a zip that includes the files from outside the task's folder"


@dataclass(frozen=True, slots=True)
class TaskBundle:
    """Files by POSIX path; `root` is the task's folder, empty for the top level.

    `name` is the task's default name; if empty, the folder's.
    """

    files: Mapping[str, bytes]
    root: str = ""
    name: str = ""

    def locate(self, source: str) -> str:
        """Return the path of `source`, relative to the task's folder; UserError if it escapes."""
        path = posixpath.normpath(posixpath.join(self.root, source))
        outside = path.startswith(("../", "/")) or path == ".."
        if outside or "\\" in source or "\0" in source:
            raise UserError("bad-task", f"{source!r} is outside the task's folder; {_PACK}")
        return path

    def text(self, source: str) -> str:
        """Return the UTF-8 text of a file, given relative to the task's folder."""
        path = self.locate(source)
        data = self.files.get(path)
        if data is None:
            remedy = f"; {_PACK}" if not _is_below(path, self.root) else ""
            raise UserError("bad-task", f"{path}: there is no such file{remedy}")
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data[: error.start].count(b"\n") + 1
            raise UserError("bad-task", f"{path}:{line}: this is not UTF-8 text") from error

    def under(self, folder: str) -> tuple[str, ...]:
        """Return the names of the files directly in `folder` of the task, sorted."""
        prefix = posixpath.join(self.root, folder) + "/"
        names = (path.removeprefix(prefix) for path in self.files if path.startswith(prefix))
        return tuple(sorted(name for name in names if "/" not in name))


def _is_below(path: str, root: str) -> bool:
    return not root or path.startswith(f"{root}/")


_EXPECTED = {"correct": Verdict.PASSED, "wrong": Verdict.WRONG_ANSWER}


@dataclass(frozen=True, slots=True)
class Solution:
    """A shipped submission; `name` is its path in the task, `needs` what it requires."""

    name: str
    source: str
    expect: Verdict
    needs: tuple[str, ...] = ()


def solutions(bundle: TaskBundle) -> tuple[Solution, ...]:
    """Return the files of solutions/correct and solutions/wrong, by name, correct ones first."""
    return tuple(
        _solution(bundle, f"solutions/{kind}/{name}", expected)
        for kind, expected in _EXPECTED.items()
        for name in bundle.under(f"solutions/{kind}")
        if name.endswith(suffixes())
    )


def _solution(bundle: TaskBundle, name: str, expected: Verdict) -> Solution:
    source = bundle.text(name)
    if len(source) > MAX_SOURCE_BYTES:
        where = bundle.locate(name)
        raise UserError("bad-task", f"{where}: a submission may have at most {MAX_SOURCE_BYTES:,} bytes")
    try:
        heading = parse_heading(source)
        verdict = expected if heading.expect is None else Verdict(heading.expect)
    except UserError as error:
        raise UserError(error.code, f"{bundle.locate(name)}: {error.message}") from error
    if (verdict is Verdict.PASSED) != (expected is Verdict.PASSED):
        raise UserError(
            "bad-heading",
            f"{bundle.locate(name)}: expects {verdict.value!r}; put a solution that passes under "
            "solutions/correct, any other under solutions/wrong",
        )
    return Solution(name, source, verdict, heading.needs)
