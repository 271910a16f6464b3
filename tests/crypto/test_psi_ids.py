"""Ids: their normal form, and what is refused at home."""

from __future__ import annotations

import math
import unicodedata

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.crypto.psi.ids import IdRules, domain_bits, list_digest, normal_id, normal_text
from hedgerow.errors import AlignmentRefused, IdsInvalid


@given(st.text(max_size=6))
def test_v8_forms_that_unicode_holds_equal_are_equal(text):
    form = normal_text(text)
    assert normal_text(form) == form
    for other in ("NFC", "NFD", "NFKC", "NFKD"):
        assert normal_text(unicodedata.normalize(other, text)) == form
    assert normal_text(f" {text}\t") == form


def test_v8_jose_composed_and_decomposed_meet():
    one, other = "José Núñez", unicodedata.normalize("NFD", "JOSÉ NÚÑEZ ")
    assert one.encode() != other.encode()
    assert normal_id(one) == normal_id(other)
    assert normal_id(one, "exact") != normal_id(other, "exact")


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (7, b"7"),
        (np.int32(-7), b"-7"),
        (7.0, b"7"),
        ("007", b"007"),
        (" Ab ", b"ab"),
        (b"Ab", b"ab"),
        ("Straße", b"strasse"),
        (10**30, b"1" + b"0" * 30),
    ],
)
def test_forms_by_hand(value, form):
    assert normal_id(value) == form


@pytest.mark.parametrize(
    "value",
    [
        None,
        float("nan"),
        np.nan,
        pd.NA,
        pd.NaT,
        "",
        "   ",
        True,
        1.5,
        2.0**60,
        "x" * 1025,
        "\ud800",
        b"\xff",
        object(),
        ["a"],
        math.inf,
    ],
)
def test_what_is_no_id_is_refused(value):
    with pytest.raises(IdsInvalid) as caught:
        normal_id(value)
    assert caught.value.code == "HR-413"


def test_v7_the_count_of_duplicates_is_in_the_message_at_home():
    with pytest.raises(IdsInvalid, match="63 of 64"):
        IdRules(small_domain="accepted").read(["x"] * 64)


@pytest.mark.parametrize(
    ("ids", "small"),
    [
        ([f"{i:08d}{'TRWAGMYFPDXB'[i % 12]}" for i in range(0, 99999999, 99991)], True),
        ([f"+346{i:08d}" for i in range(0, 99999999, 99991)], True),
        (list(range(1000)), True),
        (["a", "b"], True),
        ([f"user-{i * 2654435761 % 2**32:08x}" for i in range(1000)], False),
        ([f"{i * 0x9E3779B97F4A7C15F39CC0605CEDC834 % 2**128:032x}" for i in range(1000)], False),
    ],
    ids=["numbers of persons", "telephones", "numbers", "letters", "eight letters and digits", "digests"],
)
def test_v13_t18_guessable_ids_are_refused_unless_accepted(ids, small):
    assert IdRules(small_domain="accepted").read(ids) == [normal_id(id) for id in ids]
    if small:
        with pytest.raises(IdsInvalid, match="try them all"):
            IdRules().read(ids)
    else:
        IdRules().read(ids)


def test_v13_the_estimate_by_hand():
    ids = [b"%d" % i for i in range(100, 1000)]
    assert domain_bits(ids) == pytest.approx(3 * math.log2(10))
    assert domain_bits([b"es" + id for id in ids]) == pytest.approx(3 * math.log2(10))


def test_v13_a_list_that_is_too_long_is_refused_at_home():
    with pytest.raises(AlignmentRefused) as caught:
        IdRules(most=3, small_domain="accepted").read(range(4))
    assert not caught.value.asked


def test_v12_a_digest_knows_a_list_in_any_order_and_no_other():
    ids, key = [b"a", b"bc", b"d"], bytes(32)
    assert list_digest(ids, key) == list_digest(ids[::-1], key)
    assert list_digest(ids, key) != list_digest([b"ab", b"c", b"d"], key)
    assert list_digest(ids, key) != list_digest(ids[:2], key)
    assert list_digest(ids, key) != list_digest(ids, b"\1" * 32)
