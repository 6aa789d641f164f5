"""The files of one evaluation: the judge's private folder, and the candidate's files."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runners.contract.task import TaskDefinition


@contextmanager
def workspace(task: TaskDefinition) -> Iterator[Path]:
    """Create a folder with the task's files, ready for import, and delete it at the end."""
    with tempfile.TemporaryDirectory(prefix="judge-") as name:
        folder = Path(name)
        for file_name, text in task.files.items():
            (folder / file_name).write_text(text)
        yield folder


def candidate_files(task: TaskDefinition, source: str) -> dict[str, str]:
    """Return the files that the candidate may see: the submission and the task's shared files."""
    shared = {name: task.files[name] for name in task.shared_files}
    return {**shared, task.submission_file: source}
