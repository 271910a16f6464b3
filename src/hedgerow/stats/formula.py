"""Formulas: from `y ~ a + b:C(c)` to terms. Only syntax is left to `formulaic`; nothing in a formula is evaluated."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby, product
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.errors import FormulaInvalid, MissingColumn, NotBinary, suggestion

from .columns import levels_of
from .expressions import indicated, indicator, interval, missing_in, variables
from .factors import Factor, Levels, Number, Term
from .splines import spline_at

if TYPE_CHECKING:
    from hedgerow.data import Column, Schema

_DOT = re.compile(r"(?<![\w.])\.(?![\w.])")
_ALONE = re.compile(r"[\s\d.]*")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m|⧛\[[0-9;]*m|⧚")


def read_formula(
    formula: str, schema: Schema, aside: Sequence[str] = (), *, classes: bool = False
) -> tuple[Factor, tuple[Term, ...]]:
    """Read a formula against a schema.

    Parameters
    ----------
    formula : str
        `target ~ terms`, with `+ - : * ** .`, categories by themselves, as `C(c)` or `C(c, Treatment('level'))`, and the
        functions of `hedgerow.stats.expressions`: also `missing(x)`, and the splines `rcs(age, [30, 45, 60, 75])` and
        `bs(age, knots=[40, 60])`, each several columns. `.` stands for every feature that is not the target or set aside.
    schema : Schema
    aside : sequence of str
        Columns that `.` leaves out: offset and weights.
    classes : bool
        Whether the target is a category of any number of levels, of which the first, or the one named, is the reference.

    Raises
    ------
    FormulaInvalid (HR-310), MissingColumn (HR-403), NotBinary (HR-311)
        Before any party is asked.
    """
    target, groups = _parse(formula, schema, aside)
    groups = _spread(formula, groups, schema)
    texts = list(dict.fromkeys(text for group in groups for text in group))
    factors = {text: read_factor(text, schema) for text in texts}
    coded = _coding(groups, factors)
    terms = tuple(Term(tuple(_coded(factors[text], reduced) for text, reduced in group)) for group in coded)
    if not terms:
        raise FormulaInvalid(f"{formula!r} has no columns.", remedy="Add a term, or 1 for the intercept.")
    response = _response(target, schema, classes)
    _refuse_never_missing(formula, (response, *factors.values()), aside, schema)
    return response, terms


def _spread(formula: str, groups: list[list[str]], schema: Schema) -> list[list[str]]:
    """Terms, and for each that has splines the terms of their columns; none twice."""
    columns = [[_spline_columns(text, schema) for text in group] for group in groups]
    n = sum(math.prod(map(len, group)) for group in columns)
    if n > MOST_TERMS:
        raise FormulaInvalid(
            f"{formula!r} has {n} terms, and {MOST_TERMS} are the most.", remedy="Take fewer knots or products."
        )
    return [list(one) for one in dict.fromkeys(one for group in columns for one in product(*group))]


def _spline_columns(text: str, schema: Schema) -> tuple[str, ...]:
    """The columns of a spline, B-splines between the ends of the declared range; anything else is itself."""
    try:
        found = None if text in schema else spline_at(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError):
        return (text,)
    if found is None or found[0].column is not None:
        return (text,)
    spline = found[0]
    if spline.kind == "bs" and spline.ends is None:
        for name in variables(spline.of):
            _column(name, schema)
        ends = interval(spline.of, schema)
        if ends is None:
            raise FormulaInvalid(
                f"{text!r} lies between the ends of the declared range, and {spline.of} declares none.",
                remedy="Declare it: table.declare(age=(18, 90)); or write bs(age, knots=[40, 60], range=[18, 90]).",
            )
        spline = replace(spline, ends=ends)
        if any(not ends[0] < knot < ends[1] for knot in spline.knots):
            raise FormulaInvalid(
                f"{text!r} has knots outside of the declared range [{ends[0]:g}, {ends[1]:g}].", remedy="Name knots inside."
            )
    return tuple(one.text for one in spline.columns)


def _refuse_never_missing(formula: str, factors: Sequence[Factor], aside: Sequence[str], schema: Schema) -> None:
    """Refuse `missing(x)` where it is zero in every record that the model keeps."""
    texts = [one.text for one in factors if isinstance(one, Number) and one.text not in schema]
    asked = {name for text in texts for name in missing_in(text)}
    valued = {name for one in factors for name in one.reads(schema) if name not in _only_asked(one, schema)} | set(aside)
    for name in sorted(asked):
        if not schema[name].optional or name in valued:
            why = (
                "no value of it may be missing"
                if not schema[name].optional
                else "records that lack it are left out, since it is read"
            )
            raise FormulaInvalid(
                f"{indicator(name)} in {formula!r} is zero in every record: {why}.",
                remedy=f"Leave it out, or read no value of {name}: {indicator(name)} stands for it.",
            )


def _only_asked(factor: Factor, schema: Schema) -> tuple[str, ...]:
    return indicated(factor.text) if isinstance(factor, Number) and factor.text not in schema else ()


def read_number(text: str, schema: Schema) -> Number:
    """Read a column or expression that must be a number, such as an offset.

    Raises
    ------
    FormulaInvalid (HR-310), MissingColumn (HR-403)
    """
    factor = read_factor(text, schema)
    if isinstance(factor, Levels):
        raise FormulaInvalid(f"{text!r} is a category, not a number.", remedy="Name a column of numbers.")
    return factor


def _parse(formula: str, schema: Schema, aside: Sequence[str]) -> tuple[str, list[list[str]]]:
    """Return the text of the target, and of the factors of every term (none for the intercept)."""
    from formulaic import Formula
    from formulaic.errors import FormulaicError

    left_out = _words(formula.partition("~")[0]) | set(aside)
    dot = [name for name in schema.features if not schema[name].shape and name not in left_out]
    context = {"__formulaic_variables_available__": dot}
    if not dot and _DOT.search(formula):
        raise FormulaInvalid(f"`.` in {formula!r} stands for no column.", remedy="Declare features that are not arrays.")
    try:
        written = _grouped(formula)
        _refuse_many(written, len(dot))
        parsed = Formula(written, _context=context)
    except RecursionError:
        raise FormulaInvalid(
            f"a formula of {len(formula)} characters is nested too deep.",
            remedy="Write the sum outside of functions and brackets.",
        ) from None
    except (FormulaicError, SyntaxError) as error:
        reason = _COLOURS.sub("", str(error)).splitlines()[0].rstrip(".")
        raise FormulaInvalid(f"{formula!r} cannot be read: {reason}.", remedy="Write `target ~ a + b`.") from None
    if not hasattr(parsed, "lhs") or isinstance(parsed.rhs, tuple):
        raise FormulaInvalid(f"{formula!r} needs one `~` and no `|`.", remedy="Write `target ~ a + b`.")
    targets = [_text(factor) for term in parsed.lhs for factor in term.factors]
    if len(targets) != 1:
        raise FormulaInvalid(f"{formula!r} has {len(targets)} targets.", remedy="Write one before the `~`.")
    return targets[0], [[_text(factor) for factor in term.factors if factor.expr != "1"] for term in parsed.rhs]


TOGETHER = 64
"""Terms of a sum from which on it is written as a sum of sums."""


def _grouped(formula: str) -> str:
    """Write a long sum as a sum of short ones, `(a + b) + (c + d)`, since a parser nests one level for each sign."""
    target, tilde, right = formula.partition("~")
    return target + tilde + _balanced(right) if len(right) >= TOGETHER else formula


def _balanced(text: str) -> str:
    """Put neighbours of one sign into brackets until few are left; numbers (0 and 1 are the intercept) and `.` stay outside."""
    parts = _signed(text)
    if parts is None:
        return text
    parts = [(sign, _inside(part)) for sign, part in parts]
    while len(parts) > TOGETHER:
        shorter = list(_joined(parts))
        if len(shorter) == len(parts):
            break
        parts = shorter
    return "".join(sign + part for sign, part in parts)


def _inside(part: str) -> str:
    """A part that is a sum in brackets, with that sum written shorter."""
    bare = part.strip()
    closes = bare.startswith("(") and _closing(bare) == len(bare) - 1
    return f"({_balanced(bare[1:-1])})" if closes and len(bare) >= TOGETHER else part


def _joined(parts: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Parts of a sum with runs of one sign in brackets, at most so many at a time; `- a - b` is `- (a + b)`."""
    for (_, alone), run in groupby(parts, lambda one: (one[0] or "+", _ALONE.fullmatch(one[1]) is not None)):
        several = list(run)
        if alone:
            yield from several
            continue
        for some in (several[start : start + TOGETHER] for start in range(0, len(several), TOGETHER)):
            yield some[0][0], some[0][1] if len(some) == 1 else f"({'+'.join(part for _, part in some)})"


