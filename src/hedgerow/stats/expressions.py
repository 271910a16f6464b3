"""Expressions in formulas: arithmetic on the values of one record, computed without evaluating code.

A formula may have come over a network. Its expressions are read into Python's syntax tree, and only what is listed here
is computed: numbers, columns, `+ - * / **`, comparisons, a few functions of one argument, columns of splines with known knots
(`hedgerow.stats.splines`), and `missing(x)`, which is 1 where a value is missing and 0 elsewhere. So an expression is
record-wise by construction, and its range follows from the declared ranges of its columns by interval arithmetic.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.data.column import lacking
from hedgerow.errors import FormulaInvalid, suggestion

from .columns import range_of
from .splines import SPLINES, Spline, spline_at

if TYPE_CHECKING:
    from hedgerow.data import Schema

Interval = tuple[float, float]

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "I": lambda x: x,
    "abs": np.abs,
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "sqrt": np.sqrt,
}
"""All but `abs` rise, which `_range_of_call` relies on."""
MISSING = "missing"
"""Of a column alone: whether its value is missing."""
EXACT = frozenset({"I", "abs", "sqrt", MISSING, *SPLINES})
"""Functions whose bits IEEE 754 defines."""
STATEFUL = ("center", "scale", "standardize", "poly", "cs", "cr", "cc", "te", "rank", "lag", "cut", "qcut")
OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
COMPARISONS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


@lru_cache(maxsize=512)
def read(text: str) -> ast.expr:
    """Read an expression, refusing whatever is not arithmetic on one record.

    Raises
    ------
    FormulaInvalid (HR-310)
    """
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise FormulaInvalid(f"{text!r} is not an expression: {error}.", remedy="Write e.g. log(age).") from None
    _check(tree, text)
    return tree


def variables(text: str) -> tuple[str, ...]:
    """Return the columns that an expression reads, in the order of their first mention."""
    return tuple(dict.fromkeys(node.id for node in _named(text)))


def indicated(text: str) -> tuple[str, ...]:
    """Return the columns of which an expression reads whether a value is missing, and nothing else."""
    inside = {node.args[0] for node in ast.walk(read(text)) if asks_missing(node)}  # type: ignore[attr-defined]
    valued = {node.id for node in _named(text) if node not in inside}
    return tuple(name for name in variables(text) if name not in valued)


def missing_in(text: str) -> tuple[str, ...]:
    """Return the columns x of which an expression has `missing(x)`."""
    asked = (node.args[0].id for node in ast.walk(read(text)) if asks_missing(node))  # type: ignore[attr-defined]
    return tuple(dict.fromkeys(asked))


def indicator(name: str) -> str:
    """The expression that is 1 where a column's value is missing."""
    return f"{MISSING}({name})"


def _named(text: str) -> list[ast.Name]:
    """The columns of an expression, in order."""
    calls = {node.func for node in ast.walk(read(text)) if isinstance(node, ast.Call)}
    modules = {node.value for node in calls if isinstance(node, ast.Attribute)}
    names = [node for node in ast.walk(read(text)) if isinstance(node, ast.Name) and node not in calls | modules]
    return sorted(names, key=lambda node: node.col_offset)


def asks_missing(node: ast.AST) -> bool:
    """Whether a node is `missing(x)`."""
    return isinstance(node, ast.Call) and _function(node) == MISSING


def evaluate(text: str, columns: Mapping[str, Array]) -> Array:
    """Compute a column, or an expression of columns, as float64; what is undefined becomes NaN or infinite."""
    if text in columns:
        return np.asarray(columns[text], dtype=np.float64)
    with np.errstate(all="ignore"):
        return np.asarray(_value(read(text), columns), dtype=np.float64)


def evaluate_apart(text: str, columns: Mapping[str, Array]) -> Array:
    """As `evaluate`, with the bits that each record has by itself: functions and powers are called for one number at a time.

    Called for many numbers they may take another instruction for the last of them, so that bits follow from where a record
    stands. All other operations have bits by IEEE 754. A machine's own bits stay what they are for one record.
    """
    if is_arithmetic_text(text):
        return evaluate(text, columns)
    with np.errstate(all="ignore"):
        return np.asarray(_value(read(text), columns, _one_by_one), dtype=np.float64)


