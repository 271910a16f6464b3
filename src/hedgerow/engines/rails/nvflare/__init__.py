"""The NVIDIA FLARE rail: a relay that an institution's own FLARE carries, and that sees ciphertext only.

    coordinator -- Unix socket -- RelayController == FLARE, mutual TLS == RelayExecutor -- Unix socket -- station

`NvflareRail` is the coordinator's end; a station listens on a socket of its own. Needs the extra `nvflare`: without it this
package can be imported, and what needs FLARE raises MissingExtra (HR-105).
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from hedgerow.errors import MissingExtra
from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .rail import NvflareRail

__all__ = ["NvflareRail", "need_nvflare"]


def need_nvflare() -> None:
    """Raise MissingExtra (HR-105) where NVIDIA FLARE is not installed."""
    if importlib.util.find_spec("nvflare") is None:
        raise MissingExtra(
            "the NVIDIA FLARE rail needs the package nvflare, 2.9.",
            remedy="pip install 'hedgerow[nvflare]'",
        )


lazily(__name__)