def _signed(text: str) -> list[tuple[str, str]] | None:
    """The parts of a sum with their signs, none before the first; None where it is more than a sum."""
    cuts = [(place, sign) for place, sign, depth in _outside_quotes(text) if depth == 0 and sign in "+-|~"]
    if any(sign in "|~" for _, sign in cuts):
        return None
    starts, ends = [0, *(place + 1 for place, _ in cuts)], [*(place for place, _ in cuts), len(text)]
    parts = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    return (
        None
        if any(not part.strip() for part in parts[1:])
        else list(zip(["", *(sign for _, sign in cuts)], parts, strict=True))
    )


def _closing(text: str) -> int:
    """Where the first bracket is closed; -1 where it is not."""
    return next((place for place, sign, depth in _outside_quotes(text) if depth == 0 and sign in ")]}"), -1)


def _outside_quotes(text: str) -> Iterator[tuple[int, str, int]]:
    """Places and characters of a text outside of quotes, and in how many brackets they are; a closing one is outside."""
    depth, quote = 0, ""
    for place, sign in enumerate(text):
        if quote or sign in "'\"`":
            quote = ("" if sign == quote else quote) if quote else sign
            continue
        depth += (sign in "([{") - (sign in ")]}")
        yield place, sign, depth


MOST_TERMS = 10_000
"""Terms of a formula, those that are written twice included."""


