"""Rows of pictures: what is drawn is what was given, as files inside the page."""

import base64
import json
import re
import struct
import zlib

import numpy as np
import pytest

from hedgerow.errors import StudyInvalid
from hedgerow.report import Card, Picture, PictureRow, Pictures, Report, card_html, render, report_html

GREY = np.array([[0.0, 0.5, 1.0], [2.0, -1.0, np.nan]])
ROWS = Pictures(
    "Truth beside reconstruction",
    (PictureRow("One <record>", "1 in the sum", ((Picture.of(GREY, "truth", "a digit"), Picture.of(GREY, "9 dB")),)),),
    "A note.",
)


def decoded(png):
    """Pixels of a PNG without filters, by its chunks, whose checksums are right."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(png):
        (length,), kind = struct.unpack(">I", png[at : at + 4]), png[at + 4 : at + 8]
        data = png[at + 8 : at + 8 + length]
        assert zlib.crc32(kind + data) == struct.unpack(">I", png[at + 8 + length : at + 12 + length])[0]
        chunks[kind], at = data, at + 12 + length
    width, height, depth, colour, *_ = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    channels = {0: 1, 2: 3}[colour]
    raw = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + width * channels)
    assert depth == 8
    assert not raw[:, 0].any()
    return raw[:, 1:].reshape(height, width, channels)


def test_a_grey_picture_by_hand():
    found = decoded(Picture.of(GREY).png)
    assert found[..., 0].tolist() == [[0, 128, 255], [255, 0, 0]]


@pytest.mark.parametrize("shape", [(3, 4, 5), (4, 5, 3)])
def test_a_picture_in_colour_has_channels_first_or_last(shape):
    values = np.random.default_rng(0).integers(0, 256, shape)
    found = decoded(Picture.of(values, low=0, high=255).png)
    assert (found == (np.moveaxis(values, 0, -1) if shape[0] == 3 else values)).all()


def test_it_opens_in_another_library():
    image = pytest.importorskip("PIL.Image")
    import io

    assert np.asarray(image.open(io.BytesIO(Picture.of(GREY).png))).tolist() == [[0, 128, 255], [255, 0, 0]]


@pytest.mark.parametrize("shape", [(3,), (2, 2, 2), (2, 2, 2, 2)])
def test_what_is_no_picture_is_refused(shape):
    with pytest.raises(StudyInvalid, match="are no picture"):
        Picture.of(np.zeros(shape))


@pytest.mark.parametrize(
    "pixels", ["", "no base 64!", base64.b64encode(b"no zlib").decode(), base64.b64encode(zlib.compress(bytes(7))).decode()]
)
def test_bytes_that_do_not_fit_are_refused(pixels):
    with pytest.raises(StudyInvalid, match="a picture of 3 x 2"):
        Picture(3, 2, 1, pixels)


def test_a_page_holds_them_with_words_for_who_cannot_see_and_loads_nothing():
    page = Report(title="t", study="s", description="", privacy="", privacy_ok=False, pictures=(ROWS,))
    drawn = render(page)
    assert drawn.count("<img ") == 2
    assert 'alt="One &lt;record&gt;: a digit"' in drawn
    assert 'alt="One &lt;record&gt;: 9 dB"' in drawn
    assert "img-src data:" in drawn
    assert "<script" not in drawn
    assert {one[:5] for one in re.findall(r'src="([^"]*)"', drawn)} == {"data:"}
    first = re.search(r'src="data:image/png;base64,([^"]*)"', drawn).group(1)
    assert decoded(base64.b64decode(first))[..., 0].tolist() == [[0, 128, 255], [255, 0, 0]]
    assert Report.from_json(json.loads(json.dumps(page.to_json()))) == page
    older = {key: value for key, value in page.to_json().items() if key != "pictures"}
    assert Report.from_json(older).pictures == ()
    assert 'class="pictures"' in report_html(page)


def test_a_page_without_pictures_has_no_style_of_theirs():
    assert "pictures" not in render(Report(title="t", study="s", description="", privacy="", privacy_ok=False))


def test_a_card_holds_them_in_a_style_that_reaches_nothing_else():
    found = card_html(Card(kind="inversion", pictures=(ROWS,)))
    assert found.count("<img ") == 2
    style = found[found.index("<style>") : found.index("</style>")]
    assert all(
        rule.strip().startswith((".hedgerow", "border", "@media", "white-space", "<style>"))
        for rule in style.splitlines()
        if "{" in rule
    )


def test_the_limit_is_of_pixels_whatever_their_colour():
    assert Picture.of(np.zeros((256, 256))).width == Picture.of(np.zeros((3, 256, 256))).width == 256
    for shape in ((300, 300), (3, 260, 260)):
        with pytest.raises(StudyInvalid, match="at most 65536 pixels"):
            Picture.of(np.zeros(shape))


def test_an_infinite_range_is_refused():
    for ends in ({"high": np.inf}, {"low": -np.inf}, {"low": np.nan}, {"low": 1.0}):
        with pytest.raises(StudyInvalid, match="are no picture"):
            Picture.of(np.ones((2, 2)), **ends)


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"title": "t", "rows": [{"name": "n"}], "note": ""},
        {"title": "t", "rows": [{"name": "n", "said": "s", "groups": [[{"wide": 1}]]}], "note": ""},
        {
            "title": "t",
            "rows": [
                {"name": "n", "said": "s", "groups": [[{"width": "1", "height": 1, "channels": 1, "pixels": ""}]]},
            ],
            "note": "",
        },
        7,
    ],
)
def test_what_no_run_wrote_is_refused_with_a_reason(broken):
    with pytest.raises(StudyInvalid):
        Pictures.from_plain(broken)
