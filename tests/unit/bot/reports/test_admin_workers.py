from datetime import timedelta

from bot.domain.job import Worker
from bot.reports.admin import workers_report
from bot.reports.blocks import Table, Text
from runners.contract.evaluation import Isolation
from runners.contract.runner import OutOfService
from tests.doubles.factories import NOON, make_capabilities

OFFER = make_capabilities(gpus={"H200": 2}, isolation=Isolation(outer="bubblewrap"))
BARE = make_capabilities(
    gpus={"CPU": 1}, isolation=Isolation(outer="none", missing={"seccomp": "x", "landlock": "y"})
)


def test_each_worker_has_its_slots_sandbox_and_last_sign() -> None:
    seen = NOON - timedelta(seconds=4)
    workers = (
        Worker("box:1", ("CPU", "H200"), {"local": OFFER, "more": BARE}, seen, 2),
        Worker("old", ("T4",)),
        Worker("cold", None, seen_at=NOON),
    )
    (table,) = workers_report(workers, NOON).blocks
    assert isinstance(table, Table)
    sandbox = "bubblewrap; none, without landlock, seccomp"
    assert table.rows == (
        ("box:1", "box; box more", "1 x CPU, 2 x H200", "2", sandbox, "test", "4 s ago"),
        ("old", "-", "T4", "0", "-", "-", "-"),
        ("cold", "-", "no answer yet", "0", "-", "-", "0 s ago"),
    )


def test_a_worker_that_missed_its_heartbeats_is_not_listed_as_living() -> None:
    workers = (
        Worker("box:1", ("CPU",), seen_at=NOON - timedelta(seconds=16)),
        Worker("box:2", ("CPU",), seen_at=NOON - timedelta(seconds=14)),
    )
    living, silent = workers_report(workers, NOON).blocks
    assert isinstance(living, Table)
    assert isinstance(silent, Table)
    assert (living.title, [row[0] for row in living.rows]) == ("connected", ["box:2"])
    assert (silent.title, [row[0] for row in silent.rows]) == (
        "no heartbeat, probably lost",
        ["box:1"],
    )


def test_without_workers_it_says_what_to_start() -> None:
    (text,) = workers_report((), NOON).blocks
    assert isinstance(text, Text)
    assert "podium worker" in text.text


def test_an_alert_about_a_card_out_of_service_has_its_reason() -> None:
    out = OutOfService(gpu="H200", card="GPU-0", why="its memory failed")
    offer = make_capabilities(gpus={"H200": 0}, out_of_service=(out,))
    living, table = workers_report([Worker("box:1", (), {"local": offer}, NOON)], NOON).blocks
    assert isinstance(living, Table)
    assert isinstance(table, Table)
    assert living.rows[0][1:3] == ("box", "none")
    assert table.rows == (("box:1", "H200", "GPU-0", "its memory failed"),)
