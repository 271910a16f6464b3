"""Engines: where parties run. All give the same numbers as `Loop`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .inprocess import InProcess
    from .loop import Loop
    from .network import Network
    from .post import Post
    from .processes import Processes
    from .ray import Ray
    from .simulate import simulate

__all__ = ["InProcess", "Loop", "Network", "Post", "Processes", "Ray", "simulate"]

lazily(__name__)
