"""The bot under test: a process of its own, which can be stopped and started again."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.doubles.discord.gateway.gateway import Gateway
from tests.doubles.discord.model.world import World

START_WITHIN_S = 30.0
STOP_WITHIN_S = 10.0


@dataclass(frozen=True)
class Command:
    """How the bot is run, and where what it says is kept."""

    words: Sequence[str]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None


class BotProcess:
    """A bot and its log; it is up once it has identified at the gateway."""

    def __init__(self, world: World, gateway: Gateway, command: Command) -> None:
        self._world, self._gateway, self._command = world, gateway, command
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, within: float = START_WITHIN_S) -> None:
        before = self._gateway.identifies
        process = self._process = await self._spawn()

        def up_or_over() -> bool:
            return process.returncode is not None or self._gateway.identifies > before

        try:
            await self._world.wait_for(up_or_over, within)
        except TimeoutError:
            raise RuntimeError(f"the bot did not come up:\n{self.log}") from None
        if process.returncode is not None:
            raise RuntimeError(f"the bot ended with {process.returncode}:\n{self.log}")

    async def _spawn(self) -> asyncio.subprocess.Process:
        environment = {**os.environ, **self._command.environment}
        with self._command.log.open("ab") as log:
            return await asyncio.create_subprocess_exec(
                *self._command.words,
                env=environment,
                cwd=self._command.folder,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    @property
    def log(self) -> str:
        return self._command.log.read_text(encoding="utf-8", errors="replace")

    async def stop(self, sign: signal.Signals = signal.SIGTERM) -> int | None:
        process = self._process
        if process is None or process.returncode is not None:
            return process.returncode if process else None
        process.send_signal(sign)
        try:
            return await asyncio.wait_for(process.wait(), STOP_WITHIN_S)
        except TimeoutError:
            process.kill()
            return await process.wait()
