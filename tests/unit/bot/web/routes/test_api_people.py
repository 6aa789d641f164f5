"""Oneself, one's tokens, what admins do, and what is told of the queue."""

import json
from datetime import timedelta
from typing import Any

import pytest

from bot.domain.accounts import TokenScope
from bot.domain.api import accounts, admin, base, boards, finals, publishing, submissions
from bot.domain.api.examples import EXAMPLES
from bot.domain.costs import Quota, QuotaKey, Unit
from runners.contract.evaluation import CaseKind
from runners.contract.wire import Wire
from tests.architecture.tree import ROOT
from tests.doubles.api import Api
from tests.doubles.factories import make_capabilities, make_case, make_measurement
from tests.doubles.stored import LEASE

MODULES = (admin, boards, accounts, publishing, finals, submissions, base)


async def test_a_token_makes_none_that_may_more_or_lasts_longer(api: Api) -> None:
    async with api.asking("bob") as bob:
        me = (await bob.get("/me")).json()
        assert (me["identity"], me["scope"], me["is_admin"]) == ("local:bob", "submit", False)
        order = {"label": "ci", "scope": "read", "days": 400}
        made = (await bob.post("/me/tokens", json=order)).json()
        (own, _) = (await bob.get("/me/tokens")).json()["tokens"]
        assert made["expires_at"] == own["expires_at"]
        wider = await bob.post("/me/tokens", json=order | {"scope": "admin"})
        assert (wider.status_code, wider.json()["code"]) == (403, "not-allowed")
        bearing = {"Authorization": f"Bearer {made['token']}"}
        assert (await bob.get("/me", headers=bearing)).json()["scope"] == "read"
        narrow = await bob.post("/me/tokens", json=order, headers=bearing)
        assert narrow.json()["code"] == "narrow-token"
        assert (await bob.delete(f"/me/tokens/{made['id']}")).status_code == 204
        assert (await bob.get("/me", headers=bearing)).status_code == 401
        assert (await bob.delete(f"/me/tokens/{made['id']}")).status_code == 404


@pytest.mark.parametrize("path", ["stats", "audit", "rules", "costs"])
async def test_admin_pages_are_for_admins_alone(api: Api, path: str) -> None:
    for name, status in ((None, 401), ("bob", 403)):
        async with api.asking(name) as asks:
            assert (await asks.get(f"/admin/{path}")).status_code == status
    async with api.asking("ada", TokenScope.ADMIN) as ada:
        assert (await ada.get(f"/admin/{path}")).status_code == 200


async def test_an_admin_limits_one_person_for_some_time(api: Api) -> None:
    await api.place.person("bob")
    end = (api.place.clock.now() + timedelta(days=1)).isoformat().replace("+00:00", "Z")
    only = {"identity": "local:bob", "reason": "a flood"}
    limit = {"board": None, "mode": None, "most": 2, "window_s": 60.0, "until": end, **only}
    async with api.asking("ada", TokenScope.ADMIN) as ada:
        assert (await ada.put("/admin/limits", json=limit)).status_code == 204
        assert (await ada.get("/admin/rules")).json()["limits"] == [limit]
        own = await ada.put("/admin/limits", json=limit | {"identity": "local:ada"})
        assert "your own account" in own.text
        assert (await ada.post("/admin/limits/end", json=only)).status_code == 204
        assert (await ada.get("/admin/rules")).json()["limits"] == []


async def test_the_owner_of_a_cancelled_submission_reads_by_whom_and_why(api: Api) -> None:
    bob = await api.place.person("bob")
    first, second = await api.place.submit(bob), await api.place.submit(bob)
    long = "it *hangs*\nand " + "x" * 480
    async with api.asking("ada", TokenScope.ADMIN) as ada:
        for each, body in ((first, {"reason": long}), (second, None)):
            path = f"/admin/submissions/{each.id}/cancel"
            assert (await ada.post(path, json=body)).json() == {"stopped": 1}
            assert (await ada.post(path, json=body)).json() == {"stopped": 0}
    async with api.asking("bob") as asking:
        refused = await asking.post(f"/admin/submissions/{first.id}/cancel")
        assert refused.status_code == 403
        errors = [
            (await asking.get(f"/submissions/{each.id}")).json()["jobs"][0]["error"]
            for each in (first, second)
        ]
    assert errors[0].startswith("cancelled by an admin: it *hangs* and x")
    assert len(errors[0]) == len("cancelled by an admin: ") + 300
    assert errors[1] == "cancelled by an admin"
    own = await api.place.submit(api.place.ada)
    async with api.asking("ada", TokenScope.ADMIN) as ada:
        await ada.post(f"/admin/submissions/{own.id}/cancel", json={"reason": "mine"})
        shown = (await ada.get(f"/submissions/{own.id}")).json()["jobs"][0]
    assert (shown["state"], shown["error"]) == ("cancelled", None)


