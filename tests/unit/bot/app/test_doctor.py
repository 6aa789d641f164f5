import importlib.util
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from pydantic import SecretStr

from bot.app.context import Requirement
from bot.app.doctor import (
    examine,
    examine_discord,
    examine_server,
    examine_web,
    runner_failure,
    runner_requirements,
)
from bot.discord.context import DiscordSettings
from bot.discord.setup_check import needed_permissions
from bot.domain.api.workers import WorkerConfig
from bot.domain.errors import UserError
from bot.settings import Settings
from bot.store import locks
from runners.contract.evaluation import Isolation
from runners.contract.runner import RunnerError
from tests.doubles.factories import make_capabilities


async def discord_with(**guilds: int) -> TestServer:
    """Discord as a doctor sees it: an application, and its permissions by guild."""

    async def application(request: web.Request) -> web.Response:
        right = request.headers["Authorization"] == "Bot right"
        return web.json_response({"id": "17", "name": "podium"}, status=200 if right else 401)

    async def ours(request: web.Request) -> web.Response:
        found = list(enumerate(guilds.items(), start=1))
        return web.json_response(
            [
                {"id": str(number), "name": name, "permissions": str(granted)}
                for number, (name, granted) in found
                if number > int(request.query["after"])
            ]
        )

    async def roles(request: web.Request) -> web.Response:
        granted = list(guilds.values())[int(request.match_info["guild"]) - 1]
        everyone = {"id": request.match_info["guild"], "name": "@everyone", "permissions": "0"}
        admin = {"id": "9", "name": "Leaderboard Admin", "permissions": str(granted)}
        return web.json_response([everyone, admin])

    async def channels(_request: web.Request) -> web.Response:
        return web.json_response([])

    async def member(_request: web.Request) -> web.Response:
        return web.json_response({"id": "17", "roles": []})

    app = web.Application()
    app.router.add_get("/api/v10/guilds/{guild}/roles", roles)
    app.router.add_get("/api/v10/guilds/{guild}/channels", channels)
    app.router.add_get("/api/v10/guilds/{guild}/members/17", member)
    app.router.add_get("/api/v10/users/@me", member)
    app.router.add_get("/api/v10/applications/@me", application)
    app.router.add_get("/api/v10/users/@me/guilds", ours)
    server = TestServer(app)
    await server.start_server()
    return server


def door(server: TestServer, word: str = "right") -> DiscordSettings:
    return DiscordSettings(word, str(server.make_url("/api/v10")))


async def test_without_a_token_the_door_is_optional() -> None:
    (found,) = await examine_discord(None)
    assert (found.found, found.optional, found.detail) == (
        *(False, True),
        "no DISCORD_TOKEN, and none is stored",
    )


async def test_a_refused_token_has_to_be_mended() -> None:
    server = await discord_with()
    (found,) = await examine_discord(door(server, "wrong"))
    assert not found.optional
    assert "rejects the token" in found.detail
    assert "Bot page" in found.remedy
    await server.close()


async def test_a_bot_without_a_guild_gets_its_link() -> None:
    server = await discord_with()
    found, _boards, _own = await examine_discord(door(server))
    assert found.detail == "podium is in no server"
    assert "client_id=17" in found.remedy
    await server.close()


async def test_each_guild_is_told_what_the_bot_lacks_there() -> None:
    less = needed_permissions()
    less.update(manage_threads=False)
    server = await discord_with(good=needed_permissions().value, bad=less.value)
    found = {each.name: each for each in await examine_discord(door(server))}
    assert (found["Discord"].found, found["Discord"].detail) == (True, "podium, in good, bad")
    assert found["Discord server bad"].detail == "the bot lacks Manage Threads"
    assert found["Discord rights"].detail == "give rights in every server of this private bot"
    assert found["Discord admins in good"].found
    hidden = found["Discord admins in bad"]
    assert "lacks Manage Threads" in hidden.detail
    assert hidden.optional
    assert "podium discord setup" in found["boards"].remedy
    await server.close()


async def test_an_address_without_discord_is_no_reason_to_stop() -> None:
    server = await discord_with()
    settings = DiscordSettings("right", str(server.make_url("/elsewhere")))
    (wrong,) = await examine_discord(settings)
    await server.close()
    (unavailable,) = await examine_discord(settings)
    assert not wrong.found
    assert "does not answer" in unavailable.detail
    assert unavailable.optional