def _refuse_many(formula: str, dot: int) -> None:
    """Refuse a formula that would be written out to more terms than anybody fits; `dot` is for how many columns `.` stands."""
    from formulaic.parser import DefaultFormulaParser

    n = _count(DefaultFormulaParser(include_intercept=False).get_ast(formula), dot)
    if n > MOST_TERMS:
        raise FormulaInvalid(f"a formula of {n:.3g} terms, and {MOST_TERMS} are the most.", remedy="Write fewer products.")


def _count(node: Any, dot: int) -> float:
    """At most so many terms that a part of a formula stands for."""
    operator = getattr(getattr(node, "operator", None), "symbol", None)
    if operator is None:
        return float(dot) if str(node) == "." else 1.0
    if operator in ("**", "^"):
        base, power = _count(node.args[0], dot), str(node.args[1])
        return min((1.0 + base) ** min(int(power) if power.isdecimal() else 1, 64), math.inf)
    parts = [_count(part, dot) for part in node.args]
    if operator in ("*", "/", ":", "%in%", "in"):
        return math.prod(1.0 + part for part in parts)
    return sum(parts)


def _text(factor: Any) -> str:
    if factor.eval_method.value == "literal":
        raise FormulaInvalid(f"{factor.expr!r} is a number, not a term.", remedy="Multiply inside I(...): I(2 * age).")
    return str(factor.expr)


def _words(text: str) -> set[str]:
    return set(re.findall(r"`([^`]*)`", text)) | set(re.findall(r"\w+", text))


def read_factor(text: str, schema: Schema) -> Factor:
    """Return a factor with all its levels; `_coded` drops the reference."""
    call = _category_call(text) if text not in schema else None
    if call is not None:
        return _levels(text, _column(call[0], schema), call[1])
    if text in schema and _column(text, schema).kind == "category":
        return _levels(text, schema[text], None)
    names = (text,) if text in schema or text.isidentifier() else variables(text)
    asked = () if text in schema or text.isidentifier() else indicated(text)
    for name in names:
        if _column(name, schema).kind == "category" and name not in asked:
            raise FormulaInvalid(f"{name!r} in {text!r} is a category.", remedy=f"Use {name} or C({name}) by itself.")
    if not names:
        raise FormulaInvalid(f"{text!r} names no column.", remedy="Write 1 for the intercept.")
    return Number(text)


