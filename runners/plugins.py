"""Finds plugins: name to module, one file each, with no list to edit."""

import importlib
import pkgutil
from types import ModuleType


def names(package: ModuleType) -> tuple[str, ...]:
    """The modules in a plugin folder, sorted; names with a leading underscore are not plugins."""
    found = pkgutil.iter_modules(package.__path__)
    return tuple(sorted(m.name for m in found if not m.name.startswith("_")))


def load(package: ModuleType, name: str) -> ModuleType:
    """Import one plugin; a LookupError lists the names there are."""
    if name not in names(package):
        raise LookupError(
            f"no {name!r} in {package.__name__}; there are {', '.join(names(package))}"
        )
    return importlib.import_module(f"{package.__name__}.{name}")


def load_all(package: str) -> tuple[ModuleType, ...]:
    """Import every plugin of the package of that name."""
    there = importlib.import_module(package)
    return tuple(load(there, name) for name in names(there))
