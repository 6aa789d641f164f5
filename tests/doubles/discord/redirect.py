"""Runs a bot that has no setting for the server: `python -m tests.doubles.discord.redirect BOT.py`.

discord.py has no setting either, but two of its class attributes are the addresses.
"""

import os
import runpy
import sys

import discord
import yarl


def redirect() -> None:
    discord.http.Route.BASE = os.environ["DISCORD_API_BASE"]
    url = yarl.URL(os.environ["DISCORD_GATEWAY_URL"])
    discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = url


if __name__ == "__main__":
    redirect()
    sys.argv.pop(0)
    if sys.argv[0] == "-m":
        sys.argv.pop(0)
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")
