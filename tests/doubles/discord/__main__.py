"""Starts a local Discord for manual use: `python -m tests.doubles.discord [PORT]`."""

import asyncio
import contextlib
import sys

from tests.doubles.discord.server import LocalDiscord


async def _serve(port: int) -> None:
    async with LocalDiscord(port=port) as server:
        server.guild("playground")
        for name, value in server.environment.items():
            print(f"export {name}={value}", flush=True)  # noqa: T201 -- what it is run for
        await asyncio.Event().wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(int(sys.argv[1]) if len(sys.argv) > 1 else 8790))
