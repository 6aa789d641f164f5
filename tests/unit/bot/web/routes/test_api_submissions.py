"""Handing in, reading and stopping over HTTP."""

import io
from datetime import timedelta

import pytest

from bot.domain.acceptance import MAX_SOURCE_BYTES
from bot.domain.accounts import TokenScope
from bot.domain.board import Access, SourceVisibility
from bot.domain.submission import RateLimit, SubmissionState
from runners.contract.files import EvaluationFile
from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from tests.doubles.api import Api

ORDER = {"file_name": "k.py", "source": "x = 1\n", "mode": "ranked", "board": "vectoradd"}


async def test_a_file_is_handed_in_read_rerun_and_withdrawn(api: Api) -> None:
    async with api.asking("bob") as bob:
        made = await bob.post("/submissions", json=ORDER)
        assert made.status_code == 201
        first = made.json()
        assert made.headers["location"] == first["url"] == f"/api/v1/submissions/{first['id']}"
        assert (first["state"], first["person"], first["unserved"]) == ("queued", "bob", ["CPU"])
        assert first["jobs"][0]["place"]["position"] == 1
        (stored,) = await api.place.store.submissions.to(api.place.board.id)
        await api.place.judged(stored)
        shown = (await bob.get(f"/submissions/{stored.id}")).json()
        assert shown["state"] == SubmissionState.FINISHED
        assert shown["jobs"][0]["evaluation"]["verdict"] == Verdict.PASSED
        source = (await bob.get(f"/submissions/{stored.id}/source")).json()
        assert source["text"] == ORDER["source"]
        again = await bob.post(f"/submissions/{stored.id}/rerun", json={"mode": "test"})
        assert (again.status_code, again.json()["mode"]) == (201, "test")
        number = again.json()["id"]
        assert (await bob.post(f"/submissions/{number}/cancel")).json() == {"stopped": 1}
        assert (await bob.post(f"/submissions/{number}/cancel")).json() == {"stopped": 0}
        withdrawn = await bob.post(f"/submissions/{stored.id}/withdraw", json={"reason": "oops"})
        assert withdrawn.json()["exclusion"] == {"kind": "withdrawn", "reason": "oops"}
        twice = await bob.post(f"/submissions/{stored.id}/withdraw")
        assert (twice.status_code, twice.json()["code"]) == (409, "off-board")


async def test_a_request_with_a_key_can_be_repeated(api: Api) -> None:
    key = {"Idempotency-Key": '"8e03978e-40d5-43dd-bc93-6894a57f9324"'}
    async with api.asking("bob") as bob, api.asking("eve") as eve:
        first = await bob.post("/submissions", json=ORDER, headers=key)
        bare = {"Idempotency-Key": key["Idempotency-Key"].strip('"')}
        files = {"file": ("k.py", ORDER["source"])}
        data = {"mode": "ranked", "board": "vectoradd"}
        for again in (
            await bob.post("/submissions", json=ORDER, headers=bare),
            await bob.post("/submissions", files=files, data=data, headers=key),
        ):
            assert (again.status_code, again.json()["id"]) == (201, first.json()["id"])
            assert again.headers["location"] == first.headers["location"]
        other = await bob.post("/submissions", json=ORDER | {"mode": "test"}, headers=key)
        assert (other.status_code, other.json()["code"]) == (422, "key-reused")
        assert other.headers["content-type"] == "application/problem+json"
        assert "use a new key" in other.json()["detail"]
        stated = api.place.board.access.source.statement(api.place.board.deadline)
        assert first.json()["source_statement"] == stated
        theirs = await eve.post("/submissions", json=ORDER, headers=key)
        assert theirs.json()["id"] != first.json()["id"]
        bad = await bob.post("/submissions", json=ORDER, headers={"Idempotency-Key": "a b"})
        assert (bad.status_code, bad.json()["code"]) == (400, "bad-key")
        path, key = f"/submissions/{first.json()['id']}/rerun", {"Idempotency-Key": "again"}
        reruns = [(await bob.post(path, headers=key)).json()["id"] for _ in range(2)]
        assert reruns[0] == reruns[1] != first.json()["id"]


async def test_a_repeat_is_answered_where_a_new_one_would_be_refused(api: Api) -> None:
    key, place = {"Idempotency-Key": "k"}, api.place
    async with api.asking("bob") as bob:
        first = (await bob.post("/submissions", json=ORDER, headers=key)).json()["id"]
        await place.store.moderation.set_limit(RateLimit(1, timedelta(hours=1), None, None))
        assert (await bob.post("/submissions", json=ORDER)).status_code == 429
        again = await bob.post("/submissions", json=ORDER, headers=key)
        assert (again.status_code, again.json()["id"]) == (201, first)