def _one_by_one(function: Callable[..., Any], *operands: Any) -> Array:
    """Call a function of numbers for one record of its operands after the other."""
    wide = np.broadcast_arrays(*(np.asarray(one, dtype=np.float64) for one in operands))
    flat = [one.ravel() for one in wide]
    found = [function(*(one[i : i + 1] for one in flat))[0] for i in range(wide[0].size)]
    return np.array(found, dtype=np.float64).reshape(wide[0].shape)


def is_arithmetic(text: str, schema: Schema) -> bool:
    """Whether IEEE 754 defines an expression's bits: sums, products, quotients, roots and comparisons of a record's numbers."""
    return text in schema or is_arithmetic_text(text)


def is_arithmetic_text(text: str) -> bool:
    """The same of a text that is no column's name."""
    nodes = tuple(ast.walk(read(text)))
    called = {_function(node) for node in nodes if isinstance(node, ast.Call)}
    return called <= EXACT and not any(isinstance(node, ast.Pow) for node in nodes)


def interval(text: str, schema: Schema) -> Interval | None:
    """Return a range that holds every value of an expression; `None` where a declared range does not give one."""
    if text in schema:
        return range_of(schema[text])
    with np.errstate(all="ignore"):
        return _range(read(text), schema)


def is_binary(text: str, schema: Schema) -> bool:
    """Whether an expression can only be 0 or 1: a binary column, an integer in [0, 1], a comparison, or missing(x)."""
    if text in schema:
        return schema[text].kind == "binary" or (schema[text].kind == "integer" and range_of(schema[text]) == (0, 1))
    tree = read(text)
    while isinstance(tree, ast.Call) and _function(tree) == "I":
        tree = tree.args[0]
    return isinstance(tree, ast.Compare) or asks_missing(tree)


def _check(node: ast.expr, text: str) -> None:
    match node:
        case ast.Name() | ast.Constant(value=int() | float()):
            return
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=inner):
            _check(inner, text)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            _check(left, text)
            _check(right, text)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in COMPARISONS:
            _check(left, text)
            _check(right, text)
        case ast.Call(args=[inner], keywords=[]) if _function(node) in FUNCTIONS:
            _check(inner, text)
        case ast.Call(args=[ast.Name()], keywords=[]) if _function(node) == MISSING:
            return
        case ast.Subscript() if spline_at(node) is not None:
            _check(_spline(node)[1], text)
        case ast.Call():
            raise _unknown_function(_function(node), text)
        case _:
            raise FormulaInvalid(
                f"{ast.unparse(node)!r} in {text!r} is not arithmetic on columns.",
                remedy="Use numbers, columns, + - * / **, one comparison, and " + ", ".join(sorted(FUNCTIONS)) + ".",
            )


def _spline(node: ast.AST) -> tuple[Spline, ast.expr]:
    """A column of a spline that passed the check, and the expression inside."""
    found = spline_at(node)
    assert found is not None, "it was read before"
    return found


def _function(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="np"), attr=name):
            return name
        case other:
            return ast.unparse(other)


def _unknown_function(name: str, text: str) -> FormulaInvalid:
    if name in STATEFUL:
        return FormulaInvalid(
            f"{name}(...) in {text!r} needs all records at once, and a party has only its own.",
            remedy="To centre or scale, use hr.stats.standardise(federation, columns) and the plain column.",
        )
    if name in SPLINES:
        return FormulaInvalid(
            f"{name}(...) in {text!r} is several columns, and stands inside an expression.",
            remedy="Write it as a term of its own, or by a colon: rcs(age, [30, 45, 60]):sex.",
        )
    if name == MISSING:
        return FormulaInvalid(f"{text!r} asks what is missing of an expression.", remedy="Write missing(x) of a column.")
    if name in FUNCTIONS or name == "C":
        return FormulaInvalid(
            f"{text!r} calls {name} with more than one argument, or inside an expression.",
            remedy="Write log(age), or C(group) as a term of its own.",
        )
    return FormulaInvalid(f"{name!r} in {text!r} is not a function.", remedy=suggestion(name, (*FUNCTIONS, *SPLINES, MISSING)))


