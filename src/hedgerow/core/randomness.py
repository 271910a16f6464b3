"""Named random streams for simulation, operating-system entropy otherwise.

A stream is a function of (seed, round, party, purpose), so results do not depend on the engine, on the order in which
parties answer, or on how many threads run. Without a seed every stream comes from the operating system; that is what a
deployment uses, and the ledger says which of the two it was.

Bytes for noise and secret samples are then those of AES-256 in counter mode, under a key of 256 bits that the operating
system draws for each stream, so for each release. They cannot be told from the system's own by who cannot break the cipher,
and they cost a tenth. A process that is forked from another draws a key of its own; where noise must be what it was before,
as that of a tree, it is refused there.

Source: NIST SP 800-38A, section 6.5.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hedgerow.errors import BudgetInvalid

RESERVED = frozenset({"noise", "cohort", "groups", "turns", "records", "public", "public seed", "threshold"})
"""Purposes of streams that are the waist's and the mechanisms' own."""

Entropy = Callable[[int], bytes]
"""A source of uniform bytes: `entropy(n)` returns n of them."""

_ZEROS = memoryview(bytes(1 << 18))


def keystream(key: bytes) -> Entropy:
    """Return the bytes of AES-256-CTR under a key of 32 bytes, one call's behind another's."""
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import AES256
    from cryptography.hazmat.primitives.ciphers.modes import CTR

    cipher = Cipher(AES256(key), CTR(bytes(16))).encryptor()
    return lambda n: cipher.update(_ZEROS[:n] if n <= len(_ZEROS) else bytes(n))


class Stream:
    """A `numpy.random.Generator` that is made when first used, so that unused streams cost nothing."""

    __slots__ = ("_generator", "_name", "_secret")

    def __init__(self, name: str | None) -> None:
        self._name = name
        self._generator: np.random.Generator | None = None
        self._secret: tuple[int, Entropy] | None = None

    @property
    def generator(self) -> np.random.Generator:
        if self._generator is None:
            name = self._name
            key = os.urandom(16) if name is None else hashlib.blake2b(name.encode(), digest_size=16).digest()
            self._generator = np.random.Generator(np.random.Philox(key=int.from_bytes(key, "little")))
        return self._generator

    def settle(self) -> None:
        """Make the generator now and forget its name, from which the names of other streams could be made."""
        if self._name is not None:
            self._generator, self._name = self.generator, ""

    def entropy(self, n: int) -> bytes:
        """Return n uniform bytes, for noise and secret samples; where the stream has no name, under a key of the system's."""
        if self._name is not None:
            return self.generator.bytes(n)
        if self._secret is None or self._secret[0] != os.getpid():
            self._secret = os.getpid(), keystream(os.urandom(32))
        return self._secret[1](n)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.generator, name)


@dataclass(frozen=True)
class Streams:
    """The source of all randomness of a federation.

    Parameters
    ----------
    seed : int or None
        Simulation seed; `None` draws everything from the operating system.
    """

    seed: int | None = None
    secret: bytes = field(default_factory=lambda: os.urandom(32), init=False, repr=False, compare=False)
    process: int = field(default_factory=os.getpid, init=False, repr=False, compare=False)
    forked: dict[int, bytes] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.seed is not None and (isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0):
            raise BudgetInvalid(f"a seed of {self.seed!r}.", remedy="Give a whole number, or None for the system's entropy.")

    @property
    def source(self) -> str:
        """`seeded` or `system`, as stamped in the ledger."""
        return "system" if self.seed is None else "seeded"

    def stream(self, round: int | str, party: str, purpose: str) -> Stream:
        """Return the generator stream of one party (or `server`) in one round for one purpose.

        `round` is a question's or a cohort's number, or its name where it is of no program's main branch.
        """
        return Stream(None if self.seed is None else f"{self.seed}/{round}/{purpose}/{party}")

    def entropy(self, round: int | str, party: str, purpose: str) -> Entropy:
        """Return the byte source of one party (or `server`) in one round for one purpose."""
        return self.stream(round, party, purpose).entropy

    def recalled(self, round: int | str, party: str, purpose: str) -> Entropy:
        """Return a byte source that begins anew each time it is asked for; without a seed, as long as this object lives.

        Turns are what they were in a process that is forked from this one, so that a party has one; samples of records are
        others, drawn under a key of that process.

        Raises
        ------
        BudgetInvalid (HR-214)
            Noise is recalled in a forked process: another one would add the same.
        """
        if self.seed is not None:
            return self.entropy(round, party, purpose)
        key, process = self.secret, os.getpid()
        if process != self.process and purpose == "records":
            key = self.forked.setdefault(process, os.urandom(32))
        elif purpose != "turns":
            self.refuse_a_fork()
        return keystream(hashlib.blake2b(f"{round}/{purpose}/{party}".encode(), key=key, digest_size=32).digest())

    def refuse_a_fork(self) -> None:
        """Refuse noise that is recalled without a seed in another process than that in which this object was made."""
        if self.seed is None and os.getpid() != self.process:
            raise BudgetInvalid(
                "noise of the process from which this one was forked.",
                remedy="Make the federation in the process that asks: of two that add the same noise, the difference has none.",
            )

    def for_program(self, number: int, purpose: str) -> Stream:
        """Return a stream of the server's own for a program, or refuse one from which the waist draws noise or samples."""
        plain = type(number) is int and type(purpose) is str and "/" not in purpose  # a slash would name another party's stream
        if not plain or purpose in RESERVED or purpose.startswith(("noise of node ", "noise of aggregator ")):
            raise BudgetInvalid(
                f"a program's own randomness for {purpose!r}, by which the waist draws noise or samples.",
                remedy="Name the purpose otherwise: a program that knew the noise could take it off.",
            )
        stream = self.stream(number, "server", purpose)
        stream.settle()
        return stream

    def uniform(self, size: int, round: int | str, party: str, purpose: str) -> np.ndarray:
        """Return `size` uniform floats in [0, 1) with 53 bits each."""
        return uniforms(self.entropy(round, party, purpose), size)


def uniforms(entropy: Entropy, size: int) -> np.ndarray:
    """Return `size` uniform floats in [0, 1) with 53 bits each."""
    words = np.frombuffer(entropy(8 * size), np.uint64)
    return (words >> np.uint64(11)).astype(float) * 2.0**-53
