"""Somebody whose first file is not what the board takes, at each door that takes files.

They have a shipped solution, saved once by Windows PowerShell, which writes UTF-16; the same one
under other names; and a shipped one with a syntax error. Each door refuses it with what to do, and
nothing of it is judged. Discord's door is shown in `tests/e2e/discord/test_submitting.py`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from tests.e2e.command import IDENTITY, Podium, fresh, terminate

SHIPPED = (IDENTITY / "solutions" / "correct" / "torch_copy.py").read_bytes()
BROKEN = (IDENTITY / "solutions" / "wrong" / "syntax_error.py").read_bytes()
WRONG = {
    "kernel.py": (SHIPPED.decode().encode("utf-16"), "UTF-16"),
    "kernel.cu": (SHIPPED, "is a CUDA C++ file, but leaderboard"),
    "message.txt": (SHIPPED, "accepts Python; use a name such as kernel.py"),
    "broken.py": (BROKEN, "is not valid Python"),
}


@dataclass(frozen=True)
class Doors:
    """A running Podium with the real judge and the board `identity`, and a person's token."""

    podium: Podium
    web: httpx.Client
    token: str


@pytest.fixture(scope="module")
def doors() -> Iterator[Doors]:
    with fresh("local") as podium:
        published = podium("task", "publish", IDENTITY, "--gpu", "CPU", "--unchecked")
        assert published.returncode == 0, published.stderr
        token = podium("token", "create", "--person", "ada").stdout.strip()
        podium.environment["PODIUM_HTTP_PORT"] = "0"
        process = podium.start("up")
        try:
            assert process.stdout is not None
            said = ""
            while "Ctrl-C" not in said:
                line = process.stdout.readline()
                assert line, said
                said += line
            found = re.search(r"web at (http://\S+)", said)
            assert found is not None, said
            with httpx.Client(base_url=found[1]) as web:
                yield Doors(podium, web, token)
        finally:
            terminate(process)


def by_command_line(doors: Doors, name: str, content: bytes) -> str:
    file = doors.podium.folder / name
    file.write_bytes(content)
    answer = doors.podium("submit", file, "--leaderboard", "identity")
    assert answer.returncode == 2, answer.stdout
    return answer.stderr


def by_login(doors: Doors, name: str, content: bytes) -> str:
    """The command line of somebody elsewhere, who has signed in to this server."""
    file = doors.podium.folder / name
    file.write_bytes(content)
    where = {"PODIUM_CLI_TOKEN": doors.token}
    url = str(doors.web.base_url)
    answer = doors.podium("submit", file, "--leaderboard", "identity", "--server", url, **where)
    assert answer.returncode == 2, answer.stdout
    return answer.stderr


def by_api(doors: Doors, name: str, content: bytes) -> str:
    answer = doors.web.post(
        "/api/v1/submissions",
        files={"file": (name, content)},
        data={"mode": "ranked", "board": "identity"},
        headers={"Authorization": f"Bearer {doors.token}"},
    )
    assert answer.status_code == 400
    return str(answer.json()["detail"])


def by_popcorn(doors: Doors, name: str, content: bytes) -> str:
    answer = doors.web.post(
        "/popcorn/submission/identity/CPU/leaderboard",
        files={"file": (name, content)},
        headers={"X-Popcorn-Cli-Id": doors.token},
    )
    assert answer.status_code == 400
    return str(answer.json()["detail"])


def by_page(doors: Doors, name: str, content: bytes) -> str:
    ours = {"Sec-Fetch-Site": "same-origin"}
    with httpx.Client(base_url=doors.web.base_url, headers=ours) as browser:
        assert browser.post("/sign-in", data={"token": doors.token}).status_code == 303
        stamp = re.search(r'name="stamp" value="([0-9a-f]+)"', browser.get("/submit").text)
        assert stamp is not None
        form = {"stamp": stamp[1], "board": "identity", "mode": "ranked"}
        answer = browser.post("/submit", data=form, files={"file": (name, content)})
        assert answer.status_code == 400
        return answer.text


@pytest.mark.slow
@pytest.mark.parametrize("door", [by_command_line, by_login, by_api, by_popcorn, by_page])
def test_each_door_refuses_it_with_what_to_do(doors: Doors, door: object) -> None:
    for name, (content, words) in WRONG.items():
        assert words in door(doors, name, content), name  # type: ignore[operator]
    mine = doors.web.get(
        "/api/v1/submissions", headers={"Authorization": f"Bearer {doors.token}"}
    ).json()
    assert mine["submissions"] == []
