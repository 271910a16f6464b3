"""Tests that a program gets for nothing: the contract of the catalogue, for other people's packages too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .contract import PROMISES, contract
    from .subject import Subject
    from .wired import Wired

__all__ = ["PROMISES", "Subject", "Wired", "contract"]

lazily(__name__)
