"""What is wanted of a board reads as it was written, whoever reads it."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bot.domain.board import Access, SourceVisibility, Visibility
from bot.domain.errors import UserError
from bot.domain.ids import PersonId, TaskVersionId
from bot.domain.publication import PublishRequest
from bot.domain.tasks.scaffold import scaffold
from bot.services.parser_process import ParserProcess
from bot.services.publishing import publish as requests
from bot.services.publishing.publish import (
    REQUEST,
    default_gpus,
    possible_gpus,
    read_upload,
    with_gpus,
)
from runners.backends.fake import create
from runners.contract.task import Device
from tests.doubles.factories import make_task
from tests.doubles.place import Place
from tests.doubles.task_zips import packed


def test_a_request_survives_being_stored() -> None:
    access = Access(Visibility.PRIVATE, "discord-guild:1", SourceVisibility.NEVER, frozenset({"x"}))
    request = PublishRequest(
        PersonId(3),
        "adding",
        ("CPU", "H100"),
        datetime(2099, 1, 31, 17, tzinfo=UTC),
        as_admin=True,
        access=access,
        onto=TaskVersionId(7),
        zip_name="vectoradd",
        strict=False,
    )
    assert REQUEST.validate_json(REQUEST.dump_json(request)) == request
    assert request.board_name(make_task()) == "adding"
    assert PublishRequest(PersonId(3)).board_name(make_task()) == "vectoradd"


def test_a_request_that_was_stored_by_an_earlier_version_is_read() -> None:
    stored = (
        '{"person":3,"name":"adding","gpus":["CPU"],"deadline":"2099-01-31T17:00:00Z",'
        '"endless":false,"as_admin":true,"access":{"visibility":"private","house":null,'
        '"source":"never","guests":["x"]},"onto":7,"zip_name":"vectoradd"}'
    )
    assert REQUEST.validate_json(stored) == PublishRequest(
        PersonId(3),
        "adding",
        ("CPU",),
        datetime(2099, 1, 31, 17, tzinfo=UTC),
        as_admin=True,
        access=Access(Visibility.PRIVATE, None, SourceVisibility.NEVER, frozenset({"x"})),
        onto=TaskVersionId(7),
        zip_name="vectoradd",
    )


BOMB = f'{scaffold("double")["reference.py"]}\nx = f"{"{a}" * 300_000}"\n'


async def test_a_zip_is_read_apart_from_everything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    request = PublishRequest(PersonId(1))
    bundle, parsed = await read_upload(packed()[2], request)
    assert (bundle.root, parsed.task.name) == ("double", "double")
    monkeypatch.setattr(requests, "TASKS", ParserProcess(0.6, 60))
    reading, turns = asyncio.create_task(read_upload(packed(reference__py=BOMB)[2], request)), 0
    while not reading.done():
        await asyncio.sleep(0.01)
        turns += 1
    with pytest.raises(UserError, match="make it smaller") as refused:
        await reading
    assert refused.value.code == "too-hard"
    assert turns > 10


async def test_unknown_keys_are_refused_unless_the_request_is_lenient() -> None:
    foreign = scaffold("double")["task.yml"] + "\nreward: 100\n"
    request = PublishRequest(PersonId(1))
    with pytest.raises(UserError, match="unknown key 'reward'"):
        await read_upload(packed(task__yml=foreign)[2], request)
    _, parsed = await read_upload(packed(task__yml=foreign)[2], replace(request, strict=False))
    assert parsed.task.name == "double"
    assert "unknown key 'reward'" in parsed.warnings[0]


async def test_what_is_wrong_with_a_zip_is_told_with_file_and_line() -> None:
    request = PublishRequest(PersonId(1))
    with pytest.raises(UserError, match=r"double/reference.py:1: Python cannot parse this"):
        await read_upload(packed(reference__py="def")[2], request)
    long = "#" * 1_000_001
    with pytest.raises(UserError, match="a submission may have at most 1,000,000 bytes"):
        await read_upload(packed(**{"solutions/correct/long__py": long})[2], request)


NO_GPUS = make_task(gpus=())
CUDA = make_task(gpus=(), device=Device.CUDA)


async def test_possible_are_the_gpu_types_of_runners_workers_and_the_task_that_fit(
    place: Place,
) -> None:
    runner = create(slots={"H100": 1, "CPU": 2})
    assert await possible_gpus(place.store, NO_GPUS) == ()
    assert await possible_gpus(place.store, NO_GPUS, (runner,)) == ("CPU", "H100")
    await place.store.workers.announce("box", ("L4",), timedelta(seconds=30))
    assert await possible_gpus(place.store, NO_GPUS, (runner,)) == ("CPU", "H100", "L4")
    assert await possible_gpus(place.store, CUDA, (runner,)) == ("H100", "L4")
    named = make_task(gpus=("B200",), device=Device.CUDA)
    assert await possible_gpus(place.store, named, (runner,)) == ("B200", "H100", "L4")


async def test_default_are_the_named_gpu_types_and_else_all_possible_ones(place: Place) -> None:
    runners, named = (create(slots={"H100": 1, "CPU": 2}),), make_task(gpus=("L4",))
    asked = PublishRequest(place.ada, gpus=("B200", "B200"))
    silent = PublishRequest(place.ada)
    for request, task, board, gpus in (
        (asked, named, place.board, ("B200",)),
        (silent, named, place.board, place.board.gpus),
        (silent, named, None, ("L4",)),
        (silent, CUDA, None, ("H100",)),
    ):
        assert await default_gpus(place.store, request, task, runners, board=board) == gpus
    with pytest.raises(UserError, match="device cuda") as refused:
        await default_gpus(place.store, silent, CUDA, board=None)
    assert refused.value.code == "no-gpu"


async def test_a_board_that_exists_is_not_given_gpu_types(place: Place) -> None:
    runners = (create(slots={"H100": 1, "CPU": 2}),)
    update = PublishRequest(place.ada, place.board.name)
    assert await with_gpus(place.store, update, CUDA, runners) == update
    new = await with_gpus(place.store, PublishRequest(place.ada, "new"), CUDA, runners)
    assert new.gpus == ("H100",)