def _category_call(text: str) -> tuple[str, str | None] | None:
    """Take `C(c)` or `C(c, Treatment('level'))` apart; `None` for anything else."""
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return None
    match node:
        case ast.Call(func=ast.Name("C"), args=[ast.Name(name)], keywords=[]):
            return name, None
        case ast.Call(func=ast.Name("C"), args=[ast.Name(name), ast.Call(args=[ast.Constant(str(base))])]):
            return name, base
        case ast.Call(func=ast.Name("C"), args=[ast.Name(name), ast.Call(keywords=[ast.keyword(value=ast.Constant(base))])]):
            return name, str(base)
        case ast.Call(func=ast.Name("C")):
            raise FormulaInvalid(f"{text!r} is not understood.", remedy="Write C(c) or C(c, Treatment('level')).")
    return None


def _levels(text: str, column: Column, base: str | None) -> Levels:
    if column.kind not in ("category", "binary"):
        raise FormulaInvalid(
            f"{text!r}: column {column.name!r} is of kind {column.kind!r} and declares no levels.",
            remedy=f'Declare its levels: [data.columns.{column.name}] levels = ["1", "2"], or {{ word = code }}, in the study\n'
            "(or in station.toml, or by read(..., declared=...)). Parties must agree on them before they are asked.",
        )
    labels = levels_of(column)
    if base is not None and base not in labels:
        raise FormulaInvalid(f"{base!r} in {text!r} is not a level.", remedy=suggestion(base, labels))
    first = 0 if base is None else labels.index(base)
    order = [first, *(code for code in range(len(labels)) if code != first)]
    return Levels(text, column.name, tuple(order), tuple(labels[code] for code in order), full=True)


def _coded(factor: Factor, reduced: bool) -> Factor:
    return factor.without_reference() if reduced and isinstance(factor, Levels) else factor


def _coding(groups: list[list[str]], factors: dict[str, Factor]) -> list[list[tuple[str, bool]]]:
    """Decide by `formulaic`, on made-up columns, which categories drop their reference level in which term."""
    import pandas
    from formulaic import ModelSpec, SimpleFormula
    from formulaic.parser.types import Factor as Part
    from formulaic.parser.types import Term as Parts

    stand_in = {text: f"f{i}" for i, text in enumerate(factors)}
    text_of = {name: text for text, name in stand_in.items()}
    frame = pandas.DataFrame(
        {
            stand_in[text]: pandas.Categorical.from_codes([0, 1], ["a", "b"]) if isinstance(factor, Levels) else np.zeros(2)
            for text, factor in factors.items()
        },
        index=range(2),
    )
    parts = [
        Parts([Part(stand_in[text], eval_method="lookup") for text in group] or [Part("1", eval_method="literal")])
        for group in groups
    ]
    structure = ModelSpec.from_spec(SimpleFormula(parts, _ordering="none")).get_model_matrix(frame).model_spec.structure
    return [
        [(text_of[part.factor.expr], bool(part.reduced)) for part in scoped.factors]
        for term in structure
        for scoped in term.scoped_terms
    ]


def _response(target: str, schema: Schema, classes: bool) -> Factor:
    factor = read_factor(target, schema)
    if classes and isinstance(factor, Number):
        raise FormulaInvalid(
            f"target {target!r} is a number, not a category.",
            remedy="Declare it a category with levels in the schema; or use logistic_regression or linear_regression.",
        )
    if classes:
        return factor.without_reference()  # type: ignore[union-attr]
    if isinstance(factor, Number):
        return factor
    if len(factor.labels) != 2:
        raise NotBinary(
            f"target {factor.column!r} has {len(factor.labels)} levels.",
            remedy="Logistic regression needs two, linear regression a number. Take multinomial_regression, within a budget\n"
            "stats.private.multinomial, or compare one level with the rest beforehand.",
        )
    return factor.without_reference()


def _column(name: str, schema: Schema) -> Column:
    if name not in schema:
        parties = "Parties are no column: within_sites has an intercept for each of them, and mixed_linear takes (1 | site)."
        remedy = parties if name == "site" else suggestion(name, schema.names)
        raise MissingColumn(f"no column {name!r} in the schema.", remedy=remedy)
    column = schema[name]
    if column.shape:
        raise FormulaInvalid(f"column {name!r} holds arrays of shape {column.shape}.", remedy="Use columns of numbers.")
    if column.role == "id":
        raise FormulaInvalid(f"column {name!r} has role 'id', which is in no formula.", remedy="Leave it out.")
    return column
