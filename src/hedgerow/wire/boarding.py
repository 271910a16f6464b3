"""What a station signs when a study boards: the same bytes at both ends.

A train is a study as it was sent: its text, and what was told beside it (coordinator, stations, columns, version), packed.
"""

from __future__ import annotations

from hedgerow.crypto.messages import digest


def train_digest(text: bytes, told: bytes) -> bytes:
    """Stands for all of a train; 32 bytes."""
    return digest("train", text, told)


def decision(train: bytes, status: str) -> bytes:
    """What is signed: the digest of a train, and what was decided about it."""
    return digest("train decision", train, status.encode())
