"""What creators and admins see on a phone, recorded for `phone.py`."""

import re

from bot.domain.tasks.scaffold import scaffold
from tests.benchmarks.phone_album import BOARD, SLOW, WITHIN_S, Album, number_of, wait_for_end
from tests.doubles.discord.model.interactions import Interaction
from tests.doubles.discord.model.messages import Message
from tests.doubles.discord.users.filling import Value
from tests.e2e.discord.scene import Scene
from tests.e2e.discord.test_competitions import competition
from tests.e2e.discord.test_releases import files, zipped

NAME = {"The board's exact name": "mine"}


async def record(found: Scene, album: Album) -> None:
    """Create boards and a competition, administer, and moderate people."""
    await _create(found, album)
    await _update(found, album)
    await _share(found, album)
    await _compete(found, album)
    await _administer(found, album)
    await _moderate(found, album)
    await _delete(found, album)


async def _create(found: Scene, album: Album) -> None:
    carol, mine = found.carol, {"leaderboard_name": "mine", "deadline": "2099-01-31 18:00"}
    asked = await carol.slash("leaderboard create", task_zip=zipped(files(seconds=6)), **mine)
    await asked.final()
    question = await carol.sees("GPU types", after=asked.message, within=30)
    album.add("leaderboard-create", asked.message)
    album.add("question-create", question)
    menu = question.selects[0]
    await carol.select(menu, ["H100"])
    begun = await (await carol.click(question, "Check and publish")).final()
    album.add("leaderboard-create", begun)
    await album.wait_for("check-live", "almost\\_two.py: ")
    await album.wait_for("check-outcome", "mine on H100 is published")
    announced = await album.wait_for("announcement", "New leaderboard")
    await album.click("board-template", found.bob, announced, "Template")
    wrong = files({"solutions/wrong/fast.py": "#!PODIUM expect wrong_answer\n"})
    options: dict[str, Value] = {"leaderboard_name": "broken", "gpus": "H100"}
    await (await carol.slash("leaderboard create", task_zip=zipped(wrong), **options)).final()
    await album.wait_for("check-failed", "Nothing was published")
    await album.ask(carol, "leaderboard check show", id=_check_in(begun))
    slow = {"leaderboard_name": "dropped", "gpus": "H100"}
    again = await carol.slash("leaderboard create", task_zip=zipped(files(seconds=6)), **slow)
    await again.final()
    running = await carol.sees("Checking your task", after=again.message, within=30)
    await album.ask(carol, "leaderboard check cancel", id=_check_in(running))


def _check_in(message: Message) -> int:
    """The number of the check that a message names."""
    found = re.search(r"check show id:(\d+)", message.text)
    assert found is not None, message.text
    return int(found[1])


async def _update(found: Scene, album: Album) -> None:
    carol, bob, mine = found.carol, found.bob, {"leaderboard_name": "mine"}
    run = await found.submit(bob, "time_us=30", gpus="H100", **mine)
    await run.final()
    await wait_for_end(found, run)
    text = scaffold("double")["task.yml"].replace("Double every", "Quickly double every")
    changed = zipped(files({"task.yml": text}))
    asked = await carol.slash("leaderboard update", task_zip=changed, **mine)
    await asked.final()
    question = await carol.sees("Nothing is changed yet", after=asked.message, within=30)
    album.add("leaderboard-update", asked.message, *asked.followups)
    album.add("question-update", question)
    await (await carol.click(question, "Check and publish")).final()
    offer = await album.wait_for("check-question", "with the new version too?")
    await album.click("board-rejudge", carol, offer, "Judge again")


async def _share(found: Scene, album: Album) -> None:
    await album.ask(found.carol, "leaderboard invite", who=found.bob, leaderboard_name="mine")
    await album.ask(found.carol, "leaderboard uninvite", who=found.bob, leaderboard_name="mine")
    await album.ask(found.bob, "leaderboard join", code="0" * 32)


