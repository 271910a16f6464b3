"""Addresses and tokens from environment variables, and words that must not be repeated in an error."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import unquote

from hedgerow.errors import SourceUnreadable

if TYPE_CHECKING:
    from ..data_section import DataSection

USERINFO = re.compile(r"//[^/@\s]*@")
"""User and password of an address."""


def variable(name: str, key: str) -> str:
    """Return the value of an environment variable that the configuration names in `key`.

    Raises
    ------
    SourceUnreadable (HR-614)
        It is not set, or empty.
    """
    found = os.environ.get(name, "")
    if not found:
        raise SourceUnreadable(
            f"the environment variable {name!r}, which {key} names, is not set.",
            remedy="Set it where the station is started, for example in its service file.",
        )
    return found


def address(section: DataSection) -> str:
    """Return the url of a source, from the file or from the environment."""
    return section.url if section.url is not None else variable(section.url_env or "", "data.url_env")


def hushed(text: object, secrets: Iterable[str | None]) -> str:
    """Return the first line of a text without secrets, in any of their spellings."""
    said = USERINFO.sub("//***@", (str(text).splitlines() or [""])[0])
    for secret in secrets:
        for spelling in {secret or "", unquote(secret or "")} - {""}:
            said = said.replace(spelling, "***")
    return said[:300]
