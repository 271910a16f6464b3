"""Ids: one public normal form, what is refused at home, and the sizes that lists may have.

    normal form   NFKC, casefold, strip; whole numbers as decimal text          the same at all parties, part of the salt
    refused       missing, empty, longer than 1024 bytes, twice, guessable      HR-413, before a letter is written
    refused       too long, too unequal, too few in common                      HR-246, at every party, by the same numbers

Two forms of one name, as "José" composed and decomposed, do not meet as bytes; in the normal form they do. Nothing else is
mended: a zero at the front, a hyphen, a missing check letter are another id.

Source: Unicode 15, section 3.13 (NFKC_Casefold), Unicode Standard Annex 15.
"""

from __future__ import annotations

import hashlib
import math
import numbers
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import AlignmentRefused, IdsInvalid, SettingsInvalid

from ..cohort import numeric, whole
from ..messages import digest

NORMAL_FORMS = ("nfkc-casefold", "exact")
LONGEST_ID = 1024
"""Bytes of an id."""

SMALL_DOMAIN_BITS = 40
"""Ids of fewer than two to so many possible values can be tried one by one."""

_LOOKED_AT = 10_000  # ids from which the number of possible values is estimated
_ENOUGH = 20  # ids among which a place that never changes is held to be fixed


@dataclass(frozen=True)
class IdRules:
    """What lists of ids must be, the same at all parties.

    Attributes
    ----------
    least : int
        Fewest people in common.
    most : int
        Longest list.
    ratio : float
        The longest list may be so many times as long as the shortest.
    normal : str
        "nfkc-casefold", or "exact" for text as it stands.
    small_domain : str
        "refused", or "accepted" where ids may have fewer than 2^40 possible values.
    """

    least: int = 10
    most: int = 2_000_000
    ratio: float = 100.0
    normal: str = "nfkc-casefold"
    small_domain: str = "refused"

    def __post_init__(self) -> None:
        whole(least=self.least, most=self.most)
        numeric(ratio=self.ratio)
        if self.least < 0 or not 1 <= self.most < 2**31 or not 1 <= self.ratio <= 2**31:
            raise SettingsInvalid(
                f"least={self.least}, most={self.most}, ratio={self.ratio}.",
                remedy="`least` is not negative, `most` is at least 1, and `ratio` at least 1.",
            )
        if self.normal not in NORMAL_FORMS or self.small_domain not in ("refused", "accepted"):
            raise SettingsInvalid(
                f"normal={self.normal!r}, small_domain={self.small_domain!r}.",
                remedy='normal is "nfkc-casefold" or "exact"; small_domain is "refused" or "accepted".',
            )

    def read(self, values: Sequence[Any] | Array) -> list[bytes]:
        """Return a column of ids in the normal form, in its order.

        Parameters
        ----------
        values : sequence of n
            Text or whole numbers; a float that is whole counts as one.

        Raises
        ------
        IdsInvalid (HR-413)
            An id is missing, empty, too long or twice, or ids are guessable. The message stays with the party.
        """
        ids = [normal_id(value, self.normal) for value in values]
        doubles = len(ids) - len(set(ids))
        if doubles:
            raise IdsInvalid(
                f"{doubles} of {len(ids)} ids are there already, in the form {self.normal!r}.",
                remedy="Bring the rows of an id together in one, or leave all but one out.",
            )
        if len(ids) > self.most:
            raise AlignmentRefused(
                f"a list of {len(ids)} ids, where {self.most} are the most.", remedy="Raise `most`.", asked=False
            )
        bits = domain_bits(ids) if ids and self.small_domain == "refused" else math.inf
        if bits < SMALL_DOMAIN_BITS:
            raise IdsInvalid(
                f"ids look like one of about 2^{bits:.0f} possible values; whoever takes part can try them all.",
                remedy='Say small_domain="accepted" where all parties are trusted not to make up ids.',
            )
        return ids

    def check_sizes(self, sizes: Mapping[str, int]) -> None:
        """Return if lists of these lengths may be aligned; refuse (HR-246) otherwise, at all parties alike."""
        longest, shortest = max(sizes.values()), min(sizes.values())
        if longest > self.most:
            reason = f"a list of {longest} ids, where {self.most} are the most"
        elif longest > self.ratio * max(shortest, 1):
            reason = f"lists of {shortest} and {longest} ids, where one may be {self.ratio:g} times as long as another"
        elif shortest < self.least:
            reason = f"a list of {shortest} ids cannot have {self.least} in common with another"
        else:
            return
        raise AlignmentRefused(f"{reason}.", remedy="Raise `most` or `ratio`, or align larger lists.")

    def check_common(self, common: int) -> None:
        """Return if so many people in common are enough; refuse (HR-246) otherwise."""
        if common < self.least:
            raise AlignmentRefused(
                f"{common} people are in all lists, where {self.least} are the fewest.",
                remedy="Nobody has learned who they are. Align larger lists.",
            )

    @property
    def digest(self) -> bytes:
        """32 bytes by which parties see that their rules are the same."""
        return digest("id rules", f"{self.least}/{self.most}/{float(self.ratio)!r}/{self.normal}".encode())