async def test_a_form_is_taken_too_even_where_its_parts_say_no_type(api: Api) -> None:
    body = (
        b'--b\r\nContent-Disposition: form-data; name="mode"\r\n\r\ntest\r\n'
        b'--b\r\nContent-Disposition: form-data; name="gpus"\r\n\r\ncpu\r\n'
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.py"\r\n\r\n'
        b"#!PODIUM leaderboard vectoradd\nx = 1\n\r\n--b--\r\n"
    )
    async with api.asking("bob") as bob:
        headers = {"Content-Type": "multipart/form-data; boundary=b"}
        made = await bob.post("/submissions", content=body, headers=headers)
        assert made.status_code == 201, made.text
        assert (made.json()["file_name"], made.json()["gpus"]) == ("a.py", ["CPU"])
        files = {"file": ("b.py", io.BytesIO(b"y = 1"))}
        usual = await bob.post(
            "/submissions", files=files, data={"mode": "ranked", "board": "vectoradd"}
        )
        assert usual.status_code == 201


@pytest.mark.parametrize(
    ("data", "words"),
    [({"mode": "test"}, "`file`"), ({"file": "x", "mode": "test"}, "`file`")],
)
async def test_a_form_without_a_file_is_refused(api: Api, data: dict[str, str], words: str) -> None:
    async with api.asking("bob") as bob:
        fields = {name: (None, value) for name, value in data.items()}
        answer = await bob.post("/submissions", files=fields)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad-body")
    assert words in answer.json()["detail"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"mode": "fastest"}, "mode"),
        ({}, "mode"),
        ({"mode": "test", "board": "x" * 300}, "board"),
        ({"mode": "test", "gpus": "H 100"}, "gpus.0"),
        ({"mode": "test", "gpus": ",".join(["L4"] * 65)}, "gpus"),
    ],
)
async def test_a_form_whose_fields_do_not_fit_is_refused_by_their_names(
    api: Api, data: dict[str, str], words: str
) -> None:
    async with api.asking("bob") as bob:
        answer = await bob.post("/submissions", files={"file": ("k.py", b"x")}, data=data)
        as_file = {"file": ("k.py", b"x"), "mode": ("m", b"test")}
        wrong = await bob.post("/submissions", files=as_file)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad-body")
    assert words in answer.json()["detail"]
    fields = (
        "in addition to `file`, the form must have `mode`, `board` (optional), `gpus` (optional)"
    )
    assert answer.json()["detail"].startswith(fields)
    assert "`mode` is a file" in wrong.json()["detail"]


async def test_what_is_too_large_is_refused_in_either_form(api: Api) -> None:
    source = "x" * (MAX_SOURCE_BYTES + 1)
    async with api.asking("bob") as bob:
        as_json = await bob.post("/submissions", json=ORDER | {"source": source})
        files = {"file": ("b.py", source.encode())}
        form = await bob.post("/submissions", files=files, data={"mode": "test", "board": "x"})
        huge = await bob.post("/submissions", content=b" " * (8 * MAX_SOURCE_BYTES + 1))
    assert as_json.status_code == 400
    assert (form.status_code, form.json()["code"]) == (413, "too-large")
    assert (huge.status_code, huge.json()["code"]) == (413, "large-body")
    assert await api.place.store.submissions.to(api.place.board.id) == ()


async def test_a_token_for_reading_hands_nothing_in(api: Api) -> None:
    own = await api.place.submit(await api.place.person("bob"))
    async with api.asking("bob", TokenScope.READ) as bob:
        assert (await bob.get(f"/submissions/{own.id}/source")).status_code == 200
        for path in ("", f"/{own.id}/cancel", f"/{own.id}/rerun", f"/{own.id}/withdraw"):
            answer = await bob.post(f"/submissions{path}", json=ORDER if not path else {})
            assert (answer.status_code, answer.json()["code"]) == (403, "narrow-token")
    async with api.asking() as anybody:
        answer = await anybody.post("/submissions", json=ORDER)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")


