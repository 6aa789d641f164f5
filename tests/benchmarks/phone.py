"""Takes pictures of the bot's messages as a phone shows them, from what a real bot sends.

python -m tests.benchmarks.phone [--folder FOLDER] [--browser chromium] [--only WORD]

A bot with the fake runner answers people of the local Discord. The folder gets a page and a picture
of each message, dark and light, and `index.html` with all of them. It takes three minutes.
"""

import argparse
import asyncio
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks import phone_hosting
from tests.benchmarks.phone_album import BOARD, SLOW, WITHIN_S, Album, number_of, wait_for_end
from tests.doubles.discord.model.files import File
from tests.doubles.discord.model.interactions import Interaction
from tests.doubles.discord.phone import WIDTH, page
from tests.doubles.discord.users.filling import Value
from tests.doubles.discord.users.person import Person
from tests.e2e.command import IDENTITY, timed_briefly
from tests.e2e.discord.scene import Scene, kernel, scene

CROWD = (
    "Katherine Johnson", "Evelyn", "Radia", "Barbara", "Karen S.", "Frances", "Hedy", "Annie",
    "Mary Kenneth", "Sophie", "Joan", "Betty", "Émilie", "Fran Allen with a very long name",
)  # fmt: skip
MINE = b"""\
#!PODIUM leaderboard identity
#!PODIUM gpus H100
# fake: time_us=44
"""
WRONG = "verdict=wrong_answer message=5_of_255_elements_differ;_the_first_at_[3]:_got_1.0,_"


async def record(found: Scene) -> Album:
    """Use the bot as a participant, as a creator and as an admin."""
    album = Album(found)
    people = [_member(found, name) for name in CROWD]
    people[4].shown = "\N{CYRILLIC CAPITAL LETTER IE}velyn"  # looks like the second's
    await _publish_slow(found)
    environment = {**found.podium.environment, **found.server.environment}
    done = await asyncio.to_thread(found.podium, "discord", "setup", **environment)
    assert done.returncode == 0, done.stderr
    await album.wait_for("welcome", "Podium is here")
    await _alerts(found, album)
    long_runs = await _long_runs(found)
    await asyncio.gather(*(_enter(found, each, number) for number, each in enumerate(people)))
    await _submissions(found, album)
    await _buttons(found, album)
    await _reading(found, album)
    await phone_hosting.record(found, album)
    await _finish_long_runs(album, *long_runs)
    await _leaving(found, album)
    album.assert_complete()
    return album


def _member(found: Scene, name: str) -> Person:
    """A person with this display name, in the channel."""
    person = found.server.user(name.lower().strip(".").replace(" ", "_"), found.guild)
    person.shown = name
    person.goes_to(found.submissions)
    return person


async def _publish_slow(found: Scene) -> None:
    """Publish a board whose runs may take minutes."""
    task = timed_briefly(IDENTITY, found.podium.folder / "slow")
    text = (task / "task.yml").read_text(encoding="utf-8")
    slow = re.sub(r"(?m)^test_timeout: .*$", "test_timeout: 300", text)
    (task / "task.yml").write_text(slow, encoding="utf-8")
    words = ("--unchecked", "--name", "slow", "--gpu", "H100")
    published = await asyncio.to_thread(found.podium, "task", "publish", task, *words)
    assert published.returncode == 0, published.stderr


async def _alerts(found: Scene, album: Album) -> None:
    """Choose channels for alerts and notifications, so that later ones appear there."""
    carol, guild = found.carol, found.guild
    await album.ask(carol, "admin alerts", channel=guild.create_channel("alarms"))
    news = guild.create_channel("news")
    await album.ask(carol, "admin notices", channel=news, record=True, competition=True)
    source = "".join(f"    x{n} = data[{n % 2}] * {n} + {n}\n" for n in range(30))
    text = f"# fake: time_us=70\ndef custom_kernel(data):\n{source}    return data\n"
    for person in (found.bob, _member(found, "Mallory")):
        copied = File("copy.py", text.encode())
        run = await person.slash("leaderboard submit ranked", script=copied, gpus="L4", **BOARD)
        await run.final()