def normal_id(value: Any, normal: str = "nfkc-casefold") -> bytes:
    """Return one id in the normal form, as UTF-8; refuse (HR-413) what is no id."""
    if isinstance(value, bool | np.bool_):
        raise _no_id("a truth value")
    if isinstance(value, numbers.Integral):
        return str(int(value)).encode()
    if isinstance(value, float | np.floating):
        if math.isnan(value):
            raise _no_id("missing")
        if not float(value).is_integer() or abs(float(value)) >= 2**53:
            raise _no_id("a number that is not whole, or too large to be exact")
        return str(int(value)).encode()
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        raise _no_id("missing")
    try:
        text = value.decode() if isinstance(value, bytes) else value
        if not isinstance(text, str):
            raise _no_id(f"a {type(value).__name__}")
        form = normal_text(text) if normal == "nfkc-casefold" else text
        encoded = form.encode()
    except UnicodeError:
        raise _no_id("no Unicode text") from None
    if not encoded or len(encoded) > LONGEST_ID:
        raise _no_id("empty" if not encoded else f"{len(encoded)} bytes long, where {LONGEST_ID} are the most")
    return encoded


def normal_text(text: str) -> str:
    """Return text in the form NFKC_Casefold, without blanks around it."""
    if text.isascii():
        return text.strip().lower()
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", text).casefold())
    return unicodedata.normalize("NFKC", folded.casefold()).strip()


def domain_bits(ids: Sequence[bytes]) -> float:
    """Estimate, from a list of ids, the logarithm to base 2 of how many values such an id may have.

    Each place counts the characters of the kinds that are seen there: 10 digits, 26 letters, 32 signs, 1000 others; a place
    that is the same in 20 ids or more counts nothing. Real ids have fewer values than that: names are not random letters.
    """
    texts = [ids[i].decode("utf-8", "replace") for i in range(0, len(ids), -(-len(ids) // _LOOKED_AT))]
    bits = 0.0
    for place in range(max(map(len, texts))):
        seen = {text[place] for text in texts if len(text) > place}
        if len(seen) > 1 or len(texts) < _ENOUGH:
            kinds = {_kind(character) for character in seen}
            bits += math.log2(sum(kinds))
        if bits >= SMALL_DOMAIN_BITS:
            break
    return bits


def list_digest(ids: Sequence[bytes], key: bytes) -> bytes:
    """Return 32 bytes that stand for a list, whatever its order, under a key that stays with the party, as the digest does.

    A station that has aligned a list for a study knows by it that the list is still the same; two lists that differ by a
    person would tell of that person.
    """
    state = hashlib.blake2b(key=key, digest_size=32, person=b"hedgerow list")
    for id in sorted(ids):
        state.update(len(id).to_bytes(4, "little") + id)
    return state.digest()


def _kind(character: str) -> int:
    """Return how many characters are of one's kind."""
    if not character.isascii():
        return 1000
    return 10 if character.isdigit() else 26 if character.isalpha() else 32


def _no_id(what: str) -> IdsInvalid:
    return IdsInvalid(f"an id is {what}.", remedy="Give each row an id: text, or a whole number.")
