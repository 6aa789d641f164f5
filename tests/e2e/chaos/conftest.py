"""Fixtures of the runs with real processes."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doubles import folders


@pytest.fixture
def folder() -> Iterator[Path]:
    """Not below pytest's own folder: the database's account could not enter that one."""
    path = Path(tempfile.mkdtemp(prefix="podium-chaos-", dir=folders.of_databases()))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path)