async def _long_runs(found: Scene) -> tuple[Interaction, Interaction]:
    """Begin two runs of two minutes, by a person with notifications and by one without."""
    patient, other = _member(found, "Patience"), _member(found, "Ada")
    await (await patient.slash("profile notices", result=True)).final()
    runs = [await found.submit(each, "seconds=125", "test", **SLOW) for each in (patient, other)]
    return runs[0], runs[1]


async def _finish_long_runs(album: Album, patient: Interaction, other: Interaction) -> None:
    await album.wait_for("result-ready", "your result is ready", 180)
    await wait_for_end(album.found, other)
    album.add("long-run", other.message)


async def _enter(found: Scene, person: Person, number: int) -> None:
    """Rank a person on one GPU type or on two, and wait for the report."""
    gpus = "H100, L4" if number % 3 == 0 else "H100"
    run = await found.submit(person, f"time_us={31.5 + number**1.5:.2f}", gpus=gpus)
    await run.final()
    await wait_for_end(found, run)


async def _submissions(found: Scene, album: Album) -> None:
    scripts = {
        "test-passed": ("test", "seconds=0.5"),
        "test-wrong": ("test", f"{WRONG}expected_2.0"),
        "test-crashed": ("test", "verdict=crashed message=ZeroDivisionError:_x_(line_3) log=hm"),
        "build-failed": ("test", "verdict=build_failed stage=build message=expected_';'_(line_2)"),
        "benchmark": ("benchmark", "time_us=41"),
        "profile": ("profile", "time_us=41"),
        "ranked-first": ("ranked", "time_us=45"),
        "ranked-better": ("ranked", "time_us=36.02"),
        "ranked-slower": ("ranked", "time_us=52"),
        "ranked-wrong": ("ranked", f"{WRONG}expected_2.0"),
    }
    for name, (mode, directive) in scripts.items():
        options: dict[str, Value] = {"script": kernel(directive), "gpus": "H100", **BOARD}
        run = await album.ask(found.alice, f"leaderboard submit {mode}", **options)
        await wait_for_end(found, run)
        album.add(name, run.message)
    run = await found.submit(found.alice, "time_us=37.5", "ranked", gpus="H100, L4")
    await wait_for_end(found, run)
    album.add("ranked-two-gpus", run.message)
    line = await found.bob.sees("on L4", found.submissions, within=60)
    album.add("public-lines", *found.bob.messages(line.channel)[-3:])
    own = next(each for each in found.alice.threads() if each.name.startswith("identity: "))
    album.add("thread-report", found.alice.messages(own)[-1])
    await album.click("details", found.bob, line, "Details")
    await album.wait_for("results-thread", "Results of identity")
    await album.wait_for("confirmation", "its confirmation has ended")
    await album.wait_for("alert", "near-identical")
    await album.wait_for("notification", "Record on")


