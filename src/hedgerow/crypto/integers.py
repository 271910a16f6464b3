"""Whole numbers of thousands of bits: powers, tables of powers, products of powers, primes.

`gmpy2` does the arithmetic where it is installed, Python's own numbers otherwise, with the same results, about eight times
slower. Neither is constant in time: who can time these computations closely, on the same machine, may learn from it.
"""

from __future__ import annotations

import math
import secrets
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

SMALL = 2**16

_WINDOW = 7  # bits of an exponent that one entry of a table covers
_HALF = 1 << (_WINDOW - 1)
_CANDIDATES = 1 << 14
_ROUNDS = 40


@lru_cache(maxsize=1)
def library() -> Any:
    """Return the module `gmpy2`, or None."""
    try:
        import gmpy2
    except ImportError:
        return None
    return gmpy2


def whole(number: int) -> Any:
    """Return the number in the form that is quickest to compute with."""
    gmp = library()
    return number if gmp is None else gmp.mpz(number)


def power(base: Any, exponent: Any, modulus: Any) -> Any:
    """Return base**exponent modulo `modulus`; a negative exponent takes the inverse (ValueError without one)."""
    gmp = library()
    if gmp is None:
        return pow(int(base), int(exponent), int(modulus))
    try:
        return gmp.powmod(base, exponent, modulus)
    except ZeroDivisionError:
        raise ValueError("base is not invertible for the given modulus") from None


def inverse(number: Any, modulus: Any) -> Any:
    """Return the inverse modulo `modulus`; ValueError without one."""
    return power(number, -1, modulus)


def common_divisor(a: Any, b: Any) -> int:
    """Return the greatest common divisor."""
    gmp = library()
    return math.gcd(int(a), int(b)) if gmp is None else int(gmp.gcd(a, b))


def jacobi(a: int, n: int) -> int:
    """Return the Jacobi symbol (a / n) for odd n > 0."""
    a, sign = a % n, 1
    while a:
        twos = (a & -a).bit_length() - 1
        a >>= twos
        if twos % 2 and n % 8 in (3, 5):
            sign = -sign
        if a % 4 == 3 and n % 4 == 3:
            sign = -sign
        a, n = n % a, a
    return sign if n == 1 else 0


