"""Checks this machine and its settings for what Podium needs; says how to get what is missing."""

import importlib.metadata
import importlib.util
import platform
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from bot.app.context import Requirement
from bot.domain.api.workers import WorkerConfig
from bot.domain.errors import SetupError, UserError
from bot.ports import Store
from bot.settings import Settings
from bot.store.embedded.programs import package_folder
from bot.store.errors import where
from bot.store.locks import is_ready, is_served
from bot.store.postgres import reach
from bot.store.task_folders import examples, task_folders
from runners.contract.evaluation import CPU
from runners.contract.runner import Capabilities, Runner, RunnerError

if TYPE_CHECKING:
    from bot.discord.context import DiscordSettings
    from bot.discord.setup_check import GuildGrant, SetupReport

_REACH_S = 3.0
_DISCORD = "Discord"
_ADVICE = re.compile(r"(.+); ((?:run|set|start) .+)", re.DOTALL)
"""An error's message: the problem, and what to do about it."""
_INSTALL = "pip install 'kernel-podium[local]'"
_FIX_SANDBOX = "install bubblewrap, and allow user namespaces where the kernel forbids them"
_FIX_LIMITS = "limit memory and processes from outside: mem_limit and pids_limit of a container"
_WEB = "HTTP"
_UP = "podium up"
_LOCAL = frozenset({"local", "local_process"})
"""The names of the local runner."""


async def examine(settings: Settings) -> tuple[Requirement, ...]:
    """Return all requirements except the runners' and the front ends'."""
    return (
        Requirement("Python", found=True, detail=platform.python_version()),
        _torch(optional=_LOCAL.isdisjoint(choice.name for choice in settings.runner_choices)),
        await _postgres(settings),
        *_data_folder(settings.data_dir),
    )


async def examine_runners(
    opening: AbstractAsyncContextManager[Sequence[Runner]], *, strict: bool
) -> tuple[Requirement, ...]:
    """Return what the runners offer, or why one cannot serve."""
    try:
        async with opening as runners:
            offers = [await runner.capabilities() for runner in runners]
    except (RunnerError, SetupError, UserError) as error:
        return (runner_failure(error),)
    return tuple(runner_requirements(offers, strict=strict))


def runner_requirements(offers: Sequence[Capabilities], *, strict: bool) -> Iterator[Requirement]:
    """Yield the GPUs and the sandbox of each runner; with `strict`, missing layers are failures."""
    yield from map(_gpu, offers)
    for offer in offers:
        yield _sandbox(offer, strict=strict)


def runner_failure(error: Exception) -> Requirement:
    """Return the failed requirement of a runner, with the error's own advice if it has one."""
    advised = _ADVICE.fullmatch(str(error))
    if advised:
        return Requirement("runner", found=False, detail=advised[1], remedy=advised[2])
    refused = "podium sandbox: refusing" in str(error)
    remedy = _FIX_SANDBOX if refused else "check PODIUM_RUNNERS, which names the runners"
    return Requirement("runner", found=False, detail=str(error), remedy=remedy)


def examine_web(settings: Settings) -> tuple[Requirement, ...]:
    """Return where the HTTP front end listens."""
    if settings.http_port is None:
        remedy = "set it to let other machines judge for `podium up`; see bot/remote/README.md"
        detail = "no PODIUM_HTTP_PORT; `make up` uses port 8000"
        return (Requirement(_WEB, found=False, detail=detail, remedy=remedy, optional=True),)
    scheme = "http" if settings.http_certificate is None else "https"
    port = f"port {settings.http_port}" if settings.http_port else "on a free port"
    detail = f"{scheme}, at {settings.http_host} {port}"
    if settings.discord_client_id is not None:
        detail += f"; people sign in with Discord at {settings.public_url}"
    return (Requirement(_WEB, found=True, detail=detail),)


async def examine_server(
    settings: Settings, request_config: Callable[[], Awaitable[WorkerConfig]]
) -> tuple[Requirement, ...]:
    """Return the server that `podium worker` judges for; empty when none is set."""
    if settings.worker_server is None:
        return ()
    try:
        config = await request_config()
    except (UserError, SetupError) as error:
        detail, _, remedy = str(error).rpartition("; ")
        return (Requirement("server", found=False, detail=detail or remedy, remedy=remedy),)
    detail = f"{settings.worker_server}, lease {config.lease_s:.0f} s"
    return (Requirement("server", found=True, detail=detail),)


async def examine_discord(
    door: "DiscordSettings | None", store: Store | None = None
) -> tuple[Requirement, ...]:
    """Return whether there is a token, and the steps of setting up the bot's guilds.

    Without a store, only what Discord reports is examined.
    """
    if door is None:
        remedy = "`podium discord setup` asks for it; see bot/discord/README.md"
        detail = "no DISCORD_TOKEN, and none is stored"
        return (Requirement(_DISCORD, found=False, detail=detail, remedy=remedy, optional=True),)
    from bot.discord.guild_check import examine_guilds  # noqa: PLC0415 - half a second of imports
    from bot.discord.setup_check import COPY_AGAIN, DiscordUnavailableError, check_setup  # noqa: PLC0415 - the same

    try:
        checkup = await check_setup(door)
        shipped = frozenset(each.name for each in task_folders(examples()))
        steps = [each async for each in examine_guilds(door, checkup.guilds, store, shipped)]
    except SetupError as error:
        return (Requirement(_DISCORD, found=False, detail=str(error), remedy=COPY_AGAIN),)
    except DiscordUnavailableError as error:
        remedy = "`podium up` keeps trying; check DISCORD_API_BASE and the network"
        return (
            Requirement(_DISCORD, found=False, detail=str(error), remedy=remedy, optional=True),
        )
    return (
        *_guild_requirements(checkup, door.trusted_guilds),
        *(
            Requirement(each.name, each.is_done, each.detail, each.remedy, optional=True)
            for each in steps
        ),
    )


