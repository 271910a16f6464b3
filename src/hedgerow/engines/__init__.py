"""Engines: where parties run. All give the same numbers as `Loop`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .acting import Acting
    from .inprocess import InProcess
    from .loop import Loop
    from .message_queue import MessageQueue
    from .network import Network
    from .processes import Processes
    from .ray import Ray
    from .simulate import simulate
    from .simulation import on, records, told, view, watch
    from .standardised import hidden_standardise

__all__ = [
    "Acting",
    "InProcess",
    "Loop",
    "MessageQueue",
    "Network",
    "Processes",
    "Ray",
    "hidden_standardise",
    "on",
    "records",
    "simulate",
    "told",
    "view",
    "watch",
]

lazily(__name__, checks=True)
