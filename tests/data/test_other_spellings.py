"""Numbers and dates in another spelling are not levels, however few of them differ; nor are blanks around words."""

import numpy as np
import pandas as pd
import pytest

from hedgerow.data import Table, infer, read
from hedgerow.errors import ColumnUndeclared

NUMBERS = {
    "decimal comma": ("{}", lambda i: f"{20 + i % 20},5", {"separator": ";"}),
    "some with a comma": ("{}", lambda i: f"{20 + i % 20}" + ",5" * (i % 3 > 0), {"separator": ";"}),
    "commas between thousands": ('"{}"', lambda i: f"{1 + i % 30},{100 + i % 30}", {}),
    "points between thousands": ("{}", lambda i: f"1.{100 + i % 30}", {"separator": ";", "decimal": ","}),
    "blanks between thousands": ("{}", lambda i: f"{1 + i % 30} {100 + i % 30}", {}),
    "per cent": ("{}", lambda i: f"{i % 30}%", {}),
    "per cent after a blank": ("{}", lambda i: f"{i % 30}.5 %", {}),
}
DATES = ["{} Jan 2020", "{}. März 2020", "{}-Dec-20", "Feb {}, 2020", "May {} 2021", "{} octobre 2020"]


def write(path, values, separator=","):
    path.write_text(f"y{separator}v\n" + "".join(f"{i}{separator}{value}\n" for i, value in enumerate(values)))
    return path


@pytest.mark.parametrize(("quoted", "value", "how"), NUMBERS.values(), ids=NUMBERS)
def test_numbers_in_another_spelling_are_refused(tmp_path, quoted, value, how):
    values = [value(i) for i in range(400)]
    path = write(tmp_path / "a.csv", [quoted.format(one) for one in values], how.get("separator", ","))
    with pytest.raises(
        ColumnUndeclared, match=r"'v' has .* look like numbers in another spelling|'v' has .* not numbers"
    ) as caught:
        read(path, **how)
    assert "decimal" in str(caught.value)
    levels = sorted(set(values))
    assert read(path, declared={"v": {"levels": levels}}, **how).schema["v"].levels == tuple(levels)
    assert len(read(path, declared={"v": {"many": True}}, **how).schema["v"].levels) == len(levels)


@pytest.mark.parametrize("form", DATES)
def test_dates_with_the_name_of_a_month_are_refused(tmp_path, form):
    with pytest.raises(ColumnUndeclared, match="holds dates or times"):
        infer(pd.DataFrame({"v": [form.format(1 + i % 20) for i in range(60)]}))


@pytest.mark.parametrize(
    "words", [["65+", "18-64"], ["1st", "2nd"], ["I10", "E11"], ["B1 2", "B2 3"], ["mar", "may"], ["1a", "1 b"]]
)
def test_words_with_digits_stay_levels(words):
    assert infer(pd.DataFrame({"v": words * 20}))["v"].levels == tuple(sorted(words))


def test_blanks_around_words_make_no_levels(tmp_path):
    path = write(tmp_path / "a.csv", ["male", " male", "male ", "female"])
    table = read(path)
    assert table.schema["v"].levels == ("female", "male")
    assert table["v"].tolist() == [1, 1, 1, 0]
    for declared in ({"levels": ["male", "female"]}, {"kind": "category"}):
        found = read(path, declared={"v": declared})
        assert [found.schema["v"].levels[code] for code in found["v"]] == ["male"] * 3 + ["female"]
    codes = read(path, declared={"v": {"levels": {"m": "male", "f": "female"}}})
    assert codes["v"].tolist() == [0, 0, 0, 1]


def test_a_level_that_is_declared_with_a_blank_is_one():
    frame = pd.DataFrame({"v": ["male", " male", "male "]})
    table = Table.from_pandas(frame, declared={"v": {"levels": [" male", "male"]}})
    assert table["v"].tolist() == [1, 0, 1]


def test_blanks_around_what_stands_for_a_missing_value_do_not_matter():
    frame = pd.DataFrame({"v": ["male", "? ", "female"]})
    table = Table.from_pandas(frame, na_values=["?"], missing="drop")
    assert table.schema["v"].levels == ("female", "male")
    np.testing.assert_array_equal(table["v"], [1, -1, 0])
