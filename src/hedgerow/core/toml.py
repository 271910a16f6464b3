"""TOML that somebody else wrote, read within limits; and plain values written as TOML that reads back the same."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from hedgerow.errors import StudyInvalid

MOST_BYTES = 1 << 18
"""Of a text that is read. Studies have a few thousand; the parser takes less than two seconds for the worst of this size."""

MOST_PARTS = 32
"""Of one dotted key. The parser's time grows with their square, and each makes a section within another."""

_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_DEEP = re.compile(rf"(?<![\w-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{MOST_PARTS}}}")


def read_toml(raw: bytes | str, what: str = "the study") -> dict[str, Any]:
    """Read TOML that may be hostile: its size and the depth of its keys are looked at before it is parsed.

    Parameters
    ----------
    what : str
        The text's name in an error.

    Raises
    ------
    StudyInvalid (HR-101)
        It is too long, nested too deep, or no TOML.
    """
    size = len(raw) if isinstance(raw, bytes) else len(raw.encode("utf-8", "surrogatepass"))
    if size > MOST_BYTES:
        raise StudyInvalid(
            f"{what} is a TOML text of {size:,} bytes, and {MOST_BYTES:,} are the most.",
            remedy="Name long lists of values in the data, not in the text.",
        )
    try:
        text = raw.decode("utf-8") if isinstance(raw, bytes) else raw
        if deep := _DEEP.search(text):
            line = text.count("\n", 0, deep.start()) + 1
            raise StudyInvalid(
                f"{what} has in line {line} a dotted key of more than {MOST_PARTS} parts.",
                remedy="No section lies so deep.",
            )
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, UnicodeDecodeError, a number of too many digits
        raise StudyInvalid(f"{what} is no TOML.", remedy=str(error)[:200] + _at(raw, str(error))) from error


def _at(raw: bytes | str, told: str) -> str:
    """The key in the line that an error names, where there is one."""
    found = re.search(r"\(at line (\d+),", told)
    lines = (raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw).split("\n")
    line = lines[int(found[1]) - 1] if found and int(found[1]) <= len(lines) else ""
    key = re.match(rf"[ \t]*({_PART})[ \t]*=", line)
    twice = "; is it there twice?" if "overwrite" in told else ""
    return f": {key[1][:60]}{twice}" if key else ""


def to_toml(values: Mapping[str, Any], prefix: str = "") -> str:
    """Write nested mappings of plain values as TOML; None and empty sections are left out, but not a section's empty tables.

    Raises
    ------
    StudyInvalid (HR-101)
        A text has half of a surrogate pair, which is no character; or a list has None.
    """
    plain = {
        key: value
        for key, value in values.items()
        if value is not None and (not isinstance(value, Mapping) or (prefix and not value))
    }
    lines = [f"{toml_key(key)} = {_value(value)}" for key, value in plain.items()]
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            lines += ["", f"[{prefix}{toml_key(key)}]", to_toml(value, f"{prefix}{toml_key(key)}.")]
    return "\n".join(lines)


def toml_line(key: str, value: Any) -> str:
    """One key and its value on a line, a mapping in braces."""
    return f"{toml_key(key)} = {_value(value)}"


def _value(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{toml_key(key)} = {_value(part)}" for key, part in value.items() if part is not None)
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # inf, -inf, nan
    if value is None:
        raise StudyInvalid("a list holds None, for which TOML has no word.", remedy="Leave it out of the list.")
    return _text(value) if isinstance(value, str) else json.dumps(value)


def toml_key(key: str) -> str:
    """A key as TOML spells it, in quotes where it needs them."""
    bare = key.isascii() and key.replace("_", "").replace("-", "").isalnum()
    return key if bare else _text(key)


def _text(text: str) -> str:
    """A text in quotes, as JSON has it; DEL is escaped besides, which TOML does not take as it is."""
    try:
        text.encode()
    except UnicodeEncodeError:
        remedy = "Write the text in UTF-8."
        raise StudyInvalid(
            f"the text {text[:40]!r} holds half of a surrogate pair, which is no character.", remedy=remedy
        ) from None
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
