"""Formulas that choose records: whether a term is about so few of them that its sums are nearly theirs.

    I((age >= 89) * dose)     adds up the doses of those of 89 years and more
    abs(age - 89) + age - 89  is zero below 89
    town:dose                 adds up the doses of each town

What chooses is a comparison, `missing(x)`, a spline's knot, the sign of what a root, a logarithm or an absolute value is of,
and in a product a column of zeros and ones or a category. The records that agree in all that one term is chosen by are a cell;
so are those that agree in all comparisons of the same columns, and those for which just one of two comparisons holds, since
sums over whole terms can be subtracted. A cell is to be empty, or of `least` records or more. Besides, a term of an expression
differs from zero, by more than 1e-9 of its largest value, for none or for so many. Comparisons that hold for all records or
for none, or for the same records as others or for the rest, are no further ones; a formula of more than 256 that differ is not
answered.

Not found are other ways to make most records count for little, such as high powers or large factors; and a category or a column
of zeros and ones that a schema declares may be rare by itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array

from .design import Design
from .expressions import MISSING, evaluate, indicator, missing_in, read, variables
from .factors import Factor, Levels, Number, Term
from .splines import Spline, spline_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Codes = NDArray[np.int64] | NDArray[np.bool_]

SIGNS = ("abs", "sqrt", "log", "log10", "log1p", "log2")
"""Functions that join what differs in its sign: of each part of their argument the sign chooses."""

NOTHING = 1e-9
"""Of the largest value of a term: what is smaller counts as zero."""

MOST_PAIRS = 256
"""Different comparisons of which each pair is looked at; more are refused."""

BLOCK = 8192
"""Records of which the pairs are counted at a time: single precision holds such counts exactly."""


def terms_in(values: Any) -> Iterator[Term]:
    """Every term in the settings of a question, target and offset included."""
    if isinstance(values, Term):
        yield values
    elif isinstance(values, Number | Levels):
        yield Term((values,))
    elif isinstance(values, Design):
        yield from terms_in((*values.terms, values.response))
        if values.offset:
            yield Term((Number(values.offset),))
    elif isinstance(values, partial):
        yield from terms_in((values.args, values.keywords))
    elif isinstance(values, Mapping):
        yield from terms_in(tuple(values.values()))
    elif isinstance(values, tuple | list):
        for part in values:
            yield from terms_in(part)
    elif is_dataclass(values) and not isinstance(values, type):
        yield from terms_in([getattr(values, field.name) for field in fields(values)])


def chooses(term: Term, columns: Mapping[str, Array]) -> bool:
    """Whether a term may be about some of the records alone."""
    return len(term.factors) > 1 or any(_is_expression(factor, columns) for factor in term.factors)


def few_chosen(terms: Sequence[Term], columns: Mapping[str, Array], w: Array, least: int) -> str:
    """What chooses fewer than `least` of the records that have a weight, or leaves out so few, in words; "" for nothing.

    More different comparisons than `MOST_PAIRS` are told as well, since not every pair of them is looked at.

    Parameters
    ----------
    columns : mapping from name to array, shape (n,)
    w : array, shape (n,)
        Weights of the records.
    """
    there = np.flatnonzero(np.asarray(w) > 0)
    names = {name for term in terms for factor in term.factors for name in _reads(factor, columns)}
    held = {name: np.asarray(columns[name])[there] for name in names if name in columns}
    asked = [term for term in terms if chooses(term, held) and all(_is_there(factor, held) for factor in term.factors)]
    by_columns: dict[frozenset[str], dict[str, Codes]] = {}
    for term in asked:
        compared, others = _choosing(term, held)
        chosen = {text: evaluate(text, held) != 0 for text in compared if variables(text)}
        if _few([*chosen.values(), *(_codes(held[name]) for name in others)], least) or _faint(term, held, len(there), least):
            return ":".join(factor.text for factor in term.factors)
        for text, codes in chosen.items():
            by_columns.setdefault(frozenset(variables(text)), {})[text] = codes
    read_in = [read(factor.text) for term in asked for factor in term.factors if _is_expression(factor, held)]
    for text in _bends([one for tree in read_in for one in _splines(tree)], held, least):
        by_columns.setdefault(frozenset(variables(text)), {})[text] = evaluate(text, held) != 0
    for group in by_columns.values():
        if _few(list(group.values()), least):
            return " and ".join(group)
    return _few_between({text: codes for group in by_columns.values() for text, codes in group.items()}, least)


def _few_between(compared: Mapping[str, Codes], least: int) -> str:
    """Two comparisons of which just one holds for a few records, or for all but a few; or that there are too many to look."""
    different: dict[bytes, str] = {}
    for text, codes in compared.items():
        if codes.any() and not codes.all():  # all records or none: it chooses as little as a constant
            different.setdefault(np.packbits(codes ^ codes[0]).tobytes(), text)  # a comparison and its negation are the same
        if len(different) > MOST_PAIRS:
            return f"one pair of more than {MOST_PAIRS} different comparisons, too many to look at each,"
    texts = list(different.values())
    if len(texts) < 2:
        return ""
    n, counts = len(compared[texts[0]]), np.zeros((len(texts), len(texts)))
    for start in range(0, n, BLOCK):
        held = np.stack([compared[text][start : start + BLOCK] for text in texts]).astype(np.float32)
        both, each = held @ held.T, held.sum(1)
        counts += each[:, None] + each - 2 * both
    one, other = np.nonzero(np.triu(np.minimum(counts, n - counts) < least, 1))
    return f"{texts[one[0]]} and {texts[other[0]]}" if len(one) else ""


def _is_expression(factor: Factor, columns: Mapping[str, Array]) -> bool:
    return isinstance(factor, Number) and (factor.text not in columns or _asks_missing(factor.text))


def _asks_missing(text: str) -> bool:
    return text.startswith(f"{MISSING}(")


def _is_there(factor: Factor, columns: Mapping[str, Array]) -> bool:
    """Whether a factor can be computed; one that cannot fails the question, and one without columns tells of no record."""
    names = _reads(factor, columns)
    return bool(names) and names <= columns.keys()


def _reads(factor: Factor, columns: Mapping[str, Array]) -> frozenset[str]:
    if isinstance(factor, Levels):
        return frozenset({factor.column})
    if factor.text in columns:
        return frozenset({factor.text})
    noted = {indicator(name) for name in missing_in(factor.text)} & columns.keys()
    return frozenset(variables(factor.text)) | noted


def _choosing(term: Term, columns: Mapping[str, Array]) -> tuple[list[str], list[str]]:
    """Comparisons by which a term chooses, as texts, and columns of zeros and ones, or categories, that it multiplies by."""
    compared: dict[str, None] = {}
    others: dict[str, None] = {}
    for factor in term.factors:
        if isinstance(factor, Levels):
            others |= {factor.column: None} if len(term.factors) > 1 else {}
        else:
            text = factor.text
            tree = None if text in columns and not _asks_missing(text) else read(text)
            compared |= {} if tree is None else dict.fromkeys(_comparisons(tree))
            if tree is not None and len(term.factors) > 1:  # within a level, cells may be empty
                compared |= {f"({one.of}) >= {knot!r}": None for one in _splines(tree) for knot in one.knots}
            names = _reads(factor, columns) if len(term.factors) > 1 or (tree is not None and _multiplies(tree)) else ()
            others |= {name: None for name in sorted(names) if np.isin(columns[name], (0, 1)).all()}
    return list(compared), list(others)


def _multiplies(tree: ast.AST) -> bool:
    return any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div | ast.Pow) for node in ast.walk(tree))


def _comparisons(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) or (isinstance(node, ast.Call) and _asks_missing(ast.unparse(node))):
            yield ast.unparse(node)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).removeprefix("np.") in SIGNS:
            yield from _signs(node.args[0])
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and not _is_whole(node.right):
            yield from _signs(node.left)


def _signs(tree: ast.AST) -> Iterator[str]:
    names = variables(ast.unparse(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Call) or (isinstance(node, ast.Name) and node.id in names):
            yield f"({ast.unparse(node)}) >= 0"


def _is_whole(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and float(node.value).is_integer()  # type: ignore[arg-type]


def _codes(values: Array) -> Codes:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _few(choices: Sequence[Codes], least: int) -> bool:
    """Whether some of the records, but fewer than `least`, agree in these choices."""
    if not choices or not len(choices[0]):
        return False
    cells = np.zeros(len(choices[0]), np.int64)
    for codes in choices:
        cells = _codes(cells * (int(codes.max()) + 1) + codes)
    counts = np.bincount(cells)
    return len(counts) > 1 and bool((counts < least).any())


def _faint(term: Term, columns: Mapping[str, Array], n: int, least: int) -> bool:
    """Whether a term with an expression is next to zero but for a few records."""
    if not n or not any(_is_expression(factor, columns) for factor in term.factors):
        return False
    sizes = np.abs(term.columns(columns, n))
    counts = (sizes > NOTHING * sizes.max(0, initial=0.0)).sum(0)
    return bool(((counts > 0) & (counts < min(least, n))).any())


def _splines(tree: ast.AST) -> list[Spline]:
    found = (spline_at(node) for node in ast.walk(tree) if isinstance(node, ast.Subscript))
    return [one[0] for one in found if one is not None]


def _bends(splines: Sequence[Spline], columns: Mapping[str, Array], least: int) -> Iterator[str]:
    """Comparisons with the knots of splines; those of the same numbers are taken together, since columns can be combined.

    Of a restricted cubic spline products of columns can differ from zero alone between neighbours of the inner knots, and
    nowhere else where there are enough records in each of these cells (four knots or more). Else all its knots count.
    """
    knots: dict[tuple[str, str], set[float]] = {}
    for one in splines:
        knots.setdefault((one.kind, one.of), set()).update(one.knots)
    for (kind, of), found in knots.items():
        rising = sorted(found)
        if kind == "rcs" and len(rising) >= 4:
            cells = np.searchsorted(rising[1:-1], evaluate(of, columns), side="right")
            if (np.bincount(cells, minlength=len(rising) - 1) >= least).all():
                rising = rising[1:-1]
        yield from (f"({of}) >= {knot!r}" for knot in rising)
