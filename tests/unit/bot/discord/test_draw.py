import re

import pytest
from hypothesis import given
from hypothesis import strategies as some
from rich.cells import cell_len

from bot.discord.draw import FILES, TABLE_COLUMNS, message_drafts
from bot.discord.escaping import MESSAGE_LIMIT
from bot.reports.blocks import Attachment, Block, Column, Link, Log, Report, Table, Text, Tone

TABLE = Table(
    "standings", (Column("who"), Column("time", numeric=True)), (("ada", "9 µs"), ("bob", "10 µs"))
)


def test_a_short_report_is_one_message() -> None:
    report = Report(
        "vectoradd on H100",
        (Text("passed", Tone.GOOD), Text("quiet\nwords", Tone.QUIET), TABLE, Log("said", "hi")),
    )
    (draft,) = message_drafts(report)
    assert draft.content == (
        "**vectoradd on H100**\n🟢 passed\n-# quiet\n-# words\n"
        "**standings**\n```\nwho   time\nada   9 µs\nbob  10 µs\n```\n"
        "**said**\n```txt\nhi\n```"
    )
    assert draft.files == ()


WIDE = Table(
    "workers",
    (Column("worker"), Column("pool"), Column("seen (UTC)"), Column("empty")),
    (("box*", "a pool with a long name", "2026-11-01 12:00", ""), ("b", "", "now", "")),
)


def test_a_table_that_is_too_wide_for_a_phone_is_a_list() -> None:
    (draft,) = message_drafts(Report("r", (WIDE,)))
    assert draft.content == (
        "**r**\n**workers**\n- **box\\*** · pool a pool with a long name · seen <t:1793534400:R>\n"
        "- **b** · seen now"
    )


def test_a_list_has_no_columns_to_explain_and_no_title_if_it_is_empty() -> None:
    found = Table("", TABLE.columns, TABLE.rows, is_list=True)
    (draft,) = message_drafts(Report("r", (found,)))
    assert draft.content == "**r**\n**ada** · 9 µs\n**bob** · 10 µs"


def test_a_long_list_becomes_a_file_with_aligned_columns() -> None:
    found = Table("many", WIDE.columns, WIDE.rows * 40)
    (draft,) = message_drafts(Report("r", (found,)))
    assert "many: see 1-many.txt" in draft.content
    assert draft.files[0].data.decode().splitlines()[0].split()[:2] == ["worker", "pool"]


cells = some.text(max_size=60)


@given(
    columns=some.lists(cells, min_size=1, max_size=9),
    rows=some.lists(some.lists(cells, min_size=9, max_size=9), max_size=9),
)
def test_no_table_is_wider_than_a_phone_has_columns(
    columns: list[str], rows: list[list[str]]
) -> None:
    table = Table(
        "t", tuple(map(Column, columns)), tuple(tuple(row[: len(columns)]) for row in rows)
    )
    for draft in message_drafts(Report("r", (table,))):
        inside = "\n".join(draft.content.split("```")[1::2])
        assert all(cell_len(line) <= TABLE_COLUMNS for line in inside.splitlines())


def test_strong_text_is_a_heading_and_markdown_is_drawn() -> None:
    blocks = (Text("29.14 µs", Tone.STRONG), Text("# Task\n*a* `b`", has_markdown=True))
    (draft,) = message_drafts(Report("r", blocks))
    assert draft.content == "**r**\n### 29.14 µs\n## Task\n*a* `b`"


def test_a_time_of_day_is_written_for_discord_to_show() -> None:
    texts = (
        Text("ended on 2026-11-01 12:00 UTC"), Text("open until 2026-11-01 13:00 CET (12:00 UTC)")
    )  # fmt: skip
    (draft,) = message_drafts(Report("r", texts))
    assert draft.content == "**r**\nended on <t:1793534400:f>\nopen until <t:1793534400:f>"


def test_what_is_long_becomes_a_file_and_nothing_is_cut() -> None:
    text = "line\n" * 5000
    (draft,) = message_drafts(Report("r", (Log("what it printed", text), Text("x" * 3000))))
    assert "what it printed: see 1-what-it-printed.txt" in draft.content
    assert [each.name for each in draft.files] == ["1-what-it-printed.txt", "2-message.txt"]
    assert draft.files[0].data == text.encode()
    assert draft.files[1].data == b"x" * 3000
    assert "x" * 400 + " ...\n-# message: see 2-message.txt" in draft.content


def test_more_files_than_a_message_takes_come_with_further_messages() -> None:
    files = tuple(Attachment(f"{n}.txt", b"x") for n in range(23))
    assert message_drafts(Report("r", files))[0].content == "**r**"  # Discord names the files
    found = message_drafts(Report("r", files))
    assert [len(draft.files) for draft in found] == [FILES, FILES, 3]
    assert [each.name for draft in found for each in draft.files] == [each.name for each in files]


def test_a_link_has_no_preview() -> None:
    (draft,) = message_drafts(Report("r", (Link("docs", "https://example.org/x"),)))
    assert "docs: <https://example.org/x>" in draft.content


@pytest.mark.parametrize("hostile", ["```\n@everyone", "<@17>", "a\x1b[2Jb"])
def test_hostile_text_stays_text(hostile: str) -> None:
    report = Report(
        hostile,
        (Text(hostile), Log(hostile, hostile), Table(hostile, (Column("a"),), ((hostile,),))),
    )
    content = "".join(draft.content for draft in message_drafts(report))
    assert "\x1b" not in content
    assert not re.search(r"(?<!\\)<@17>", "".join(content.split("```")[::2]))
    assert content.count("```") == 4


texts = some.text(max_size=3000)
blocks = some.one_of(
    some.builds(Text, texts, some.sampled_from(Tone)),
    some.builds(Log, texts, texts),
    some.builds(Attachment, some.just("a.txt"), some.binary(max_size=9)),
)


@given(title=texts, found=some.lists(blocks, max_size=30))
def test_every_message_is_within_the_limits(title: str, found: list[Block]) -> None:
    for draft in message_drafts(Report(title, tuple(found))):
        assert 1 <= len(draft.content) <= MESSAGE_LIMIT
        assert len(draft.files) <= FILES


def test_between_the_small_print_of_one_gpu_type_and_the_next_verdict_is_a_free_line() -> None:
    blocks = (Text("passed", Tone.GOOD), Text("machine: A", Tone.QUIET), Text("crashed", Tone.BAD))
    (draft,) = message_drafts(Report("x", blocks))
    assert draft.content == "**x**\n🟢 passed\n-# machine: A\n\n🔴 crashed"


def test_a_line_of_a_diff_that_a_phone_would_break_goes_on_under_the_same_sign() -> None:
    diff = (
        "--- now/description\n+Quickly double every element of a vector of `size` numbers.\n same\n"
    )
    (draft,) = message_drafts(Report("r", (Log("difference", diff, "diff"),)))
    inside = draft.content.split("```diff\n")[1].removesuffix("\n```").splitlines()
    assert inside == [
        "--- now/description",
        "+Quickly double every element of a ",
        "+  vector of `size` numbers.",
        " same",
    ]
    long = f"+{'x ' * 2000}\n"
    (draft,) = message_drafts(Report("r", (Log("difference", long, "diff"),)))
    assert draft.files[0].data.decode().rstrip() == long.rstrip(), "a file is not broken"
