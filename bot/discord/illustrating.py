"""Turns the charts of a report into pictures, beside the event loop."""

import asyncio
import re
from dataclasses import replace

import structlog

from bot.reports.blocks import Attachment, Block, Chart, Report
from bot.reports.chart import in_words

_log = structlog.get_logger(__name__)


async def illustrated(report: Report) -> Report:
    """The report with a picture for each chart; a chart that cannot be drawn stays as it is."""
    blocks = [await _illustrated(block) for block in report.blocks]
    return replace(report, blocks=tuple(blocks))


async def _illustrated(block: Block) -> Block:
    if not isinstance(block, Chart):
        return block
    try:
        picture = await asyncio.to_thread(_png, block)
    except Exception:  # noqa: BLE001 - whatever matplotlib meets, the numbers can be shown
        _log.exception("a chart could not be drawn", action="undrawn", title=block.title)
        return block
    return Attachment(_file_name(block.title), picture, in_words(block))


def _png(chart: Chart) -> bytes:
    from bot.discord import plots  # noqa: PLC0415 - matplotlib takes a second to load

    return plots.png(chart)


def _file_name(title: str) -> str:
    words = re.findall("[a-z0-9]+", title.lower())
    return f"{'-'.join(words)[:60] or 'chart'}.png"
