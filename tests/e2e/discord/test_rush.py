"""The benchmark of a rush finds each report in the place to which the bot sends it."""

import re
from argparse import Namespace
from pathlib import Path

import pytest

from tests.benchmarks import discord_rush

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
PARTS = "acknowledged", "report in answer", "report in thread", "public line"


async def test_a_small_rush_is_seen_in_full(
    open_folder_root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = Namespace(runs=6, minutes=0.05, boards=2, people=6)
    await discord_rush.measure(arguments, open_folder_root)  # its targets need an idle machine
    told = capsys.readouterr().out
    counts = re.findall(rf"({'|'.join(PARTS)}) +(\d+) ", told)
    assert counts == [(part, "6") for part in PARTS], told
    assert "refused: 0" in told
    assert "displays not finished: 0" in told
