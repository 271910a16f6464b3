"""What a station signs when a study boards: the same bytes at both ends.

A submission is a study as it was sent: its text, and what was told beside it (coordinator, stations, columns, version), packed.
"""

from __future__ import annotations

from hedgerow.crypto.messages import digest


def submission_digest(text: bytes, description: bytes) -> bytes:
    """Stands for all of a submission; 32 bytes."""
    return digest("submission", text, description)


def known_as(study: str, submission: bytes) -> bytes:
    """Stands for a submission under the name of its letters, 16 bytes in hexadecimal digits: what keys of shares are for.

    Under another name it would be another study to an aggregator, with totals of its own: of two sets of its parties, whose
    difference is a row. Shares for one name are other streams under another.
    """
    return digest("submission by name", study.encode(), submission)


def decision(submission: bytes, status: str) -> bytes:
    """What is signed: the digest of a submission, and what was decided about it."""
    return digest("submission decision", submission, status.encode())
