"""TOML of somebody else is read within limits, and what is written reads back the same."""

import tomllib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hedgerow.core import toml
from hedgerow.core.toml import MOST_BYTES, MOST_PARTS, read_toml, to_toml
from hedgerow.errors import StudyInvalid
from hedgerow.network.station.admitted import read_study, title_of

texts = st.text(st.characters(exclude_categories=["Cs"]))
plain = st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), texts)
values = st.recursive(
    plain, lambda part: st.lists(part, max_size=4) | st.dictionaries(texts, part, min_size=1, max_size=4), max_leaves=12
)


@given(st.dictionaries(texts, values, max_size=5))
@example({"\x7f": "\x7f\x00\x1f\t\r\n\u0085\u2028\ufeff"})
def test_whatever_is_written_reads_back_the_same(found):
    assert read_toml(to_toml(found)) == found


def test_every_character_of_unicode_reads_back():
    every = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    for start in range(0, len(every), 1 << 15):
        piece = every[start : start + (1 << 15)]
        assert tomllib.loads(to_toml({"a": piece}))["a"] == piece
    low = {every[code]: code for code in range(0x3000)}
    assert tomllib.loads(to_toml(low)) == low


def test_tables_in_lists_and_foreign_letters_read_back():
    found = {
        "name": "größe 😀",
        "rows": [{"name": "μ = 1", "set": {"program.mu": 1.0, "partition": {"by": "iid"}}}, {"name": "leer", "set": {}}],
        "published": {"μ = 1": {"FedAvg": 0.5}},
        "flags": [True, False],
        "small": 1e-05,
    }
    assert read_toml(to_toml(found)) == found
    assert read_toml(to_toml({"program": {"printed": {}}, "protection": {}})) == {"program": {"printed": {}}}
    assert read_toml(to_toml({"left out": None, "kept": {"a": None, "b": 1}})) == {"kept": {"b": 1}}


def test_what_toml_has_no_word_for_is_refused():
    with pytest.raises(StudyInvalid, match="surrogate"):
        to_toml({"a": "\ud800"})
    with pytest.raises(StudyInvalid, match="None"):
        to_toml({"a": [1, None]})


@pytest.mark.parametrize(
    "text",
    [
        ".".join("a" * 8000) + " = 1",
        "x = 1\n[" + " . ".join("a" * 8000) + "]",
        "x = { " + ".".join('"a"' for _ in range(8000)) + " = 1 }",
        ".".join("a" * (MOST_PARTS + 1)) + " = 1",
    ],
)
def test_deep_keys_are_refused_before_the_parser_sees_them(monkeypatch, text):
    monkeypatch.setattr(toml.tomllib, "loads", lambda text: pytest.fail("the parser was asked"))
    with pytest.raises(StudyInvalid, match="dotted key of more than 32 parts"):
        read_study(text.encode())
    assert title_of(text.encode()) == ""


def test_keys_of_some_depth_and_long_texts_with_dots_pass():
    assert read_toml(".".join("a" * MOST_PARTS) + " = 1")
    assert read_toml("a = [" + ", ".join(["0.5"] * 1000) + ']\nb = "' + "x... y. " * 1000 + '"')


@pytest.mark.parametrize(
    "text",
    [b"a = " + b"[" * 10_000, b"a = " + b"{a=" * 5_000, b"a = " + b"1" * 5_000, b"\xff", b"a = '", b"#" * (MOST_BYTES + 1)],
)
def test_what_is_no_toml_or_too_long_is_refused_with_a_code(text):
    with pytest.raises(StudyInvalid):
        read_study(text)
    assert title_of(text) == ""
