"""A programmer who writes a client from what `/api/v1/openapi.json` says, and takes it at its word.

Schemathesis is that programmer: it asks for everything that the description allows, and for what it
rules out, by the tokens of a person, of a reader and of an admin who owns the board.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT
from tests.e2e.command import IDENTITY, Podium, fresh, terminate

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.timeout(400)]

_LIMIT_S = 300


@pytest.fixture(scope="module")
def podium() -> Iterator[Podium]:
    with fresh() as podium:
        podium.environment |= {"PODIUM_HTTP_PORT": "0", "PODIUM_HTTP_REQUESTS_PER_MINUTE": "0"}
        yield podium


@pytest.fixture(scope="module")
def url(podium: Podium) -> Iterator[str]:
    process = podium.start("up")
    try:
        told = ""
        while "Ctrl-C" not in told:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, told
            told += line
        published = podium("task", "publish", IDENTITY, "--unchecked", "--as", "owner")
        assert published.returncode == 0, published.stderr
        yield re.findall(r"https?://\S+", told)[0]
    finally:
        terminate(process)


@pytest.mark.parametrize("words", [("--admin",), (), ("--read-only",)])
def test_every_answer_is_one_that_the_description_tells_of(
    podium: Podium, url: str, tmp_path: Path, words: tuple[str, ...]
) -> None:
    person = {(): "ada", ("--admin",): "owner", ("--read-only",): "grace"}[words]
    made = podium("token", "create", "--person", person, *words, "--json")
    assert made.returncode == 0, made.stderr
    token = json.loads(made.stdout)["token"]
    tried = subprocess.run(
        [
            Path(sys.executable).with_name("schemathesis"), "--no-color",
            "--config-file", ROOT / "schemathesis.toml",
            "run", f"{url}/api/v1/openapi.json", "-H", f"Authorization: Bearer {token}",
            "--phases", "examples,coverage,fuzzing", "-n", "2", "--seed", "1",
            "--continue-on-failure", "--exclude-path-regex", "events$",
        ],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=_LIMIT_S,
    )  # fmt: skip
    assert tried.returncode == 0, tried.stdout[-12_000:]
    assert int(re.findall(r"(\d+) generated", tried.stdout)[0]) > 500