async def _buttons(found: Scene, album: Album) -> None:
    alice = found.alice
    slow = await found.submit(alice, "seconds=12", "test", **SLOW)
    await slow.final()
    await found.server.wait_for(lambda: "test 0" in slow.message.text, WITHIN_S)
    album.add("live", slow.message)
    await album.click("cancel", alice, slow.message, "Cancel")
    await wait_for_end(found, slow)
    album.add("cancelled", slow.message)
    run = await found.submit(alice, "time_us=40", "test", gpus="H100")
    await wait_for_end(found, run)
    await album.click("run-again", alice, run.message, "Run again")
    await album.click("make-ranked", alice, run.message, "Make ranked")
    await album.click("source", alice, run.message, "Source")
    number = number_of(run.message)
    await album.ask(alice, "submission show", id=number)
    await album.ask(alice, "submission source", id=number)
    await album.ask(alice, "submission rerun", id=number, mode="benchmark")
    slow = await found.submit(alice, "seconds=60", "test", **SLOW)
    await slow.final()
    await album.ask(alice, "submission cancel", id=number_of(slow.message))
    ranked = await found.submit(alice, "time_us=35", "ranked", gpus="H100")
    await wait_for_end(found, ranked)
    await album.ask(alice, "submission compare", first=number, second=number_of(ranked.message))
    await album.ask(alice, "submission withdraw", id=number_of(ranked.message))
    asked = await album.ask(alice, "leaderboard submit test", "question", script=kernel(), **BOARD)
    album.add("question-submit", asked.message)
    sent = await alice.send("my kernel", File("mine.py", MINE))
    run = await alice.message_command("Submit this file", sent)
    album.add("Submit-this-file", await run.final())


async def _reading(found: Scene, album: Album) -> None:
    alice = found.alice
    shown = await (await alice.slash("leaderboard show", **BOARD)).final()
    while "10. " not in shown.text:  # the last ones wait for their confirmation
        await asyncio.sleep(0.5)
        shown = await (await alice.slash("leaderboard show", **BOARD)).final()
    await album.ask(alice, "leaderboard show", **BOARD)
    await alice.click(shown, "Next")
    await alice.sees("page 2", within=10)
    album.add("show-next", shown)
    await alice.select(shown.selects[1], [shown.selects[1].raw["options"][0]["value"]])
    album.add("show-place", shown)
    several = await (await alice.slash("leaderboard show", gpu="H100, L4", **BOARD)).final()
    album.add("show-several", several)
    for word in ("show-personal", "compare-gpus", "task", "template"):
        await album.ask(alice, f"leaderboard {word}", **BOARD)
    for word in ("list", "help"):
        await album.ask(alice, f"leaderboard {word}")
    for word in ("link", "tokens", "notices", "export"):
        await album.ask(alice, f"profile {word}")
    await album.ask(alice, "profile revoke", id=1)
    wrong = await (await alice.slash("leaderboard show", leaderboard_name="identty")).final()
    album.add("error", wrong)


async def _leaving(found: Scene, album: Album) -> None:
    form = await found.alice.slash("profile delete")
    album.add_form("delete-account-form", form)
    gone = await found.alice.modal(form, {"Type delete": "delete"})
    album.add("profile-delete", await gone.final())


def names_in(album: Album) -> dict[str, str]:
    """The names of the people, roles and channels that messages mention, by id."""
    world = album.found.server.world
    names = {str(each.id): each.shown or each.name for each in world.users.values()}
    for guild in world.guilds.values():
        names |= {str(each.id): each.name for each in guild.roles.values()}
        names |= {str(each.id): each.name for each in guild.channels}
    return names


def draw(album: Album, folder: Path, browser: str, only: str = "") -> Iterator[Path]:
    """Write the pages, and yield a picture of each."""
    names = names_in(album)
    for name, messages in album.shown.items():
        if only not in name:
            continue
        shown = [(name, each) for each in messages]
        for theme in ("dark", "light"):
            file = folder / f"{name}-{theme}.html"
            file.write_text(page(shown, names, light=theme == "light"), encoding="utf-8")
            yield _picture(file, browser)


def _picture(file: Path, browser: str) -> Path:
    picture = file.with_suffix(".png")
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    size = f"--window-size={WIDTH},1500"
    command = [browser, *flags, size, f"--screenshot={picture}", file.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return picture


async def _recorded() -> Album:
    async with scene("fake:CPU=2:H100=4:L4=1", gpus=("H100", "L4")) as found:
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
    (options.folder / "index.html").write_text(page(every, names_in(album)), encoding="utf-8")
    for picture in draw(album, options.folder, options.browser, options.only):
        print(picture)


if __name__ == "__main__":
    main()
