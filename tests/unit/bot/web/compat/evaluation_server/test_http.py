"""Who is heard under `/eval`: everybody with a token, and programs of this machine without."""

import pytest

from bot.domain.accounts import TokenScope
from bot.services.tokens import create_token
from tests.doubles.agents import make_token
from tests.doubles.clock import ManualClock
from tests.doubles.eval_server import eval_server, evaluation
from tests.doubles.memory_store import MemoryStore

ROUTES = [
    ("POST", "/evaluate"), ("POST", "/compare"), ("POST", "/"), ("POST", "/mcp"),
    ("GET", "/job/1"), ("GET", "/stats"), ("POST", "/admin/cleanup-jobs"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_who_listens_to_the_network_wants_a_token_for_everything(
    memory_store: MemoryStore, clock: ManualClock, method: str, path: str
) -> None:
    """The evaluation server ran what anybody sent, and let anybody clean up."""
    async with (
        eval_server(memory_store, clock, {}) as server,
        server.client(local=False) as client,
    ):
        for secret in (b"", b"Bearer podium_no", b"Basic !!", b"Basic \xff\xff", b"Basic /w=="):
            headers = [(b"Authorization", secret)] if secret else []
            answer = await client.request(method, path, json={}, headers=headers)
            assert (answer.status_code, answer.json()["status"]) == (401, "client_error")
            assert answer.headers["www-authenticate"] == "Bearer"
        assert (await client.get("/health")).status_code == 500  # no runner is there


@pytest.mark.parametrize(
    "marks",
    [
        {"Origin": "http://evil.test"},
        {"Sec-Fetch-Site": "cross-site"},
        {"X-Forwarded-For": "203.0.113.7"},
        {"Forwarded": "for=203.0.113.7"},
        {"Host": "evil.test"},
        {"Host": ""},
        {"Host": "["},
        {"Host": "127.0.0.1:abc"},
        {"Host": "127.0.0.1@evil.com"},
        {"Host": "evil.com@127.0.0.1"},
        {"Host": "127.0.0.1/.evil.com"},
        {"Host": "127.0.0.1:80:80"},
    ],
)
async def test_a_browsers_page_and_a_proxy_do_not_pass_for_a_program_of_this_machine(
    memory_store: MemoryStore, clock: ManualClock, marks: dict[str, str]
) -> None:
    async with eval_server(memory_store, clock, {}) as server:
        assert (await server.asked("GET", "/stats")).status_code == 200
        assert (await server.asked("GET", "/stats", headers=marks)).status_code == 401


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8000", "[::1]:8000", "LOCALHOST:8000"])
async def test_a_program_of_this_machine_may_name_it_in_any_way(
    memory_store: MemoryStore, clock: ManualClock, host: str
) -> None:
    async with eval_server(memory_store, clock, {}) as server:
        assert (await server.asked("GET", "/stats", headers={"Host": host})).status_code == 200


async def test_the_unmodified_client_sends_its_token_in_its_address(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    async with eval_server(memory_store, clock) as server:
        token = await server.token()
        base = f"http://any:{token}@podium.test/eval"
        async with server.client(local=False, base_url=base) as client:
            answer = await client.post("/evaluate", json=evaluation())
            assert answer.status_code == 200
            job = await client.get(f"/job/{answer.json()['job_id']}")
        assert job.json()["status"] == "completed"
        found = await server.asked("GET", f"/job/{answer.json()['job_id']}")
        assert found.status_code == 404


async def test_a_token_that_only_reads_submits_nothing(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    ada = await memory_store.people.ensure("local:ada", "Ada")
    secret = (await create_token(memory_store, ada.id, "t", scope=TokenScope.READ)).secret
    headers = {"Authorization": f"Bearer {secret}"}
    async with (
        eval_server(memory_store, clock, {}) as server,
        server.client(local=False, headers=headers) as client,
    ):
        assert (await client.get("/stats")).status_code == 200
        answer = await client.post("/evaluate", json=evaluation())
        assert answer.json()["details"] == {"code": "narrow-token"}


async def test_a_workers_token_is_nobodys(memory_store: MemoryStore, clock: ManualClock) -> None:
    secret = await make_token(memory_store, clock)
    headers = {"Authorization": f"Bearer {secret}"}
    async with eval_server(memory_store, clock, {}) as server:
        assert (await server.asked("GET", "/stats", headers=headers)).status_code == 401


async def test_a_wrong_token_is_refused_here_too(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    async with eval_server(memory_store, clock, {}) as server:
        headers = {"Authorization": "Bearer nobodys"}
        assert (await server.asked("GET", "/stats", headers=headers)).status_code == 401