async def _compete(found: Scene, album: Album) -> None:
    carol, cup = found.carol, {"name": "Cup 2030"}
    await album.ask(carol, "admin competition publish", competition_zip=competition())
    await album.wait_for("check-outcome-competition", "with 2 boards is published")
    await album.wait_for("notification-competition", "Cup 2030 is open")
    await album.ask(carol, "admin competition show", **cup)
    await album.ask(carol, "admin competition close", **cup)
    await album.ask(carol, "admin competition extend", deadline="2099-01-31 18:00", **cup)
    form = await carol.slash("admin competition delete", **cup)
    album.add_form("delete-competition-form", form)
    gone = await carol.modal(form, {"The competition's exact name": "Cup 2030"})
    album.add("admin-competition-delete", await gone.final())


async def _administer(found: Scene, album: Album) -> None:
    carol = found.carol
    await album.ask(carol, "leaderboard help", "admin")
    await album.ask(carol, "admin limit", most=5, minutes=60)
    await album.ask(carol, "admin limit", "person", who=found.bob, gpu_seconds=600, reason="load")
    for word in ("limits", "stats", "runners", "costs"):
        await album.ask(carol, f"admin {word}")
    audit = await album.ask(carol, "admin audit")
    first = audit.message.content
    await carol.click(audit.message, "Next")
    await found.server.wait_for(lambda: audit.message.content != first, WITHIN_S)
    album.add("list-next", audit.message)
    await album.ask(carol, "admin unlimit")
    await album.ask(carol, "admin export", **BOARD)
    await album.ask(carol, "admin roles")
    room = found.guild.create_channel("kernels")
    await album.ask(carol, "admin channel-allow", channel=room)
    await album.ask(carol, "admin channel-forbid", channel=room)
    await album.ask(carol, "admin pause", reason="maintenance", **BOARD)
    refused = await found.submit(found.bob, gpus="H100")
    album.add("error", await refused.final())
    await album.ask(carol, "admin resume", **BOARD)


async def _moderate(found: Scene, album: Album) -> None:
    carol, bob = found.carol, found.bob
    run = await found.submit(bob, "seconds=60", "test", **SLOW)
    number = number_of(await run.final())
    look = await album.ask(carol, "admin submission look", id=number)
    form = await carol.click(look.followups[-1] if look.followups else look.message, "Cancel it")
    album.add_form("stop-form", form)
    stopped = await carol.modal(form, {"Reason, shown to its owner": "too long"})
    album.add("stopped", await stopped.final())
    await wait_for_end(found, run)
    album.add("cancelled-by-admin", run.message)
    run = await found.submit(bob, "seconds=60", "test", **SLOW)
    number = number_of(await run.final())
    await album.ask(carol, "admin submission cancel", id=number, reason="too long")
    ranked = await found.submit(bob, "time_us=33", gpus="H100")
    await ranked.final()
    await wait_for_end(found, ranked)
    for word in ("disqualify", "requalify", "rejudge"):
        await album.ask(carol, f"admin {word}", id=number_of(ranked.message), reason="a test")
    line = bob.messages(found.guild.channel("Results of identity"))[-1]
    moderated = await carol.message_command("Moderate", line)
    album.add("Moderate", await moderated.final(), *moderated.followups)
    await album.ask(carol, "admin ban", who=bob, reason="spam", lasts="7 days")
    await album.ask(carol, "admin unban", who=bob, reason="spam")
    members = found.guild.members.values()
    target = next(each.user for each in members if each.user.name == "katherine_johnson")
    await album.ask(carol, "admin reset-name", who=target, reason="spam")
    await album.ask(carol, "admin final", gpu="H100", **BOARD)
    shown = await _final(found)
    await album.click("show-final", found.alice, shown.message, "Final")


async def _final(found: Scene) -> Interaction:
    """Return the standings, once the final has ended."""
    while True:
        run = await found.alice.slash("leaderboard show", gpu="H100", **BOARD)
        if any(each.label == "Final" for each in (await run.final()).buttons):
            return run


async def _delete(found: Scene, album: Album) -> None:
    carol = found.carol
    which = await carol.slash("leaderboard delete")
    album.add("delete-which", which.message)
    form = await carol.slash("leaderboard delete", leaderboard_name="mine")
    album.add_form("delete-form", form)
    gone = await carol.modal(form, NAME)
    await gone.final()
    await found.server.wait_for(lambda: gone.followups, WITHIN_S)
    album.add("leaderboard-delete", gone.message, *gone.followups)
