"""Records the temporary files that are created when a form is read."""

import tempfile

import pytest
from starlette import formparsers

Spooled = list[tempfile.SpooledTemporaryFile[bytes]]


def spooling(monkeypatch: pytest.MonkeyPatch) -> Spooled:
    """The list of temporary files that are created from now on."""
    made: Spooled = []

    def make(max_size: int) -> tempfile.SpooledTemporaryFile[bytes]:
        made.append(tempfile.SpooledTemporaryFile(max_size))  # noqa: SIM115 - closed by the form
        return made[-1]

    monkeypatch.setattr(formparsers, "SpooledTemporaryFile", make)
    return made