class FixedBase:
    """Powers of one base, from a table that grows with the largest exponent asked for.

    The table holds base**(j * 128**i) for j = 1..64; digits above 64 count from the other side, into a denominator.
    """

    def __init__(self, base: Any, modulus: Any) -> None:
        self._modulus = modulus
        self._next = base
        self._rows: list[list[Any]] = []
        self._lock = threading.Lock()

    def power(self, exponent: int) -> Any:
        """Return base**exponent, exponent >= 0."""
        self._reach(exponent.bit_length() // _WINDOW + 1)
        above, below, modulus = whole(1), whole(1), self._modulus
        for row in self._rows:
            if not exponent:
                break
            digit = exponent & (2 * _HALF - 1)
            exponent >>= _WINDOW
            if digit > _HALF:
                digit -= 2 * _HALF
                exponent += 1
                below = below * row[-digit - 1] % modulus
            elif digit:
                above = above * row[digit - 1] % modulus
        return above * inverse(below, modulus) % modulus

    def _reach(self, n_rows: int) -> None:
        """Extend the table to `n_rows` windows."""
        if len(self._rows) >= n_rows:
            return
        with self._lock:
            while len(self._rows) < n_rows:
                row = [self._next]
                for _ in range(_HALF - 1):
                    row.append(row[-1] * self._next % self._modulus)
                self._next = row[-1] * row[-1] % self._modulus
                self._rows.append(row)


def products(bases: Sequence[Any], rows: Sequence[Sequence[int]], modulus: Any) -> list[Any]:
    """Return, for each row of exponents, the product of bases[j]**row[j] modulo `modulus`.

    All bases share the squarings of a row (Straus), all rows share the tables of odd powers, and exponents, which may be
    negative, are written in odd digits with gaps of zeros (the width-w non-adjacent form). The width is the one with the
    fewest multiplications.
    """
    bits = max((abs(k).bit_length() for row in rows for k in row), default=0)
    width = min(range(2, 9), key=lambda w: 2 ** (w - 1) + len(rows) * bits / (w + 1))
    tables: dict[tuple[int, bool], list[Any]] = {}

    def entry(j: int, digit: int) -> Any:
        key = (j, digit < 0)
        if key not in tables:
            first = inverse(bases[j], modulus) if digit < 0 else bases[j]
            square, table = first * first % modulus, [first]
            for _ in range(2 ** (width - 2) - 1):
                table.append(table[-1] * square % modulus)
            tables[key] = table
        return tables[key][abs(digit) // 2]

    results = []
    for row in rows:
        due: list[list[Any]] = [[] for _ in range(bits + 1)]
        for j, exponent in enumerate(row):
            for place, digit in _odd_digits(exponent, width):
                due[place].append(entry(j, digit))
        result = whole(1)
        for factors in reversed(due):
            if result != 1:
                result = result * result % modulus
            for factor in factors:
                result = result * factor % modulus
        results.append(result)
    return results


def _odd_digits(number: int, width: int) -> list[tuple[int, int]]:
    """Return (place, digit) with odd digits |digit| < 2^(width - 1) whose sum of digit * 2^place is the number."""
    digits, place, full = [], 0, 1 << width
    while number:
        zeros = (number & -number).bit_length() - 1
        place, number = place + zeros, number >> zeros
        digit = number & (full - 1)
        if digit >= full // 2:
            digit -= full
        digits.append((place, digit))
        number = (number - digit) >> width
        place += width
    return digits


@lru_cache(maxsize=1)
def small_primes() -> list[int]:
    """Return the odd primes below 2^16."""
    sieve = np.ones(SMALL, bool)
    sieve[:2] = False
    for i in range(2, 256):
        if sieve[i]:
            sieve[i * i :: i] = False
    primes: list[int] = np.flatnonzero(sieve)[1:].tolist()
    return primes


@lru_cache(maxsize=1)
def small_product() -> int:
    """Return the product of the odd primes below 2^16."""
    return math.prod(small_primes())


def probably_prime(number: int) -> bool:
    """Return whether a number is prime, wrong with a chance below 2^-80 where it was not drawn at random."""
    if number < SMALL:
        return number == 2 or number in small_primes()
    gmp = library()
    if gmp is not None:
        return bool(gmp.is_prime(number, _ROUNDS))
    if number % 2 == 0 or math.gcd(number, small_product()) not in (1, number):
        return False
    twos = ((number - 1) & -(number - 1)).bit_length() - 1
    for _ in range(_ROUNDS):
        x = pow(2 + secrets.randbelow(number - 3), (number - 1) >> twos, number)
        if x in (1, number - 1):
            continue
        for _ in range(twos - 1):
            x = x * x % number
            if x == number - 1:
                break
        else:
            return False
    return True


def fresh_prime(bits: int) -> int:
    """Return a random prime p of so many bits whose top two bits are set, with p = 3 modulo 4.

    Neither p - 1, but for its factor 2, nor of course p has a factor below 2^16: so a random square has a large order.
    """
    while True:
        start = secrets.randbits(bits) | 3 << (bits - 2) | 3
        sieve = np.ones(_CANDIDATES, bool)
        for prime in small_primes():
            quarter, rest = pow(4, -1, prime), start % prime
            sieve[-rest * quarter % prime :: prime] = False
            sieve[(1 - rest) * quarter % prime :: prime] = False
        for i in np.flatnonzero(sieve):
            candidate = start + 4 * int(i)
            if candidate.bit_length() == bits and probably_prime(candidate):
                return candidate