async def test_nobody_stops_or_reads_what_is_another_s(api: Api) -> None:
    theirs = await api.place.submit()
    await api.place.judged(theirs, log="the whole source", mode=Mode.RANKED)
    tested = await api.place.submit(mode=Mode.TEST)
    await api.place.judged(tested, log="line 3: secret = 7")
    async with api.asking("bob") as bob:
        for path in ("cancel", "rerun", "withdraw"):
            answer = await bob.post(f"/submissions/{theirs.id}/{path}")
            assert (answer.status_code, answer.json()["code"]) == (403, "not-yours")
        hidden = await bob.get(f"/submissions/{theirs.id}/source")
        assert (hidden.status_code, hidden.json()["code"]) == (403, "hidden-source")
        shown = await bob.get(f"/submissions/{tested.id}")
        assert "secret" not in shown.text
        assert shown.json()["jobs"][0]["evaluation"]["verdict"] == "passed"
        open_to_all = Access(source=SourceVisibility.ALWAYS)
        await api.place.store.boards.restrict(api.place.board.id, open_to_all)
        assert "secret" not in (await bob.get(f"/submissions/{tested.id}")).text
        opened = await api.place.submit(mode=Mode.TEST)
        await api.place.judged(opened, log="line 3: secret = 7")
        assert "secret" in (await bob.get(f"/submissions/{opened.id}")).text
        assert (await bob.get(f"/submissions/{opened.id}/source")).status_code == 200
    async with api.asking("ada") as ada:
        assert "secret" in (await ada.get(f"/submissions/{tested.id}")).text


async def test_one_s_own_are_paged_without_a_gap(api: Api) -> None:
    bob = await api.place.person("bob")
    made = [(await api.place.submit(bob)).id for _ in range(5)]
    await api.place.submit()
    seen: list[int] = []
    async with api.asking("bob") as asks:
        query: dict[str, str | int] = {"limit": 2}
        while True:
            page = (await asks.get("/submissions", params=query)).json()
            seen += [each["id"] for each in page["submissions"]]
            if page["next"] is None:
                break
            query["cursor"] = page["next"]
        wrong = await asks.get("/submissions", params={"cursor": "x"})
        nowhere = await asks.get("/submissions", params={"board": "nope"})
    assert seen == sorted(made, reverse=True)
    assert (wrong.status_code, wrong.json()["code"]) == (400, "bad-cursor")
    assert nowhere.status_code == 404


async def test_a_quota_says_when_it_lifts(api: Api) -> None:
    limit = RateLimit(1, timedelta(minutes=5))
    await api.place.store.moderation.set_limit(limit)
    async with api.asking("bob") as bob:
        assert (await bob.post("/submissions", json=ORDER)).status_code == 201
        api.place.clock.advance(60)
        refused = await bob.post("/submissions", json=ORDER)
    assert (refused.status_code, refused.json()["code"]) == (429, "rate-limit")
    assert refused.headers["retry-after"] == "240"


async def test_the_files_of_a_profile_are_its_owner_s(api: Api) -> None:
    bob = await api.place.person("bob")
    submission = await api.place.submit(bob, mode=Mode.PROFILE)
    file = EvaluationFile.of("k.ncu-rep", b"\x00report")
    await api.place.judged(submission, files=(file,))
    path = f"/submissions/{submission.id}/files"
    async with api.asking("bob") as asks:
        assert (await asks.get(path)).json() == {"files": [{"gpu": "CPU", "name": "k.ncu-rep"}]}
        got = await asks.get(f"{path}/CPU/k.ncu-rep")
        assert (got.content, got.headers["content-type"]) == (
            b"\x00report", "application/octet-stream",
        )  # fmt: skip
        assert (await asks.get(f"{path}/CPU/x")).json()["code"] == "unknown-file"
    async with api.asking("eve") as asks:
        assert (await asks.get(path)).json() == {"files": []}
        assert (await asks.get(f"{path}/CPU/k.ncu-rep")).status_code == 404


async def test_a_body_that_does_not_fit_is_told_what_it_should_be(api: Api) -> None:
    async with api.asking("bob") as bob:
        answer = await bob.post("/submissions", json={"mode": "test"})
    assert answer.json()["detail"].startswith("the body must be a JSON object with `mode`, ")
    assert "Order" not in answer.json()["detail"]


async def test_a_file_that_names_no_board_is_told_a_placeholder(api: Api) -> None:
    async with api.asking("bob") as bob:
        answer = await bob.post(
            "/submissions", files={"file": ("k.py", b"x")}, data={"mode": "test"}
        )
    assert answer.json()["code"] == "no-leaderboard"
    assert "#!PODIUM leaderboard NAME" in answer.json()["detail"]


async def test_without_a_token_the_answer_says_where_to_get_one(api: Api) -> None:
    async with api.asking() as anybody:
        answer = await anybody.post("/submissions", json=ORDER)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    for way in ("/me", "/profile link", "podium token create --person NAME"):
        assert way in answer.json()["detail"]
