"""The bot under test: a separate process, which can be stopped and started again."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tests.doubles import launcher
from tests.doubles.discord.gateway.gateway import Gateway
from tests.doubles.discord.model.world import World

START_WITHIN_S = 30.0
STOP_WITHIN_S = 10.0


Begin = Callable[[Mapping[str, str], Path | None, IO[bytes]], "subprocess.Popen[str]"]
"""Starts a bot with this environment, in this folder, with its output in this file."""


def program(*words: str) -> Begin:
    """Return how to start a program as the bot."""

    def begin(
        environment: Mapping[str, str], folder: Path | None, log: IO[bytes]
    ) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            words, env=environment, cwd=folder, stdout=log, stderr=subprocess.STDOUT, text=True
        )

    return begin


def podium_command(*arguments: str) -> Begin:
    """Return how to start the `podium` command as the bot."""

    def begin(
        environment: Mapping[str, str], folder: Path | None, log: IO[bytes]
    ) -> "subprocess.Popen[str]":
        return launcher.Command(arguments, environment, folder, stdout=log)

    return begin


@dataclass(frozen=True)
class Command:
    """How the bot is started, and the file of its output."""

    begin: "Begin"
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None


class BotProcess:
    """A bot and its log; it counts as started once it has identified at the gateway."""

    def __init__(self, world: World, gateway: Gateway, command: Command) -> None:
        self._world, self._gateway, self._command = world, gateway, command
        self._process: subprocess.Popen[str] | None = None

    async def start(self, within: float = START_WITHIN_S) -> None:
        before = self._gateway.identifies
        process = self._process = await asyncio.to_thread(self._spawn)

        def up_or_over() -> bool:
            return process.poll() is not None or self._gateway.identifies > before

        try:
            await self._world.wait_for(up_or_over, within)
        except TimeoutError:
            raise RuntimeError(f"the bot did not come up:\n{self.log}") from None
        if process.returncode is not None:
            raise RuntimeError(f"the bot ended with {process.returncode}:\n{self.log}")

    def _spawn(self) -> "subprocess.Popen[str]":
        command = self._command
        with command.log.open("ab") as log:
            return command.begin({**os.environ, **command.environment}, command.folder, log)

    @property
    def log(self) -> str:
        return self._command.log.read_text(encoding="utf-8", errors="replace")

    async def stop(self, sign: signal.Signals = signal.SIGTERM) -> int | None:
        process = self._process
        if process is None or process.poll() is not None:
            return process.returncode if process else None
        process.send_signal(sign)
        try:
            return await asyncio.to_thread(process.wait, STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            return await asyncio.to_thread(process.wait)
