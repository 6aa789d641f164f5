"""Live progress: a table that redraws itself on a terminal, plain lines anywhere else."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text as RichText

from bot.cli.draw import STYLES
from bot.reports.blocks import Text
from bot.reports.lines import one_line


class ProgressLines:
    """One line per name, the newest words of each; a pipe gets a line per change instead."""

    def __init__(self, console: Console, *, shown: int = 12) -> None:
        self._console = console
        self._shown = shown
        self._lines: dict[str, tuple[Text, float | None]] = {}
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live = Live(console=self._console, refresh_per_second=8, transient=True)
            self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)

    def tell(self, name: str, words: Text, share: float | None = None) -> None:
        """Give the newest words of a name, and how much of its present step is done, of 1."""
        if self._lines.get(name) == (words, share):
            return
        self._lines.pop(name, None)
        self._lines[name] = (words, share)
        if self._live is not None:
            self._live.update(self._drawing())
        else:
            self._console.out(f"{one_line(name)}: {one_line(words.text)}", highlight=False)

    def _drawing(self) -> Table:
        table = Table.grid(padding=(0, 2))
        for name, (words, share) in list(self._lines.items())[-self._shown :]:
            table.add_row(
                RichText(one_line(name), style="bold"),
                "" if share is None else ProgressBar(1, share, width=20),
                RichText(one_line(words.text), style=STYLES[words.tone]),
            )
        return table
