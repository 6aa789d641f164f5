"""What the tests of the local Modal deploy: functions that run, hang, raise and die."""

import os
import time
from pathlib import Path

import modal
from typing_extensions import override

APP = "sample"


def pid() -> int:
    """The process of the container."""
    return os.getpid()


def echo(text: str) -> str:
    """The same text."""
    return text


def hang(seconds: float) -> None:
    """Take so long."""
    time.sleep(seconds)


def raise_it(words: str) -> None:
    """Fail with these words."""
    raise ValueError(words)


def die(path: str) -> None:
    """Note that it ran, then end without an answer."""
    with open(path, "a", encoding="utf-8") as file:  # noqa: PTH123 - as short as can be
        file.write("x")
    os._exit(7)


def hang_whatever(_: str) -> None:
    """Take a minute."""
    time.sleep(60)


def pickled(path: str) -> "Touching":
    """What makes a file where it is unpickled."""
    return Touching(path)


class Touching:
    """Runs code of its maker's choice in whoever unpickles it."""

    def __init__(self, path: str) -> None:
        self.path = path

    @override
    def __reduce__(self) -> tuple[object, ...]:
        return touch, (self.path,)


def touch(path: str) -> None:
    """Show that it was run."""
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
