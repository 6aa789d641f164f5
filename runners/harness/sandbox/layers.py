"""The record of which layers came about, and why others did not."""

from collections.abc import Callable


class Layers:
    """Which layers are active, and the reasons for those that are not."""

    def __init__(self) -> None:
        self.active: list[str] = []
        self.missing: dict[str, str] = {}

    def attempt(self, name: str, step: Callable[[], object]) -> bool:
        """Run one step; a kernel that refuses it costs the layer, not the process."""
        try:
            step()
        except (OSError, ValueError) as error:
            self.missing[name] = str(error)
            return False
        self.active.append(name)
        return True
