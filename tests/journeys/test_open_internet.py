"""Somebody who looks on, while strangers with and without an account try to stop the server.

Each stranger sends what once held the whole process for seconds or minutes, or kept others out; the
onlooker asks whether it lives, and reads a page.
"""

import re
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.e2e.command import Podium, fresh, terminate

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

LIMIT = 60
FIELDS = 300_000
"""Of one f-string: Python's parser needs a minute for them."""


@pytest.fixture(scope="module")
def podium() -> Iterator[Podium]:
    with fresh() as podium:
        podium.environment |= {
            "PODIUM_HTTP_PORT": "0",
            "PODIUM_HTTP_REQUESTS_PER_MINUTE": str(LIMIT),
            "PODIUM_HTTP_PROXIES": "127.0.0.0/8",  # so that each who asks has an address
            "PODIUM_PUBLIC_URL": "https://podium.example.org",
        }
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
        yield re.findall(r"https?://127\S+", told)[0]
    finally:
        terminate(process)


def who(address: str, **headers: str) -> dict[str, str]:
    return {"X-Forwarded-For": address, **headers}


def token(podium: Podium, name: str, *words: str) -> str:
    made = podium("token", "create", "--person", name, *words)
    assert made.returncode == 0, made.stderr
    (secret,) = re.findall(r"podium_\S+", made.stdout)
    return f"Bearer {secret}"


@pytest.mark.parametrize("charset", ["punycode", "idna", "undefined", "unicode_escape"])
def test_a_stranger_names_a_charset_that_takes_minutes(url: str, charset: str) -> None:
    text = "-" + "9" * 60_000
    form = f'--x\r\nContent-Disposition: form-data; name="token"\r\n\r\n{text}\r\n--x--\r\n'
    kind = f"multipart/form-data; boundary=x; charset={charset}"
    sent = who("192.0.2.1", **{"Content-Type": kind, "Sec-Fetch-Site": "same-origin"})
    answer = httpx.post(f"{url}/sign-in", content=form, headers=sent)
    assert answer.status_code == 400
    assert "send it as UTF-8" in answer.json()["detail"]


def test_a_stranger_sends_a_cookie_of_backslashes(url: str) -> None:
    sent = who("192.0.2.2", Cookie='a="' + "\\a" * 30_000 + '"')
    assert httpx.get(f"{url}/", headers=sent).status_code == 200


def test_a_creator_publishes_a_reference_that_takes_a_minute_to_parse(
    podium: Podium, url: str
) -> None:
    assert podium("task", "new", "bomb").returncode == 0
    (reference,) = podium.folder.rglob("bomb/reference.py")
    fields = "".join(f"{{a{number}}}" for number in range(FIELDS))
    reference.write_text(f'{reference.read_text()}\nx = f"{fields}"\n')
    packed = Path(shutil.make_archive(str(reference.parent), "zip", reference.parents[1], "bomb"))
    sent = who("192.0.2.3", Authorization=token(podium, "creator", "--admin"))
    answers: list[httpx.Response] = []

    def publish() -> None:
        files = {"task_zip": ("bomb.zip", packed.read_bytes())}
        made = httpx.post(f"{url}/api/v1/leaderboards", headers=sent, files=files, timeout=60)
        answers.append(made)

    publishing = threading.Thread(target=publish)
    publishing.start()
    seen = 0
    with httpx.Client(timeout=5) as onlooker:
        while publishing.is_alive():
            assert onlooker.get(f"{url}/healthz").status_code == 200
            seen += 1
    publishing.join()
    assert seen > 10
    assert (answers[0].status_code, answers[0].json()["code"]) == (400, "too-hard")


def test_a_stranger_tries_tokens_and_keeps_no_neighbour_out(podium: Podium, url: str) -> None:
    here = "192.0.2.4"
    with httpx.Client(base_url=url) as client:
        guesses = (
            client.get("/api/v1/me", headers=who(here, Authorization=f"Bearer {' ' * n}x{n}"))
            for n in range(10 * LIMIT)  # one more is allowed in each second that they take
        )
        assert 429 in (each.status_code for each in guesses)
        good = token(podium, "neighbour")
        assert client.get("/api/v1/me", headers=who(here, Authorization=good)).status_code == 200
        assert client.get("/", headers=who(here)).status_code == 200
        spaced = good.replace("Bearer ", "bearer   ")
        found = (
            client.get("/api/v1/me", headers=who(here, Authorization=each)).status_code
            for each in (good, spaced) * (5 * LIMIT)
        )
        assert 429 in found, "it is one token, however it is written"


@pytest.mark.parametrize("path", ["/", "/queue", "/api/v1/agents/0123abcd/hello"])
def test_a_stranger_asks_for_pages_without_end(url: str, path: str) -> None:
    address = {"/": "192.0.2.5", "/queue": "192.0.2.6"}.get(path, "192.0.2.7")
    with httpx.Client(base_url=url, headers=who(address)) as client:
        method = "POST" if "agents" in path else "GET"
        found = [client.request(method, path).status_code for _ in range(LIMIT // 2)]
        assert 429 not in found
        assert 429 in (client.request(method, path).status_code for _ in range(10 * LIMIT))


def test_an_answer_says_what_it_is_and_nothing_of_a_strangers_host(url: str) -> None:
    sent = who("192.0.2.8", Host="evil.test")
    pages = ("/", "/docs", "/queue/", "/none")
    apis = ("/api/v1/leaderboards/", "/popcorn", "/popcorn/leaderboards", "/eval/health/")
    for path in pages + apis:
        answer = httpx.get(f"{url}{path}", headers=sent)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["strict-transport-security"]
        assert "evil.test" not in f"{answer.headers}{answer.text}"


def test_what_is_no_request_is_answered_like_everything_else(url: str) -> None:
    there = urlsplit(url)
    with socket.create_connection((there.hostname, there.port), timeout=10) as line:
        line.sendall(b"nonsense\r\n\r\n")
        answer = b"".join(iter(lambda: line.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"X-Content-Type-Options: nosniff\r\n" in answer
