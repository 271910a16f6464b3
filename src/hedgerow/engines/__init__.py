"""Engines: where parties run. All give the same numbers as `Loop`."""

from .inprocess import InProcess
from .loop import Loop
from .simulate import simulate

__all__ = ["InProcess", "Loop", "simulate"]