async def test_an_admin_bans_pauses_and_limits_and_the_audit_tells_it(api: Api) -> None:
    waiting = await api.place.submit(await api.place.person("bob"))
    bob, rest = {"identity": "local:bob", "reason": "forged"}, {"gpu": "cpu", "reason": "hot"}
    limit = {"board": "vectoradd", "mode": "ranked", "most": 2, "window_s": 60.0}
    async with api.asking("ada", TokenScope.ADMIN) as ada:
        assert (await ada.post("/admin/bans", json=bob)).json() == {"stopped": 1}
        assert (await ada.post("/admin/pauses", json=rest)).status_code == 204
        assert (await ada.put("/admin/limits", json=limit)).status_code == 204
        assert (await ada.post(f"/admin/submissions/{waiting.id}/disqualify")).status_code == 204
        rules = (await ada.get("/admin/rules")).json()
        assert rules["bans"] == [bob | {"name": "bob", "until": None}]
        assert rules["gpus"] == {"CPU": "hot"}
        assert rules["limits"] == [limit | {"identity": None, "reason": "", "until": None}]
        for path, body in (("bans", bob), ("pauses", rest)):
            assert (await ada.post(f"/admin/{path}/end", json=body)).status_code == 204
            twice = await ada.post(f"/admin/{path}/end", json=body)
            assert twice.status_code == 409
        key = {"board": "vectoradd", "mode": "ranked"}
        assert (await ada.post("/admin/limits/end", json=key)).status_code == 204
        first = (await ada.get("/admin/audit", params={"limit": 2})).json()
        await ada.post("/admin/pauses", json=rest)  # what comes meanwhile moves no page
        rest_of = await ada.get("/admin/audit", params={"limit": 2, "cursor": first["next"]})
    actions = [each["action"] for each in first["decisions"] + rest_of.json()["decisions"]]
    assert actions == ["unlimit", "resume", "unban", "disqualified"]
    assert {each["actor"] for each in first["decisions"]} == {"ada"}


async def test_an_admin_limits_the_gpu_time_of_one_person(api: Api) -> None:
    await api.place.person("bob")
    quota = {"unit": "dollars", "each_person": True, "board": None, "gpu": None}
    own = {"identity": "local:bob", "reason": "a flood"}
    order = quota | own | {"most": 2.5}
    async with api.asking("ada", TokenScope.ADMIN) as ada:
        assert (await ada.put("/admin/quotas", json=order)).status_code == 204
        assert (await ada.get("/admin/rules")).json()["quotas"] == [order]
        mine = await ada.put("/admin/quotas", json=order | {"identity": "local:ada"})
        assert "your own account" in mine.text
        assert (await ada.post("/admin/quotas/end", json=quota)).status_code == 409
        assert (await ada.post("/admin/quotas/end", json=quota | own)).status_code == 204
        assert (await ada.get("/admin/rules")).json()["quotas"] == []
        log = (await ada.get("/admin/audit")).json()["decisions"]
    assert [each["subject"] for each in log[:2]] == [
        "dollars, person local:bob, every board, all GPU types together",
        "$2.50 a day, person local:bob, every board, all GPU types together",
    ]


async def test_an_admin_reads_a_hidden_source_only_by_a_recorded_look(api: Api) -> None:
    hidden = await api.place.submit(await api.place.person("bob"))
    text = await api.place.store.submissions.source(hidden.id)
    look = f"/admin/submissions/{hidden.id}/look"
    async with api.asking("bob") as bob:
        assert (await bob.post(look)).status_code == 403
    async with api.asking("ada", TokenScope.ADMIN) as ada:
        refused = await ada.get(f"/submissions/{hidden.id}/source")
        assert (refused.status_code, refused.json()["code"]) == (403, "hidden-source")
        before = (await ada.get("/admin/audit")).json()["decisions"]
        assert "look" not in [each["action"] for each in before]
        assert (await ada.post(look, json={"reason": "a copy?"})).json()["text"] == text
        found, *rest = (await ada.get("/admin/audit")).json()["decisions"]
    assert rest == before
    assert (found["action"], found["reason"]) == ("look", "a copy?")
    assert found["subject"] == f"submission {hidden.id}"


