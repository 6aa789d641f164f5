from bot.discord.responses import as_files
from bot.reports.blocks import Attachment


async def test_files_are_read_once_each_and_described_within_the_limit() -> None:
    (file,) = as_files([Attachment("plot.png", b"x", about="y" * 5000)])
    assert file.fp.read() == b"x"
    assert len(file.description or "") == 1024
