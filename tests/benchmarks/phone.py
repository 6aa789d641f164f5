"""Takes pictures of the bot's messages as a phone shows them, from what a real bot sends.

python -m tests.benchmarks.phone [--folder FOLDER] [--browser chromium] [--only WORD]

A bot with the fake runner answers people of the local Discord. The folder gets a page and a picture
of each message, dark and light, and `index.html` with all of them.
"""

import argparse
import asyncio
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.doubles.discord.model.interactions import Interaction
from tests.doubles.discord.model.messages import Message
from tests.doubles.discord.phone import WIDTH, page
from tests.doubles.discord.users.person import Person
from tests.e2e.discord.scene import Scene, scene

CROWD = (
    "Katherine Johnson", "Evelyn", "Radia", "Barbara", "Karen S.", "Frances", "Hedy", "Annie",
    "Mary Kenneth", "Sophie", "Joan", "Betty", "Émilie", "Fran Allen with a very long name",
)  # fmt: skip
WRONG = "verdict=wrong_answer message=5_of_255_elements_differ;_the_first_at_[3]:_got_1.0,_"


@dataclass
class Album:
    """The messages in the order in which they were received, by name."""

    shown: dict[str, list[Message]] = field(default_factory=dict)

    def add(self, name: str, *messages: Message) -> None:
        """Keep messages under a name."""
        self.shown.setdefault(name, []).extend(messages)

    async def ask(self, name: str, who: Person, command: str, **options: str | int) -> Message:
        """Use a command and keep all messages of its answer."""
        run = await who.slash(command, **options)
        message = await run.final()
        self.add(name, message)
        return message


async def record(found: Scene) -> Album:
    """Use the bot as a participant, then as an admin."""
    album = Album()
    people = [_member(found, name) for name in CROWD]
    people[4].shown = "\N{CYRILLIC CAPITAL LETTER IE}velyn"  # looks like the second's
    await asyncio.gather(*(_enter(found, each, number) for number, each in enumerate(people)))
    await _submissions(found, album)
    await _reading(found, album)
    await _administering(found, album)
    return album


def _member(found: Scene, name: str) -> Person:
    """A person with this display name, in the channel."""
    person = found.server.user(name.lower().strip(".").replace(" ", "_"), found.guild)
    person.shown = name
    person.goes_to(found.submissions)
    return person


async def _submissions(found: Scene, album: Album) -> None:
    scripts = {
        "test-passed": ("test", ""),
        "test-wrong": ("test", f"{WRONG}expected_2.0"),
        "test-crashed": ("test", "verdict=crashed message=ZeroDivisionError:_x_(line_12) log=hm"),
        "build-failed": ("test", "verdict=build_failed stage=build message=expected_';'_(line_7)"),
        "ranked-first": ("ranked", "time_us=45"),
        "ranked-better": ("ranked", "time_us=36.02"),
        "ranked-slower": ("ranked", "time_us=52"),
        "ranked-wrong": ("ranked", f"{WRONG}expected_2.0"),
    }
    for name, (mode, directive) in scripts.items():
        run = await found.submit(found.alice, directive, mode, gpus="H100")
        stored = await run.final()
        if name == "test-passed":
            album.add("stored", stored)
        await _end(found, run)
        album.add(name, run.message)
    run = await found.submit(found.alice, "time_us=37.5", "ranked", gpus="H100, L4")
    await _end(found, run)
    album.add("ranked-two-gpus", run.message)
    line = await found.bob.sees("on L4", found.submissions, within=60)
    album.add("public-lines", *found.bob.messages(line.channel)[-3:])


async def _end(found: Scene, run: Interaction) -> None:
    """Wait for the report in the answer."""

    def ended() -> bool:
        return "Run again" in {each.label for each in run.message.buttons}

    await found.server.wait_for(ended, 120)


async def _enter(found: Scene, person: Person, number: int) -> None:
    """Rank a person on one GPU type or on two, and wait for the report."""
    gpus = "H100, L4" if number % 3 == 0 else "H100"
    run = await found.submit(person, f"time_us={31.5 + number**1.5:.2f}", gpus=gpus)
    await run.final()
    await _end(found, run)


async def _reading(found: Scene, album: Album) -> None:
    alice, board = found.alice, {"leaderboard_name": "identity"}
    shown = await (await alice.slash("leaderboard show", **board)).final()
    while "10. " not in shown.text:  # the last ones wait for their confirmation
        await asyncio.sleep(0.5)
        shown = await (await alice.slash("leaderboard show", **board)).final()
    await album.ask("show", alice, "leaderboard show", **board)
    await alice.click(shown, "Next")
    await alice.sees("page 2", within=10)
    album.add("show-next", shown)
    await album.ask("show-several", alice, "leaderboard show", gpu="H100, L4", **board)
    await album.ask("show-personal", alice, "leaderboard show-personal", **board)
    await album.ask("compare-gpus", alice, "leaderboard compare-gpus", **board)
    for name in ("list", "task", "template", "help"):
        options = board if name in {"task", "template"} else {}
        await album.ask(name, alice, f"leaderboard {name}", **options)
    await album.ask("compare", alice, "submission compare", first=5, second=6)
    await album.ask("profile-link", alice, "profile link")
    await album.ask("profile-tokens", alice, "profile tokens")
    await album.ask("profile-notices", alice, "profile notices")
    await album.ask("error", alice, "leaderboard show", leaderboard_name="identty")


async def _administering(found: Scene, album: Album) -> None:
    carol = found.carol
    await album.ask("help-admin", carol, "leaderboard help")
    await album.ask("admin-limit", carol, "admin limit", most=5, minutes=60)
    for name in ("limits", "stats", "runners", "audit", "costs"):
        await album.ask(f"admin-{name}", carol, f"admin {name}")


def pictures(album: Album, folder: Path, browser: str, only: str = "") -> Iterator[Path]:
    """Write the pages, and yield a picture of each."""
    for name, messages in album.shown.items():
        if only not in name:
            continue
        shown = [(name, each) for each in messages]
        for theme in ("dark", "light"):
            file = folder / f"{name}-{theme}.html"
            file.write_text(page(shown, light=theme == "light"), encoding="utf-8")
            yield _picture(file, browser)


def _picture(file: Path, browser: str) -> Path:
    picture = file.with_suffix(".png")
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    size = f"--window-size={WIDTH},1500"
    command = [browser, *flags, size, f"--screenshot={picture}", file.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return picture


async def _recorded() -> Album:
    async with scene(gpus=("H100", "L4")) as found:
        return await record(found)


def main() -> None:
    """Record, then draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), "phone"))
    parser.add_argument("--browser", default="chromium")
    parser.add_argument("--only", default="", help="part of the names of the messages to draw")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    album = asyncio.run(_recorded())
    every = [(name, each) for name, messages in album.shown.items() for each in messages]
    (options.folder / "index.html").write_text(page(every), encoding="utf-8")
    for picture in pictures(album, options.folder, options.browser, options.only):
        print(picture)


if __name__ == "__main__":
    main()
