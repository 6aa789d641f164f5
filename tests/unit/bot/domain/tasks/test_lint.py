"""What a task's Python says about itself, read without running it."""

import pytest

from bot.domain.errors import UserError
from bot.domain.tasks.lint import defined_names, parse_python, python_fault, wants_cuda


@pytest.mark.parametrize(
    "code",
    [
        "def f(): ...",
        "class f: ...",
        "f = 1",
        "f: int = 1",
        "from x import g as f",
        "import f",
        "if x:\n    f = 1",
        "try:\n    import f\nexcept ImportError:\n    pass",
        "try:\n    import g\nexcept ImportError:\n    f = 1",
        "try:\n    pass\nfinally:\n    f = 1",
        "f, g = 1, 2",
    ],
)
def test_a_name_bound_at_the_top_is_defined(code: str) -> None:
    assert "f" in defined_names(parse_python(code, "r.py"))


@pytest.mark.parametrize("code", ["def g():\n    f = 1", "f: int", "x.f = 1", "f()"])
def test_a_name_bound_elsewhere_is_not_defined(code: str) -> None:
    assert "f" not in defined_names(parse_python(code, "r.py"))


def test_a_cuda_outside_of_the_guard_counts() -> None:
    code = "a = 'cuda' if torch.cuda.is_available() else 'cpu'\nb = torch.ones(1, device='cuda')"
    assert wants_cuda(parse_python(code, "r.py"))


@pytest.mark.parametrize("code", ["x = (", "x = 1\0", "(" * 5000])
def test_what_does_not_parse_is_refused_with_the_file(code: str) -> None:
    with pytest.raises(UserError, match=r"r\.py:\d"):
        parse_python(code, "r.py")


def test_code_that_is_deep_and_parses_is_read_to_its_end() -> None:
    chain = "if x:\n    pass\n" + "elif x:\n    pass\n" * 1500 + "else:\n    f = 1\n"
    tree = parse_python(chain + "y = 'cuda'\n", "r.py")
    assert "f" in defined_names(tree)
    assert wants_cuda(tree)
    assert not wants_cuda(parse_python(chain, "r.py"))


def test_a_source_that_python_cannot_even_read_is_not_called_a_syntax_error_of_a_line() -> None:
    """Python before 3.11.4 calls a NUL byte no syntax error but raises ValueError."""
    assert python_fault("x = 1\0") in {
        None,
        "source code string cannot contain null bytes (line 1)",
    }
    assert python_fault("x = (") == "'(' was never closed (line 1)"
    assert python_fault("x = 1") is None
