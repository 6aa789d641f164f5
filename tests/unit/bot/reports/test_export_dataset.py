"""Tests of a board's tables for researchers."""

import json

from bot.domain.board import Viewer
from bot.reports import export as dataset
from bot.services.boards import export_board, exported_evaluations
from tests.doubles.clock import ManualClock
from tests.doubles.memory_store import MemoryStore
from tests.doubles.place import make_place


async def test_every_line_has_just_the_columns_that_are_described(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    place = await make_place(memory_store, clock)
    await place.judged(await place.submit())
    found = await export_board(memory_store, Viewer(place.ada), "vectoradd")
    cases = [
        row
        async for each, stored in exported_evaluations(memory_store, found)
        for row in dataset.case_rows(each, stored)
    ]
    tables = (
        (dataset.SUBMISSIONS, list(dataset.submission_rows(found))),
        (dataset.RESULTS, list(dataset.result_rows(found))),
        (dataset.CASES, cases),
    )
    for table, rows in tables:
        assert rows
        assert {tuple(row) for row in rows} == {tuple(each.name for each in table.fields)}
    timed = next(row for row in cases if row["time_ns"] is not None)
    assert all(isinstance(each, list) for each in json.loads(str(timed["samples_ns"])))
    text = dataset.codebook("vectoradd", 1, "Sources: none.")
    assert all(f"| `{field.name}` |" in text for table, _ in tables for field in table.fields)
