"""Task zips as a form sends them, and the one right solution in them."""

import io
import zipfile

from bot.domain.tasks.scaffold import scaffold

RIGHT = next(text for name, text in scaffold("double").items() if "correct" in name)


WITH_EVAL = scaffold("double")["task.yml"].replace(
    "lang: py\n", "  - {name: eval.py, source: eval.py}\nlang: py\n"
)
"""The scaffold's task.yml with an evaluation program of the task's own among its files."""


def packed(name: str = "double", **changed: str) -> tuple[str, str, bytes]:
    """The field of a form with a task zip; `changed` files by names with `__` for a dot."""
    files = scaffold(name) | {file.replace("__", "."): text for file, text in changed.items()}
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        for file, text in files.items():
            made.writestr(f"{name}/{file}", text)
    return "task_zip", f"{name}.zip", archive.getvalue()
