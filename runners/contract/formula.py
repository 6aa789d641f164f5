"""Formulas over the arguments of a case, such as `2*m*n*k`, evaluated without running code."""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from runners.contract.task import ArgValue

MAX_LENGTH = 400
MAX_NODES = 200
MAX_EXPONENT = 64
MAX_VALUE = 1e30

Number = int | float


class FormulaError(ValueError):
    """The formula is not arithmetic, uses an unknown name, or its value is out of bounds."""


def _power(base: Number, exponent: Number) -> Number:
    if not 0 <= exponent <= MAX_EXPONENT:
        raise FormulaError(f"an exponent must be from 0 to {MAX_EXPONENT}")
    if abs(base) ** float(exponent) > MAX_VALUE:
        raise FormulaError(f"the value is above {MAX_VALUE:g}")
    power = base**exponent
    if isinstance(power, int | float):
        return power
    raise FormulaError("the value is a root of a negative number")


_OPERATORS: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Pow: _power,
}
_SIGNS: dict[type[ast.unaryop], Callable[[Number], Number]] = {
    ast.UAdd: lambda a: a,
    ast.USub: lambda a: -a,
}
_FUNCTIONS: dict[str, Callable[[list[Number]], Number]] = {"min": min, "max": max}


@dataclass(frozen=True, slots=True)
class Formula:
    """A parsed formula."""

    text: str
    tree: ast.expr

    def value(self, args: Mapping[str, ArgValue]) -> float:
        """The value for one case as a float; FormulaError if there is none."""
        return float(self.number(args))

    def number(self, args: Mapping[str, ArgValue]) -> Number:
        """The value as int or float, because a float cannot hold every large integer.

        FormulaError if there is none.
        """
        try:
            return _value(self.tree, args)
        except ZeroDivisionError as error:
            raise FormulaError(f"{self.text!r} divides by zero") from error
        except OverflowError as error:
            raise FormulaError(f"{self.text!r} is above {MAX_VALUE:g}") from error


def parse_formula(text: str) -> Formula:
    """Parse `+ - * / // **`, `min`, `max`, numbers, names and parentheses; nothing else."""
    if len(text) > MAX_LENGTH:
        raise FormulaError(f"a formula has at most {MAX_LENGTH} characters")
    try:
        tree = expression_tree(text.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise FormulaError(f"{text!r} is not a formula such as 2*m*n*k") from error
    nodes = list(ast.walk(tree))
    if len(nodes) > MAX_NODES:
        raise FormulaError(f"a formula has at most {MAX_NODES} parts")
    callees = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    for node in nodes:
        if id(node) not in callees:
            _require_arithmetic(node)
    return Formula(text, tree)


def _require_arithmetic(node: ast.AST) -> None:
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float()) | ast.Name() | ast.expr_context():
            return
        case ast.BinOp(op=op) if type(op) in _OPERATORS:
            return
        case ast.UnaryOp(op=op) if type(op) in _SIGNS:
            return
        case ast.unaryop() | ast.operator():
            return
        case ast.Call(func=ast.Name(id="min" | "max"), args=[_, *_], keywords=[]):
            return
        case _:
            pass
    raise FormulaError("a formula has + - * / // **, min(), max(), numbers and argument names")


def _value(node: ast.expr, args: Mapping[str, ArgValue]) -> Number:
    return _bounded(_evaluated(node, args))


def _bounded(number: Number) -> Number:
    """The number if it is within bounds, otherwise FormulaError, also for NaN."""
    if not abs(number) <= MAX_VALUE:
        raise FormulaError(f"the value is above {MAX_VALUE:g}")
    return number


def _evaluated(node: ast.expr, args: Mapping[str, ArgValue]) -> Number:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name):
            return _argument(name, args)
        case ast.UnaryOp(op=sign, operand=operand):
            return _SIGNS[type(sign)](_value(operand, args))
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_value(left, args), _value(right, args))
        case ast.Call(func=ast.Name(id=name), args=values):
            return _FUNCTIONS[name]([_value(value, args) for value in values])
        case _:
            raise FormulaError("not arithmetic")


def _argument(name: str, args: Mapping[str, ArgValue]) -> Number:
    if name not in args:
        known = ", ".join(args) or "none"
        raise FormulaError(f"{name!r} is no argument of this case; it has: {known}")
    value = args[name]
    if not isinstance(value, int | float):
        raise FormulaError(f"the argument {name!r} is {value!r}, not a number")
    return value


_ATTEMPTS = 20


def module_tree(text: str) -> ast.Module:
    """The syntax tree of a file; raises what `ast.parse` raises."""
    return _tree(text, "exec")  # type: ignore[return-value]


def expression_tree(text: str) -> ast.expr:
    """The syntax tree of one expression; raises what `ast.parse` raises."""
    return _tree(text, "eval").body  # type: ignore[attr-defined,no-any-return]


def _tree(text: str, mode: Literal["exec", "eval"]) -> ast.AST:
    """Parse, safe in any thread.

    CPython 3.11 has one recursion counter for the trees of all threads. If a garbage collection
    switches between two threads that build trees, `ast.parse` raises SystemError
    (github.com/python/cpython/issues/106905). This function then tries again.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return ast.parse(text, mode=mode)
        except SystemError:
            continue
    return ast.parse(text, mode=mode)
