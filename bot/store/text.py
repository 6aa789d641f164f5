"""Makes any text storable: Postgres refuses NUL, and UTF-8 refuses lone surrogates."""

import re

_REFUSED = re.compile("[\x00\ud800-\udfff]")


def storable(text: str) -> str:
    """The text with each NUL shown as U+2400 and each lone surrogate as U+FFFD."""
    return _REFUSED.sub(lambda found: "\u2400" if found[0] == "\0" else "\ufffd", text)