def _guild_requirements(checkup: "SetupReport", trusted: frozenset[int]) -> Iterator[Requirement]:
    names = ", ".join(guild.name for guild in checkup.guilds)
    if not checkup.guilds:
        detail, remedy = f"{checkup.bot} is in no server", f"invite it: {checkup.invite}"
        yield Requirement(_DISCORD, found=False, detail=detail, remedy=remedy, optional=True)
        return
    yield Requirement(_DISCORD, found=True, detail=f"{checkup.bot}, in {names}")
    for guild in checkup.guilds:
        if guild.missing:
            yield _missing_permissions(guild, checkup.invite)
    yield _trust(checkup, trusted)


def _trust(checkup: "SetupReport", trusted: frozenset[int]) -> Requirement:
    """Return where the roles of the bot's servers give rights."""
    name = f"{_DISCORD} rights"
    if trusted:
        known = [each.name for each in checkup.guilds if each.id in trusted]
        detail = f"give rights in {', '.join(known) or 'no server: the bot is in none of them'}"
        remedy = f"set DISCORD_TRUSTED_GUILDS to {_ids(checkup)}"
        return Requirement(name, found=bool(known), detail=detail, remedy=remedy, optional=True)
    if not checkup.is_public:
        return Requirement(
            name, found=True, detail="give rights in every server of this private bot"
        )
    detail = "the bot is public, so they give rights only in servers of the application's owner"
    remedy = f"set DISCORD_TRUSTED_GUILDS={_ids(checkup)}, or switch off Public Bot"
    return Requirement(name, found=False, detail=detail, remedy=remedy, optional=True)


def _ids(checkup: "SetupReport") -> str:
    return ",".join(str(each.id) for each in checkup.guilds)


def _missing_permissions(guild: "GuildGrant", invite: str) -> Requirement:
    detail = f"the bot lacks {', '.join(guild.missing)}"
    remedy = f"grant them to its role, or invite it again: {invite}"
    name = f"{_DISCORD} server {guild.name}"
    return Requirement(name, found=False, detail=detail, remedy=remedy, optional=True)


def _torch(*, optional: bool) -> Requirement:
    """Return the requirement of torch, which a machine that judges needs."""
    if importlib.util.find_spec("torch") is None:
        detail = "not installed"
        return Requirement("torch", found=False, detail=detail, remedy=_INSTALL, optional=optional)
    return Requirement("torch", found=True, detail=importlib.metadata.version("torch"))


async def _postgres(settings: Settings) -> Requirement:
    if settings.database_url is not None:
        return await _external_postgres(settings.database_url.get_secret_value())
    try:
        programs = package_folder()
    except SetupError as error:
        detail, _, remedy = str(error).rpartition("; ")
        return Requirement("Postgres", found=False, detail=detail, remedy=remedy)
    return Requirement("Postgres", found=True, detail=f"embedded, from {programs}")


async def _external_postgres(dsn: str) -> Requirement:
    try:
        await reach(dsn, _REACH_S)
    except SetupError as error:
        detail, _, remedy = str(error).rpartition("; ")
        return Requirement("Postgres", found=False, detail=detail, remedy=remedy)
    return Requirement("Postgres", found=True, detail=f"DATABASE_URL, at {where(dsn)}")


def _data_folder(data_dir: Path) -> Iterator[Requirement]:
    """Yield whether the folder can be used, and whether a `podium up` serves it."""
    name = "data folder"
    try:
        served, ready = is_served(data_dir), is_ready(data_dir)
    except SetupError as error:
        remedy = "choose another folder with --data or PODIUM_DATA_DIR"
        yield Requirement(name, found=False, detail=str(error), remedy=remedy)
        return
    words = "served by a running `podium up`" if served else "free"
    yield Requirement(name, found=True, detail=f"{data_dir.resolve()}, {words}")
    yield _up(data_dir, served=served, ready=ready)


def _up(data_dir: Path, *, served: bool, ready: bool) -> Requirement:
    """Return whether a `podium up` runs here, with its front ends connected."""
    if served and ready:
        return Requirement(_UP, found=True, detail="it runs, and is connected")
    detail, remedy = "it does not run here", "start it with `make up`"
    if served:
        detail = "it is starting, or is not connected to Discord"
        remedy = f"wait a minute; then read {data_dir / 'podium.log'}"
    return Requirement(_UP, found=False, detail=detail, remedy=remedy, optional=True)


def _gpu(offer: Capabilities) -> Requirement:
    gpus = ", ".join(f"{count} x {gpu}" for gpu, count in offer.gpus.items() if gpu != CPU)
    if gpus:
        return Requirement("GPU", found=True, detail=gpus)
    remedy = "tasks run on the CPU; if this machine has an NVIDIA GPU, install its driver"
    return Requirement("GPU", found=False, detail="none found", remedy=remedy, optional=True)


def _sandbox(offer: Capabilities, *, strict: bool) -> Requirement:
    isolation = offer.isolation
    present = f"{isolation.outer}; {', '.join(isolation.layers) or 'no layer'}"
    if not isolation.missing:
        return Requirement("sandbox", found=True, detail=present)
    missing = "; ".join(f"{layer}: {reason}" for layer, reason in isolation.missing.items())
    remedy = _FIX_SANDBOX if isolation.missing_strict else _FIX_LIMITS
    optional = not (strict and isolation.missing_strict)
    detail = f"{present}; missing {missing}"
    return Requirement("sandbox", found=False, detail=detail, remedy=remedy, optional=optional)
