"""A submission as a Python module, in the candidate."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from runners.languages import InvalidSubmissionError


def imported(folder: Path, file_name: str, **names: Any) -> ModuleType:  # noqa: ANN401 - any
    """The module of a file in the candidate's folder, from which it can import its neighbours.

    `names` are in it already, as if it had imported them.
    Whatever the import raises passes through: it is the submission's own failure.
    """
    sys.path.insert(0, str(folder))
    name = Path(file_name).stem
    spec = importlib.util.spec_from_file_location(name, folder / file_name)
    if spec is None or spec.loader is None:
        raise InvalidSubmissionError(f"{file_name} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    vars(module).update(names)
    spec.loader.exec_module(module)
    return module
