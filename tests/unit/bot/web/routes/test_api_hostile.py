"""Requests to `/api/v1` that no client of ours sends."""

import httpx
import pytest

from bot.domain.accounts import MACHINE, Rights
from bot.domain.api.base import PATH
from tests.doubles.agents import way_to
from tests.doubles.api import Api, make_api


async def test_a_body_of_thousands_of_fields_is_refused_before_each_is_looked_at(api: Api) -> None:
    async with api.asking("ada") as ada:
        bodies: list[dict[str, object]] = [
            {f"k{number}": 1 for number in range(2_000)},
            {"gpus": [1] * 20_000},
            {"x": [[]] * 20_000},
        ]
        for many in bodies:
            refused = await ada.post("/submissions", json=many)
            assert (refused.status_code, refused.json()["code"]) == (400, "bad-body")
            assert "too many values" in refused.json()["detail"]
        quoted = "print(" + '"a", ' * 5_000 + ")  # " + '\\"' * 5_000 + "\\"
        order = {"file_name": "a.py", "source": quoted, "mode": "test", "board": "vectoradd"}
        taken = await ada.post("/submissions", json=order)
        assert taken.status_code == 201, taken.text


async def test_a_long_form_that_is_not_multipart_is_refused_before_it_is_parsed(api: Api) -> None:
    await api.place.store.rights.replace(api.place.ada, MACHINE, Rights(is_creator=True))
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    async with api.asking("ada") as ada:
        for path in ("/leaderboards", "/leaderboards/vectoradd/task"):
            refused = await ada.post(path, content=b"a=" + b"%41" * 22_000, headers=kind)
            assert (refused.status_code, refused.json()["code"]) == (413, "large-body")
            assert "must be multipart/form-data" in refused.json()["detail"]


@pytest.mark.parametrize(
    "path",
    [f"{PATH}/queue", f"{PATH}/runners", f"{PATH}/openapi.json", f"{PATH}/none", "/sign-in",
     "/popcorn/leaderboards", "/eval/health"],
)  # fmt: skip
async def test_a_token_drawn_anew_for_each_request_is_no_way_round_the_limits(path: str) -> None:
    api = await make_api(requests_per_minute=3)
    good = await api.headers("ada")
    way = way_to(api.door)
    async with httpx.AsyncClient(transport=way, base_url="http://podium.test") as client:
        known = [(await client.get(f"{PATH}/queue", headers=good)).status_code for _ in range(2)]
        found = [
            (await client.get(path, headers={"Authorization": f"Bearer {number}"})).status_code
            for number in range(5)
        ]
    assert known == [200, 200]
    assert found[3:] == [429, 429]
    assert 429 not in found[:3]


@pytest.mark.parametrize(
    "path",
    [f"{PATH}/leaderboards", f"{PATH}/leaderboards/vectoradd/standings", f"{PATH}/me",
     f"{PATH}/leaderboards/vectoradd/standings?format=csv", f"{PATH}/submissions", f"{PATH}/none",
     f"{PATH}/submissions/1/source", "/boards/vectoradd", "/boards/vectoradd/season.json", "/me"],
)  # fmt: skip
async def test_an_answer_is_for_its_reader_alone_and_for_what_it_says_it_is(
    api: Api, path: str
) -> None:
    headers = await api.headers("ada")
    async with httpx.AsyncClient(transport=way_to(api.door), base_url="http://podium.test") as ada:
        answer = await ada.get(path, headers=headers)
    kept = answer.headers["cache-control"]
    assert kept == "no-store" or kept.startswith("private")
    if kept != "no-store":
        assert {"Authorization", "Cookie"} <= set(answer.headers["vary"].split(", "))
    assert answer.headers["x-content-type-options"] == "nosniff"
