import re
from dataclasses import replace

import pytest

from bot.discord.draw import answer_text, headline, live_text, private_thread_name, public_line
from bot.domain.leaderboard import Placement
from bot.domain.scoring import ScoreValue
from bot.domain.status import JobStatus, SubmissionStatus
from bot.services.status import submission_status
from tests.doubles.discord_room import Room

NASTY = [
    "@everyone.py",
    "<@123>.py",
    "<@&123> <#5> </submit:1>.py",
    "**bold** _it_ ~~x~~ ||s|| `c` # h > q.py",
    "[click](https://evil.example).py",
    "https://evil.example/x.py",
    "日本語のファイル名🚀\u200d🚀.py",
    "\uff46\uff55\uff4c\uff4c " * 20,
    "a" * 100,
    "\\" * 100,
    "*" * 100,
    "\u202egpj.py",
]


@pytest.mark.parametrize("name", NASTY)
async def test_any_file_name_is_shown_whole_or_cut_and_means_nothing(room: Room, name: str) -> None:
    now = await named(room, name)
    thread_name = private_thread_name(now.board, name, 10**9)
    assert 1 <= len(thread_name) <= 100
    assert thread_name.isprintable() or "\u200d" in thread_name
    line = public_line(now, 5, [won("CPU")])
    for text in (headline(now), live_text(now), answer_text(now), line):
        channel = room.client.get_partial_messageable(room.channel.id)
        room.server.forget()
        await channel.send(text)
        sent = room.channel.messages[-1]
        assert len(text) <= 2000
        assert not sent.pings
        assert not re.search(r"(?<!\\)<(@123|@&123|#5|/submit)", text)
        assert "\u202e" not in text
    room.server.assert_clean()


async def test_of_many_gpu_types_the_last_ones_are_counted(room: Room) -> None:
    now = await named(room, "kernel.py")
    (job,) = now.jobs
    many = tuple(JobStatus(replace(job.job, gpu=f"GPU-{number:03}")) for number in range(130))
    text = live_text(replace(now, jobs=many))
    assert len(text) <= 2000
    shown = text.count("GPU-")
    assert text.endswith(f"and {130 - shown} more")
    assert shown > 50


async def test_several_places_are_a_line_each(room: Room) -> None:
    now = await named(room, "kernel.py")
    text = public_line(now, 5, [won("H100"), won("B200")])
    assert text.splitlines()[1:] == [
        f"🥇 1st of 2 on {gpu}: 29.10 µs ± 0.06" for gpu in ("H100", "B200")
    ]


def won(gpu: str) -> Placement:
    value = ScoreValue(29_100.0, 60.0)
    return Placement(gpu, value, 1, shared=False, entries=2, is_best=True, improved=False)


async def named(room: Room, name: str) -> SubmissionStatus:
    """A submission whose file has a name, even one that nobody may hand in."""
    submission = await room.submit()
    now = await submission_status(room.place.store, submission.id)
    return replace(now, submission=replace(now.submission, file_name=name))
