"""The page of verified clips: its arithmetic, and pictures that load nothing, say what they show, and suit both screens."""

import math
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from hedgerow.crypto.proofs.bounded import PROOFS
from hedgerow.crypto.proofs.field64 import Field64
from hedgerow.crypto.proofs.pine_circuits import PineShape
from hedgerow.errors import SettingsInvalid

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "verified-clips.md").read_text("utf-8")
PICTURES = sorted((DOCS / "images").glob("verified-*.svg"))
Q = 2**64 - 2**32 + 1
ALPHA, CHECKS = 8.7, 128


def exponent(chance):
    """x of a chance 2^x that is no more than this, as the page rounds it."""
    return math.floor(math.log2(chance)) + 1


def test_chances_are_those_of_the_formulas():
    beyond = 2 * math.exp(-(ALPHA**2))
    assert beyond < 2.0**-108
    assert exponent(CHECKS * beyond) == -101
    wrong = 3410 + CHECKS + 3  # bits of the checks at R = 2^20, of v and of u
    assert exponent(((wrong / Q) + 2 * 63 / (Q - 64)) ** 3) == -156
    for size in (100_000, 1_000_000):
        products = -(-size // PineShape(Field64(), size, 2**40).chunk_norm)
        points = 1 << products.bit_length()
        assert exponent(2 * (points - 1) / (Q - points)) == -55
    for said in ("2⁻¹⁰¹", "2⁻¹⁰⁸", "2⁻¹²⁸", "2⁻¹⁵⁶", "2⁻⁵⁵"):
        assert said in PAGE


def test_the_proof_of_the_page_is_that_of_the_code():
    shape = PineShape(Field64(), 100_000, 2**40)
    assert (shape.reach, shape.n_bits) == (2**24, 3410)
    assert (shape.field.modulus, shape.alpha, shape.checks, PROOFS) == (Q, ALPHA, CHECKS, 3)


def test_a_field_of_128_w_squared_leaves_a_wrapped_row_at_most_a_half():
    interval = lambda s_over_w: 2 / (s_over_w * math.sqrt(2 * math.pi)) + 2 * 0.56 * 2 / s_over_w  # noqa: E731
    assert interval(1) == pytest.approx(3.04, abs=0.005)
    assert interval(math.sqrt(128 / 2)) == pytest.approx(0.38, abs=0.001)
    assert interval(math.sqrt(1 / 4000 / 2)) > 1  # the reference's rule bounds nothing


def test_the_largest_bound_is_that_of_the_field():
    PineShape(Field64(), 1000, int(2.0**49.6))
    with pytest.raises(SettingsInvalid):
        PineShape(Field64(), 1000, int(2.0**49.8))
    assert "2²⁴·⁸" in PAGE


def test_pictures_are_there():
    assert len(PICTURES) >= 2
    assert {f"images/{path.name}" for path in PICTURES} == set(re.findall(r"\]\((images/[a-z-]+\.svg)\)", PAGE))


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.stem)
def test_a_picture_loads_nothing_and_knows_light_and_dark(picture):
    text = picture.read_text("utf-8")
    root = ElementTree.fromstring(text)
    assert root.attrib["role"] == "img"
    assert len(root.attrib["aria-label"]) > 100
    assert "prefers-color-scheme: dark" in text
    assert not re.search(r"href=|src=|@import|<script|url\((?!#)", text)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    for one in root.iter():
        if "x" in one.attrib:
            assert 0 <= float(one.attrib["x"]) <= width
            assert 0 <= float(one.attrib["y"]) <= height
