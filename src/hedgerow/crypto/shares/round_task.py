"""What a round is for: both sides work it out for themselves, so that a share made for anything else is another stream."""

from __future__ import annotations

from dataclasses import dataclass

from ..messages import MessageForm, Octets, digest, exactly

LONGEST_WORDS = 1 << 19
"""Bytes that describe noise, or a proof."""

_FORM = MessageForm(
    "additive task",
    encoding=exactly(32),
    context=Octets(0, 256),
    noise=Octets(0, LONGEST_WORDS),
    proof=Octets(0, LONGEST_WORDS),
)


@dataclass(frozen=True)
class RoundTask:
    """What the shares of a round are made for.

    Attributes
    ----------
    encoding : bytes
        Digest of the encoding, 32 bytes.
    context : bytes
        Digest of model and question.
    noise : bytes
        What each aggregator adds to its total, in words that it reads; empty where it adds nothing.
    proof : bytes
        What every row is proved to be, in words that an aggregator reads; empty where nothing is proved.
    """

    encoding: bytes
    context: bytes
    noise: bytes = b""
    proof: bytes = b""

    @property
    def terms(self) -> bytes:
        """What all shares of a round must have been made for, 32 bytes."""
        return digest("additive terms", self.encoding, self.context, self.noise, self.proof)

    def packed(self) -> bytes:
        """The task as a letter to an aggregator names it."""
        return _FORM.pack(encoding=self.encoding, context=self.context, noise=self.noise, proof=self.proof)

    @classmethod
    def unpacked(cls, raw: bytes) -> RoundTask:
        """Read a task; raise MessageRefused (HR-242) where the bytes are none."""
        return cls(*_FORM.unpack(raw))