def _at_once(function: Callable[..., Any], *operands: Any) -> Any:
    return function(*operands)


def _value(node: ast.AST, columns: Mapping[str, Array], call: Callable[..., Any] = _at_once) -> Any:
    """The value of a node; `call(function, *operands)` calls functions and powers."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return np.float64(value)  # Python's integers would grow without end in 9 ** 9 ** 9 ** 9
        case ast.Name(id=name):
            return np.asarray(columns[name], dtype=np.float64)
        case ast.UnaryOp(op=op, operand=inner):
            return _value(inner, columns, call) * (-1 if isinstance(op, ast.USub) else 1)
        case ast.BinOp(left=left, op=op, right=right):
            sides = _value(left, columns, call), _value(right, columns, call)
            return call(operator.pow, *sides) if isinstance(op, ast.Pow) else OPERATORS[type(op)](*sides)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            told = COMPARISONS[type(op)](_value(left, columns, call), _value(right, columns, call))
            return np.asarray(told, dtype=np.float64)  # sums of booleans would be a logical or
        case ast.Subscript():
            spline, inner = _spline(node)
            return spline.value(_value(inner, columns, call))
        case ast.Call(args=[ast.Name(id=name)]) if asks_missing(node):
            return _missing(name, columns)
        case ast.Call(args=[inner]):
            name, value = _function(node), _value(inner, columns, call)
            return FUNCTIONS[name](value) if name in EXACT else call(FUNCTIONS[name], value)
    raise AssertionError(f"{ast.dump(node)} passed the check")


def _missing(name: str, columns: Mapping[str, Array]) -> Array:
    """Ones where a value is missing: as parties have noted it, or of numbers as they were admitted."""
    if (noted := indicator(name)) in columns:
        return np.asarray(columns[noted], dtype=np.float64)
    return lacking(np.asarray(columns[name])).astype(np.float64)


def _range(node: ast.AST, schema: Schema) -> Interval | None:
    match node:
        case ast.Constant(value=int() | float() as value):
            return (float(value), float(value))
        case ast.Name(id=name):
            return range_of(schema[name])
        case ast.Compare():
            return (0.0, 1.0)
        case ast.Call() if asks_missing(node):
            return (0.0, 1.0)
        case ast.Subscript():
            spline, inner = _spline(node)
            found = _range(inner, schema)
            return found and _hull(np.array(spline.range_of(*found)))
        case ast.UnaryOp(op=op, operand=inner):
            sign = -1.0 if isinstance(op, ast.USub) else 1.0
            found = _range(inner, schema)
            return found and _hull(sign * np.array(found))
        case ast.BinOp(left=left, op=op, right=right):
            first, second = _range(left, schema), _range(right, schema)
            return first and second and _range_of_operation(op, first, second)
        case ast.Call(args=[inner]):
            found = _range(inner, schema)
            return found and _range_of_call(_function(node), found)
    raise AssertionError(f"{ast.dump(node)} passed the check")


def _range_of_operation(op: ast.operator, first: Interval, second: Interval) -> Interval | None:
    if isinstance(op, ast.Pow):
        if second[0] != second[1]:
            return None
        turning = [0.0] if first[0] < 0 < first[1] else []
        return _hull(np.array([*first, *turning]) ** second[0])
    if isinstance(op, ast.Div) and second[0] <= 0 <= second[1]:
        return None
    return _hull(OPERATORS[type(op)](np.array(first)[:, None], np.array(second)))


def _range_of_call(name: str, found: Interval) -> Interval | None:
    turning = [0.0] if name == "abs" and found[0] < 0 < found[1] else []
    return _hull(FUNCTIONS[name](np.array([*found, *turning])))


def _hull(values: Array) -> Interval | None:
    low, high = float(values.min()), float(values.max())
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None
