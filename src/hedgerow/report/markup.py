"""HTML that is escaped and balanced by construction: strings are text, and only `tag` makes markup."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

_VOID = {"meta", "br", "hr", "img"}


class Html(str):
    """Markup; every other string is text and is escaped when it meets markup."""

    __slots__ = ()


def tag(name: str, /, *children: str | None, **attributes: str | float | None) -> Html:
    """Return an element; `class_` and `aria_label` become `class` and `aria-label`, `None` is left out."""
    opening = name
    for key, value in attributes.items():
        if value is not None:
            written = value if isinstance(value, str) else f"{value:.5g}"
            opening += f' {key.rstrip("_").replace("_", "-")}="{escape(written)}"'
    if name in _VOID:
        return Html(f"<{opening}>")
    return Html(f"<{opening}>{join(children)}</{name}>")


def join(parts: Iterable[str | None], between: str = "") -> Html:
    """Return the parts one after another, escaping those that are text and leaving out `None`."""
    return Html(between.join(part if isinstance(part, Html) else escape(part) for part in parts if part is not None))
