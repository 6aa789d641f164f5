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
    whole = {f"{name}/{file}": text for file, text in files.items()}
    return "task_zip", f"{name}.zip", zipped(whole)


def packed_competition(text: str, *names: str, **changed: str) -> bytes:
    """A zip with a competition's YAML and the scaffold's task under each of these names."""
    files = {"set.yaml": text}
    for name in names:
        files |= {f"{name}/{file}": content for file, content in scaffold(name).items()}
    files |= {file.replace("__", "."): content for file, content in changed.items()}
    return zipped(files)


def zipped(files: dict[str, str]) -> bytes:
    """A zip with these files."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        for file, content in files.items():
            made.writestr(file, content)
    return archive.getvalue()
