"""Draws the plots of the Discord bot's README from times that it measures.

python -m tests.benchmarks.pictures [--data DIR] [--folder .github/images]

Three people submit ranked matmul kernels to the local runner, one after the other, as in a first
session, or a data folder already has such runs. The plots are those of `/leaderboard show` and
`show-personal`.
"""

import argparse
import asyncio
import tempfile
from pathlib import Path

from bot.app.installation import Installation
from bot.discord.plots import png
from bot.domain.board import Viewer
from bot.reports.blocks import Chart
from bot.reports.charts import season_chart
from bot.reports.history import personal_report
from bot.services.history import personal_board
from bot.services.standings import season
from bot.settings import Settings
from tests.architecture.tree import ROOT
from tests.e2e.command import Podium, fresh, served

TASK = ROOT / "tasks" / "examples" / "matmul"
SLICED = """
def custom_kernel(data):
    a, b = data
    a, b = a.{kind}(), b.{kind}()
    out = a[:, :{size}] @ b[:{size}]
    for k in range({size}, a.shape[1], {size}):
        out += a[:, k : k + {size}] @ b[k : k + {size}]
    return out.half()
"""
RUNS = (
    ("Ada", SLICED.format(kind="double", size=2)),
    ("Grace", SLICED.format(kind="float", size=4)),
    ("Ada", SLICED.format(kind="float", size=8)),
    ("Katherine", SLICED.format(kind="double", size=32)),
    ("Grace", SLICED.format(kind="float", size=16)),
    ("Ada", SLICED.format(kind="float", size=64)),
    ("Katherine", SLICED.format(kind="double", size=512)),
    ("Grace", (TASK / "solutions" / "correct" / "torch_matmul.py").read_text(encoding="utf-8")),
    ("Ada", SLICED.format(kind="float", size=128)),
    ("Ada", (TASK / "solutions" / "correct" / "torch_float.py").read_text(encoding="utf-8")),
)
"""Who submits what, from slow to fast; each slice of the sum is a multiplication of its own."""


def measure(podium: Podium) -> None:
    """Every kernel as a ranked run, each after the one before."""
    published = podium("task", "publish", TASK, "--unchecked", "--gpu", "CPU")
    assert published.returncode == 0, published.stderr
    with served(podium):
        for number, (who, source) in enumerate(RUNS):
            file = podium.file(f"kernel{number}.py", source)
            ran = podium("submit", file, "--leaderboard", "matmul", "--as", who)
            assert ran.returncode == 0, ran.stdout + ran.stderr


async def draw(data_dir: Path, folder: Path) -> None:
    """The two charts as files."""
    installation = Installation(Settings()).embedded_at(data_dir)
    async with installation.open() as podium:
        ada = await podium.store.people.find("local:Ada")
        assert ada is not None
        viewer = Viewer(ada.id, sees_all=True)
        chart = season_chart(await season(podium.store, podium.clock, viewer, "matmul"))
        assert chart is not None
        report = personal_report(await personal_board(podium.store, viewer, "matmul"))
    (own,) = [block for block in report.blocks if isinstance(block, Chart)]
    for name, each in (("season", chart), ("personal", own)):
        path = folder / f"discord-{name}.png"
        path.write_bytes(png(each))
        print(path)


def main() -> None:
    """Measure, then draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="default: a new folder")
    parser.add_argument("--data", type=Path, help="a data folder with ranked runs of matmul by Ada")
    wanted = parser.parse_args()
    folder = wanted.folder or Path(tempfile.mkdtemp(prefix="podium-pictures-"))
    if wanted.data is not None:
        asyncio.run(draw(wanted.data, folder))
        return
    with fresh("local") as podium:
        measure(podium)
        asyncio.run(draw(podium.folder / "data", folder))


if __name__ == "__main__":
    main()