async def test_an_admin_caps_gpu_time_and_sees_who_used_it(api: Api) -> None:
    bob = await api.place.person("bob")
    await api.place.judged(await api.place.submit(bob))
    quota = {"unit": "seconds", "each_person": False, "board": "vectoradd", "gpu": "CPU"}
    async with api.asking("ada", TokenScope.ADMIN) as ada:
        wrong = await ada.put("/admin/quotas", json=quota | {"most": 0})
        assert wrong.status_code == 400
        order = quota | {"most": 60.0, "reason": "dear"}
        assert (await ada.put("/admin/quotas", json=order)).status_code == 204
        assert (await ada.get("/admin/rules")).json()["quotas"] == [
            quota | {"most": 60.0, "identity": None, "reason": ""}
        ]
        assert (await ada.post("/admin/quotas/end", json=quota)).status_code == 204
        assert (await ada.post("/admin/quotas/end", json=quota)).status_code == 409
        found = (await ada.get("/admin/costs", params={"days": 7})).json()
        assert (await ada.get("/admin/costs", params={"days": 31})).status_code == 422
        log = (await ada.get("/admin/audit")).json()["decisions"]
    (line,) = found["usage"]
    assert (line["person"], line["board"], line["kind"]) == ("bob", "vectoradd", "submission")
    assert line["seconds"] > 0
    covered = "all people together, board vectoradd, CPU"
    assert [(each["action"], each["subject"]) for each in log[:2]] == [
        ("unquota", f"seconds, {covered}"),
        ("quota", f"60 s a day, {covered}"),
    ]


async def test_a_person_without_gpu_time_left_gets_429_with_the_time_to_wait(api: Api) -> None:
    limit = Quota(QuotaKey(Unit.SECONDS), 400.0)
    await api.place.store.costs.set_quota(limit)
    bob = await api.place.person("bob")
    run = await api.place.submit(bob)
    spent = {"wall_s": 200.0}
    await api.place.judged(run, **spent)
    body = {"file_name": "k.py", "source": "x = 1", "mode": "ranked", "board": "vectoradd"}
    async with api.asking("bob") as asks:
        refused = await asks.post("/submissions", json=body)
    assert (refused.status_code, refused.json()["code"]) == (429, "quota")
    assert "200 s of each person's 400 s a day are left" in refused.json()["detail"]
    assert 0 < int(refused.headers["Retry-After"]) <= 86_400


async def test_an_admin_starts_a_final_which_everybody_may_read(api: Api) -> None:
    for name, time_ns in (("ada", 100), ("bob", 200)):
        case = make_case(CaseKind.BENCHMARK, measurement=make_measurement(time_ns, 0))
        person = await api.place.person(name)
        await api.place.judged(await api.place.submit(person), cases=(case,))
    order = {"board": "vectoradd", "top": 2}
    async with api.asking("ada", TokenScope.ADMIN) as ada, api.asking("bob") as bob:
        assert (await bob.post("/admin/finals", json=order)).status_code == 403
        assert (await ada.post("/admin/finals", json=order | {"top": 1})).status_code == 400
        started = await ada.post("/admin/finals", json=order)
        assert started.status_code == 201
        (final,) = started.json()["finals"]
        assert (final["gpu"], final["top"], final["rows"]) == ("CPU", 2, None)
        again = await ada.post("/admin/finals", json=order)
        assert again.json()["code"] == "final-running"
        shown = await bob.get("/leaderboards/vectoradd/finals")
        assert shown.json()["finals"][0]["compared"] == 0
        (leaderboard,) = (await bob.get("/leaderboards/vectoradd/standings")).json()["leaderboards"]
        assert leaderboard["final"]["ended_at"] is None
        cancelled = await ada.post("/admin/finals/cancel", json={"board": "vectoradd"})
        assert cancelled.json() == {"cancelled": 1}
        gone = await ada.post("/admin/finals/cancel", json={"board": "vectoradd"})
        assert gone.json()["code"] == "no-final"


