"""Display names of every kind that a table or a message might show wrongly."""

import itertools

LONGEST = 32
NAMES = (
    # look empty
    "\u3164", "\u2800\u2800\u2800", "\u115f", "\u00ad", "\U000e0061\U000e0062",
    # right to left, and overrides of the direction
    "\u05d3\u05d5\u05d3 \u05db\u05d4\u05df", "\u0645\u0631\u064a\u0645", "\u202eecila\u202c",
    "\u2067abc\u2069 1st", "bob \u200f\u05e9",
    # combining marks, and stacks of them
    "e\u0301le\u0300ve", "\u0301\u0301\u0301", "\u0e01\u0e33\u0e19\u0e33",
    "Z\u0335\u0321a\u0334\u0353l\u0338\u031dg\u0337\u0346o\u0336\u035d",
    "i" + "\u0310\u0352\u035b\u0363" * 7,
    # emoji: wide, joined, flags, keycaps
    "\U0001f525\U0001f525\U0001f525", "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466",
    "\U0001f1e9\U0001f1ea", "1\ufe0f\u20e3 st", "\U0001f44d\U0001f3ff",
    # Markdown
    "**bold**", "__under__", "||spoiler||", "`code`", "```", "~~gone~~", "> quote", "# heading",
    "-# small", "[x](http://e.org)", "<http://e.org>", "\\", "*", "_", "a|b|c",
    # mentions, times, commands
    "@everyone", "@here", "<@1>", "<@&1>", "<#1>", "</leaderboard list:1>", "<t:1:R>", "<:a:1>",
    "@everyone @here <@1>",
    # as long as allowed, narrow and wide
    "m" * LONGEST, "\u6587" * LONGEST, "\U0001f9ea" * LONGEST, "\ufdfd" * LONGEST,
    # look like another
    "paypal", "p\u0430ypal", "pa\u200bypal", "PAYPAL", "\uff50\uff41\uff59\uff50\uff41\uff4c",
    # words of the product and of programs
    "podium", "submission #1: passed", "deleted account", "None", "'; drop table people; --",
    "${HOME}", "%s%n", "{0}", "\u26a0\ufe0f Discord rejected part of it",
)  # fmt: skip


def names(count: int) -> tuple[str, ...]:
    """Return this many names, one of each kind first; a number distinguishes repeated ones."""
    spread = NAMES[::5] + tuple(each for n, each in enumerate(NAMES) if n % 5)
    rounds = (f"{name[: LONGEST - 4]} {n}" if n else name for n in range(99) for name in spread)
    return tuple(itertools.islice(rounds, count))
