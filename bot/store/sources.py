"""How a submitted text is named and kept: once per SHA-256, as the exact bytes."""

import hashlib


def source_bytes(source: str) -> bytes:
    """The text as bytes; lone surrogates survive, so that what was submitted is what is kept."""
    return source.encode("utf-8", "surrogatepass")


def source_text(data: bytes) -> str:
    """The text that `source_bytes` made into bytes."""
    return data.decode("utf-8", "surrogatepass")


def source_hash(source: str) -> str:
    """The SHA-256 of the text's bytes, in hex."""
    return hashlib.sha256(source_bytes(source)).hexdigest()