async def test_a_submission_is_judged_again_by_an_admin(api: Api) -> None:
    earlier = await api.place.submit(await api.place.person("bob"))
    async with api.asking("ada", TokenScope.ADMIN) as ada:
        made = await ada.post(f"/admin/submissions/{earlier.id}/rejudge", json={"reason": "driver"})
        assert made.status_code == 201
        shown = (await ada.get(f"/submissions/{made.json()['id']}")).json()
    assert shown["person"] == "bob"


async def test_whoever_asks_sees_who_judges_and_what_waits(api: Api) -> None:
    await api.place.submit()
    offers = {"local": make_capabilities()}
    await api.place.store.workers.announce("box", ("CPU",), LEASE, offers)
    async with api.asking("ada", TokenScope.ADMIN) as ada:
        (named,) = (await ada.get("/runners")).json()["runners"]
    assert named["name"] == "box"
    async with api.asking() as anybody:
        (runner,) = (await anybody.get("/runners")).json()["runners"]
        queue = (await anybody.get("/queue")).json()
    assert (runner["name"], runner["gpus"], runner["running"]) == ("worker 1", ["CPU"], 0)
    assert runner["offers"]["local"]["gpus"] == {"CPU": 1}
    pool = {"gpu": "CPU", "queued": 1, "running": 0, "workers": 1, "paused": None}
    assert queue == {"paused": None, "pools": [pool]}


async def test_the_description_has_its_token_problems_and_examples(api: Api) -> None:
    async with api.asking() as anybody:
        found = (await anybody.get("/openapi.json")).json()
    (name,) = found["components"]["securitySchemes"]
    assert found["components"]["securitySchemes"][name]["scheme"] == "bearer"
    made = found["paths"]["/api/v1/submissions"]["post"]["responses"]["201"]
    assert made["headers"]["Location"]["schema"]["format"] == "uri-reference"
    token: dict[str, list[str]] = {"token": []}
    paths, needed, optional = found["paths"], [token], [{}, token]
    assert paths["/api/v1/me"]["get"]["security"] == needed
    assert paths["/api/v1/admin/stats"]["get"]["security"] == needed
    assert paths["/api/v1/leaderboards"]["get"]["security"] == optional
    assert "security" not in paths["/api/v1/queue"]["get"]
    assert all(path.startswith("/api/v1/") for path in found["paths"])
    assert not any("agents" in path for path in found["paths"])
    for operations in found["paths"].values():
        for operation in operations.values():
            assert operation["description"]
            refused = operation["responses"]["429"]["content"]
            assert list(refused) == ["application/problem+json"]
            assert not _bodies(operation) - EXAMPLES.keys()
    assert found["components"]["schemas"]["ProblemDetails"]["examples"] == [
        EXAMPLES["ProblemDetails"]
    ]


async def test_the_readme_has_every_route_and_every_field_of_a_form(api: Api) -> None:
    async with api.asking() as anybody:
        paths = (await anybody.get("/openapi.json")).json()["paths"]
    lines = (ROOT / "bot/web/README.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| `")]
    forms = 0
    for path, operations in paths.items():
        named = [part for part in path.split("/")[3:] if not part.startswith("{")]
        about = [row for row in rows if named[-1] in row.split("|")[1]]
        assert about, f"{path} is missing"
        for method, operation in operations.items():
            content = operation.get("requestBody", {}).get("content", {})
            form = content.get("multipart/form-data", {}).get("schema", {})
            name = f"`{method.upper()} {path.removeprefix('/api/v1/').replace('{name}', 'NAME')}`"
            for field in form.get("properties", ()):
                (row,) = [row for row in about if name in row]
                assert f"`{field}`" in row, f"{name} lacks {field}"
                forms += 1
    assert forms > 20


def _bodies(operation: dict[str, Any]) -> set[str]:
    """The types of all that is sent and answered."""
    bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
    schemas = [
        kind.get("schema", {}) for each in bodies for kind in each.get("content", {}).values()
    ]
    return {str(each["$ref"]).rpartition("/")[2] for each in schemas if "$ref" in each}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_what_it_is_an_example_of(name: str) -> None:
    (kind,) = {found for each in MODULES if (found := getattr(each, name, None)) is not None}
    assert issubclass(kind, Wire)
    assert kind.model_validate_json(json.dumps(EXAMPLES[name]))
