"""Paths inside a bundle."""

import pytest

from bot.domain.errors import UserError
from bot.domain.tasks.bundle import TaskBundle

BUNDLE = TaskBundle(
    {"utils.py": b"u", "add/a.py": b"a", "add/s/x.py": b"x", "add/s/t/y.py": b"y"}, "add"
)


@pytest.mark.parametrize(
    ("source", "path"),
    [("a.py", "add/a.py"), ("../utils.py", "utils.py"), ("./s/../a.py", "add/a.py")],
)
def test_a_source_is_found_from_the_tasks_folder(source: str, path: str) -> None:
    assert BUNDLE.locate(source) == path


@pytest.mark.parametrize("source", ["../../x", "/x", "a\\b", "a\0b", "../.."])
def test_a_source_outside_is_refused(source: str) -> None:
    with pytest.raises(
        UserError, match="outside the task's folder; `podium task pack DIR` creates a zip"
    ):
        BUNDLE.locate(source)


def test_what_a_zip_lacks_from_beside_the_task_is_told_with_the_command_that_adds_it() -> None:
    with pytest.raises(
        UserError, match=r"^\.\./eval\.py: there is no such file; `podium task pack DIR`"
    ):
        BUNDLE.text("../eval.py")
    with pytest.raises(UserError, match=r"^add/b\.py: there is no such file$"):
        BUNDLE.text("b.py")


def test_only_the_files_directly_in_a_folder_are_listed() -> None:
    assert BUNDLE.under("s") == ("x.py",)
    assert BUNDLE.under("none") == ()