def test_what_a_strict_harness_runs_without_is_optional_to_the_doctor_too() -> None:
    def strictly(*missing: str) -> Requirement:
        isolation = Isolation(outer="unshare", missing=dict.fromkeys(missing, "refused"))
        _, sandbox = runner_requirements([make_capabilities(isolation=isolation)], strict=True)
        return sandbox

    fine = strictly("harness cgroup", "harness bubblewrap")
    assert fine.optional
    assert "pids_limit" in fine.remedy
    for layer in ("harness network", "seccomp"):
        refused = strictly("harness cgroup", layer)
        assert not refused.optional
        assert "user namespaces" in refused.remedy


def test_a_missing_layer_matters_where_it_is_demanded() -> None:
    isolation = Isolation(outer="none", missing={"network": "no namespaces"})
    offer = make_capabilities(isolation=isolation)
    for strict in (True, False):
        gpu, sandbox = runner_requirements([offer], strict=strict)
        assert gpu.name == "GPU"
        assert sandbox.optional is not strict
        assert "no namespaces" in sandbox.detail


def test_a_runner_that_is_away_says_itself_what_to_do_or_where_to_look() -> None:
    told = runner_failure(RunnerError("Modal: no such app; run `podium modal deploy`"))
    assert (told.detail, told.remedy) == ("Modal: no such app", "run `podium modal deploy`")
    open_to_all = runner_failure(
        RunnerError("Ray at h:6379 accepts any token; start every node with a token")
    )
    assert open_to_all.remedy == "start every node with a token"
    assert (
        "PODIUM_RUNNERS" in runner_failure(RunnerError("no slot was free; nobody knows why")).remedy
    )
    assert not told.found
    strict = "the harness ended with status 3: podium sandbox: refusing to run without namespaces"
    assert "allow user namespaces" in runner_failure(RunnerError(strict)).remedy


async def test_what_to_do_without_postgres_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    _, _, postgres, _, _ = await examine(Settings(data_dir=tmp_path))
    assert "pip install" not in postgres.detail
    assert postgres.remedy.count("DATABASE_URL") == postgres.remedy.count("pip install") == 1


async def test_a_podium_up_is_found_once_its_front_ends_are_connected(tmp_path: Path) -> None:
    async def found() -> Requirement:
        return (await examine(Settings(data_dir=tmp_path)))[-1]

    assert (await found()).remedy == "start it with `make up`"
    async with locks.serving(tmp_path):
        starting = await found()
        assert "not connected to Discord" in starting.detail
        assert "podium.log" in starting.remedy
        async with locks.ready(tmp_path):
            assert (await found()).found
    assert not (await found()).found


@pytest.mark.parametrize(
    ("runners", "optional"),
    [(("local",), False), (("fake", "local_process:CPU=1"), False), (("fake",), True), ((), True)],
)
async def test_torch_is_needed_where_this_machine_judges(
    runners: tuple[str, ...], *, optional: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    found = await examine(Settings(data_dir=tmp_path, runners=runners))
    (torch,) = (each for each in found if each.name == "torch")
    assert (torch.found, torch.optional) == (False, optional)


def test_the_http_door_is_optional_and_said_with_where_it_listens(tmp_path: Path) -> None:
    (found,) = examine_web(Settings(data_dir=tmp_path))
    assert (found.found, found.optional) == (False, True)
    (found,) = examine_web(Settings(data_dir=tmp_path, http_port=8000))
    assert (found.found, found.detail) == (True, "http, at 127.0.0.1 port 8000")
    signing_in = Settings(
        data_dir=tmp_path,
        http_port=8000,
        public_url="https://podium.example.org",
        discord_client_id="17",
        discord_client_secret=SecretStr("hunter2"),
    )
    (found,) = examine_web(signing_in)
    assert found.detail.endswith("; people sign in with Discord at https://podium.example.org")


async def test_the_server_of_a_worker_is_asked_where_one_is_named(tmp_path: Path) -> None:
    async def greeted() -> WorkerConfig:
        return WorkerConfig(worker="box:1", lease_s=30.0)

    async def refused() -> WorkerConfig:
        raise UserError("bad-token", "it refuses the token; an admin can create one")

    assert await examine_server(Settings(data_dir=tmp_path), refused) == ()
    settings = Settings(data_dir=tmp_path, worker_server="https://podium.test")
    (found,) = await examine_server(settings, greeted)
    assert (found.found, found.detail) == (True, "https://podium.test, lease 30 s")
    (found,) = await examine_server(settings, refused)
    told = (found.found, found.optional, found.detail, found.remedy)
    assert told == (False, False, "it refuses the token", "an admin can create one")
