"""Tests that a program gets for nothing: the contract of the catalogue, for other people's packages too."""

from .contract import PROMISES, contract
from .subject import Subject
from .wired import Wired

__all__ = ["PROMISES", "Subject", "Wired", "contract"]
