"""Finds and imports plugins: each module of a plugin package is one plugin."""

import importlib
import pkgutil
from types import ModuleType


def names(package: ModuleType) -> tuple[str, ...]:
    """The names of a package's plugins, sorted; a module with a leading underscore is no plugin."""
    modules = pkgutil.iter_modules(package.__path__)
    return tuple(sorted(each.name for each in modules if not each.name.startswith("_")))


def load(package: ModuleType, name: str) -> ModuleType:
    """Import one plugin; LookupError with the existing names if there is none."""
    if name not in names(package):
        raise LookupError(
            f"no {name!r} in {package.__name__}; there are {', '.join(names(package))}"
        )
    return importlib.import_module(f"{package.__name__}.{name}")


def load_all(package: str) -> tuple[ModuleType, ...]:
    """Import every plugin of the named package."""
    parent = importlib.import_module(package)
    return tuple(load(parent, name) for name in names(parent))
