"""Tests of handing in a file: what is taken, what is refused, and with which words."""

import pytest

from bot.domain.acceptance import MAX_SOURCE_BYTES
from bot.domain.errors import StoreError
from bot.domain.ids import SubmissionId
from bot.domain.token import TokenScope
from runners.contract.task import Mode
from tests.doubles.place import Place
from tests.doubles.popcorn_cli import BOUNDARY, SOURCE, PopcornCli, form, upload_headers

PATH = "/submission/vectoradd/CPU/test"


@pytest.mark.parametrize(
    ("word", "mode"),
    [
        ("test", Mode.TEST),
        ("benchmark", Mode.BENCHMARK),
        ("leaderboard", Mode.RANKED),
        ("Profile", Mode.PROFILE),
    ],
)
async def test_a_file_is_taken_with_its_ids(
    place: Place, ada: PopcornCli, word: str, mode: Mode
) -> None:
    answer = await ada.posted(f"/submission/VectorAdd/cpu/{word}")
    assert answer.status_code == 202
    number = answer.json()["details"]["id"]
    assert answer.json() == {
        "details": {"id": number, "job_status_id": number},
        "runner_queue": {
            "runner": "Podium",
            "gpu": "CPU",
            "queued_jobs": 1,
            "running_jobs": 0,
            "available_runners": 0,
            "status": "unavailable",
            "error": None,
        },
        "status": "accepted",
    }
    stored = await place.store.submissions.get(SubmissionId(number))
    assert stored is not None
    assert (stored.person, stored.mode, stored.gpus) == (place.ada, mode, ("CPU",))
    assert stored.file_name == "kernel.py"
    assert await place.store.submissions.source(stored.id) == SOURCE.decode()


@pytest.mark.parametrize(
    ("disposition", "name"),
    [
        ('filename="kern\\"el.py"', 'kern"el.py'),
        ('filename="kërnel.py"', "kërnel.py"),
        ('filename="../../etc/passwd.py"', "passwd.py"),
    ],
)
async def test_a_file_s_name_is_read_as_reqwest_writes_it(
    ada: PopcornCli, disposition: str, name: str
) -> None:
    answer = await ada.posted(PATH, form(disposition=disposition))
    assert answer.status_code == 202, answer.text
    assert (await ada.poll(answer.json()["details"]["id"]))["file_name"] == name


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/submission/vectorad/CPU/test", 404, "did you mean vectoradd?"),
        ("/submission/vectoradd/H100/test", 404, "the board runs on CPU"),
        ("/submission/vectoradd/CPU/ranked", 400, "test, benchmark, profile, leaderboard"),
        ("/vectoradd/CPU/nothing", 400, "test, benchmark, profile, leaderboard"),
    ],
)
async def test_a_wrong_name_is_refused_with_the_right_ones(
    ada: PopcornCli, path: str, status: int, words: str
) -> None:
    answer = await ada.posted(path)
    assert answer.status_code == status
    assert set(answer.json()) == {"detail"}
    assert words in answer.json()["detail"]
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"\xff", "not UTF-8"),
        ("x = 1\n".encode("utf-16"), "the file is UTF-16"),
        (b"PK\x03\x04\0\0", "NUL bytes"),
        (b"#" * (MAX_SOURCE_BYTES + 1), "at most 1,000,000"),
        (b"#" * (3 * MAX_SOURCE_BYTES), "at most 1,000,000"),
        (b"#" * (5 * MAX_SOURCE_BYTES), "at most 1,000,000"),
        (b"#!POPCORN leaderboard another\nx = 1\n", "heading says 'another'"),
    ],
)
async def test_a_file_that_is_no_source_is_refused(
    ada: PopcornCli, content: bytes, words: str
) -> None:
    answer = await ada.posted(PATH, form(content))
    assert 400 <= answer.status_code < 500
    assert words in answer.json()["detail"]
    assert await ada.get("/user/submissions") == []


async def test_a_file_of_just_the_most_bytes_is_taken(ada: PopcornCli) -> None:
    content = b"x = 1\n" + b"#" * (MAX_SOURCE_BYTES - 6)
    assert (await ada.posted(PATH, form(content))).status_code == 202


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"hello",
        form()[:60],
        form()[:-40],
        form(disposition=""),
        form().replace(b'name="file"', b'name="other"'),
        form().replace(b'name="file"; ', b""),
        b"".join(form()[:-72] + b"\r\n" for _ in range(3)) + form(),
    ],
)
async def test_a_form_that_is_none_is_refused(ada: PopcornCli, body: bytes) -> None:
    answer = await ada.posted(PATH, body)
    assert answer.status_code == 400, answer.text
    assert set(answer.json()) == {"detail"}


@pytest.mark.parametrize("kind", ["", "text/plain", "multipart/form-data", "application/json"])
async def test_a_body_of_another_kind_is_refused(ada: PopcornCli, kind: str) -> None:
    assert ada.token is not None
    headers = [("x-popcorn-cli-id", ada.token), ("content-type", kind)]
    answer = await ada.asked("POST", PATH, form(), headers)
    assert answer.status_code == 400
    assert "multipart/form-data" in answer.json()["detail"]


async def test_without_a_token_nobody_submits(anybody: PopcornCli, place: Place) -> None:
    for path in (PATH, "/vectoradd/CPU/profile"):
        answer = await anybody.posted(path)
        assert answer.status_code == 400
        assert "~/.popcorn.yaml" in answer.json()["detail"]
    assert await place.store.submissions.to(place.board.id) == ()


@pytest.mark.parametrize("token", ["nonsense", "x" * 5000])
async def test_a_token_that_is_none_is_refused(place: Place, token: str) -> None:
    answer = await PopcornCli.with_token(place, token).posted(PATH)
    assert answer.status_code == 401
    assert "~/.popcorn.yaml" in answer.json()["detail"]
    assert token not in answer.text


async def test_a_token_that_only_reads_submits_nothing(place: Place) -> None:
    reader = await PopcornCli.of(place, scope=TokenScope.READ)
    answer = await reader.posted(PATH)
    assert 400 <= answer.status_code < 500
    assert "only reads" in answer.json()["detail"]
    assert await reader.get("/user/submissions") == []


async def test_a_queue_that_cannot_be_read_costs_nobody_the_id(
    ada: PopcornCli, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away() -> None:
        raise StoreError("away")

    monkeypatch.setattr(place.store.workers, "alive", away)
    answer = await ada.posted(PATH)
    assert answer.status_code == 202
    assert answer.json()["runner_queue"] is None


async def test_a_database_that_is_away_is_said_with_when_to_come_again(
    ada: PopcornCli, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise StoreError("password=hunter2")

    monkeypatch.setattr(place.store.submissions, "add", away)
    answer = await ada.posted(PATH)
    assert (answer.status_code, set(answer.json())) == (503, {"detail"})
    assert answer.headers["retry-after"]
    assert "hunter2" not in answer.text


async def test_the_boundary_may_come_in_quotes(ada: PopcornCli) -> None:
    (_, *rest) = upload_headers(ada.token, len(form()))
    quoted = ("content-type", f'multipart/form-data; boundary="{BOUNDARY}"')
    assert (await ada.asked("POST", PATH, form(), [quoted, *rest])).status_code == 202
