"""What parties and aggregators give one another, taken apart: lengths first, then words, then sums of what all told."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import KeyInvalid, MessageRefused, SettingsInvalid

from .field import Field

NONCE_BYTES = 16


def cut(raw: bytes, length: int) -> list[bytes]:
    """Return pieces of a length."""
    return [raw[at : at + length] for at in range(0, len(raw), length)]


def expected(what: str, raw: bytes, due: int) -> None:
    """Refuse bytes of another length."""
    if len(raw) != due:
        raise MessageRefused(f"{what} of {len(raw)} bytes; {due} are due.", remedy="Name the same proof at both ends.")


def keyed(key: bytes, due: int) -> None:
    """Refuse a verification key of another length: an empty one would be known to every party."""
    if len(key) != due:
        raise KeyInvalid(f"a verification key of {len(key)} bytes; it has {due}.", remedy="Agree on one between aggregators.")


def counted(shares: int, proofs: int) -> None:
    """Refuse numbers of shares and proofs that do not fit their bytes."""
    if not 2 <= shares <= 255 or not 1 <= proofs <= 255:
        raise SettingsInvalid(f"{shares} shares and {proofs} proofs.", remedy="2 to 255 shares, 1 to 255 proofs.")


def seeded(nonce: bytes, seeds: Sequence[bytes], own: bytes, due: tuple[int, int, int]) -> None:
    """Refuse a party's nonce and seeds unless there are `due` = (helpers, bytes of a seed, bytes of its own)."""
    helpers, seed_bytes, own_bytes = due
    if len(nonce) != NONCE_BYTES or [len(seed) for seed in seeds] != [seed_bytes] * helpers or len(own) != own_bytes:
        raise SettingsInvalid(
            f"a nonce of {len(nonce)}, seeds of {[len(seed) for seed in seeds]} and own randomness of {len(own)} bytes.",
            remedy=f"{NONCE_BYTES}, {[seed_bytes] * helpers} and {own_bytes} bytes are due.",
        )


def summed(field: Field, tolds: Sequence[Sequence[bytes]], n: int, words: int, length: int) -> tuple[Array, Array]:
    """Return sums of the verifier shares, shape (n, words), that begin what all aggregators told, and whose are well formed.

    `tolds` has a list of n strings of `length` bytes for every aggregator; a malformed one spoils its own report only.
    """
    end = words * field.size
    total, sound = field.zeros((n, words)), np.ones(n, bool)
    for told in tolds:
        shares = field.zeros((n, words))
        for i, letter in enumerate(told):
            try:
                expected("what an aggregator told", letter, length)
                shares[i] = field.decode(memoryview(letter)[:end], words)
            except MessageRefused:
                sound[i] = False
        total = field.add(total, shares)
    return total, sound


def agreed(seeds: Sequence[bytes], states: Sequence[bytes | None], sound: Array) -> Array:
    """Return which sound reports have the joint seed that was used; bool, shape (n,)."""
    same = [state is not None and state == seed for state, seed in zip(states, seeds, strict=True)]
    both: Array = sound & np.array(same, bool)
    return both


def complete(tolds: Sequence[Sequence[bytes]], shares: int, n: int) -> None:
    """Refuse a judgement before all aggregators told of all reports."""
    if [len(told) for told in tolds] != [n] * shares:
        raise MessageRefused(
            f"{[len(told) for told in tolds]} letters of aggregators; {shares} of them tell of {n} reports.",
            remedy="Wait for all of them.",
        )


def described(name: str, **parameters: str | int | float) -> bytes:
    """Return a proof's name and parameters as bytes, the same for the same parameters and for no others."""
    values = {key: value.hex() if isinstance(value, float) else str(value) for key, value in parameters.items()}
    return "\n".join([name, *(f"{key}={values[key]}" for key in sorted(values))]).encode()
