"""The app that the tests of the local Modal deploy: its functions return, hang, raise and exit."""

import os
import time
from pathlib import Path

import modal
from typing_extensions import override

APP = "sample"


def pid() -> int:
    """The process id of the container."""
    return os.getpid()


def echo(text: str) -> str:
    """The same text."""
    return text


def hang(seconds: float) -> None:
    """Sleep for this many seconds."""
    time.sleep(seconds)


def raise_it(words: str) -> None:
    """Raise an exception with this text."""
    raise ValueError(words)


def die(path: str) -> None:
    """Write one byte to the file, then exit without a result."""
    with open(path, "a", encoding="utf-8") as file:  # noqa: PTH123 - as short as can be
        file.write("x")
    os._exit(7)


def hang_whatever(_: str) -> None:
    """Sleep for a minute."""
    time.sleep(60)


def pickled(path: str) -> "Touching":
    """Return an object that creates a file when it is unpickled."""
    return Touching(path)


class Touching:
    """Runs `touch` in the process that unpickles it."""

    def __init__(self, path: str) -> None:
        self.path = path

    @override
    def __reduce__(self) -> tuple[object, ...]:
        return touch, (self.path,)


def touch(path: str) -> None:
    """Create a file as evidence that this was run."""
    Path(path).touch()
    raise ValueError("touched")


def make_app() -> modal.App:
    """The app: `die` is tried three times, the others once."""
    app = modal.App(APP)
    image = modal.Image.debian_slim()
    for function in (pid, echo, hang, raise_it, die):
        app.function(
            image=image,
            single_use_containers=True,
            retries=2 if function is die else 0,
            include_source=False,
        )(function)
    return app
