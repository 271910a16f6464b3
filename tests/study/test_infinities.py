"""Infinities among the values of a program are written to study.toml as they are, and digests stay what they were."""

import math
import tomllib

import pytest

from hedgerow.core.toml import to_toml
from hedgerow.study import parse

VALUES = {"alone": math.inf, "listed": [1.0, -math.inf], "within": {"deep": [math.inf]}}


def study_with(**values):
    return parse({"name": "x", "data": {"name": "digits"}, "program": {"name": "fedavg", **values}})


def test_infinities_of_a_program_are_written_and_read_back():
    again = tomllib.loads(to_toml(study_with(**VALUES).model_dump(mode="json")))
    assert again["program"] == {"name": "fedavg", **VALUES}
    assert parse(again).digest == study_with(**VALUES).digest


@pytest.mark.parametrize(("value", "old"), [(math.inf, None), ([1.0, math.inf], [1.0, None])])
def test_a_digest_has_none_for_them_as_ever(value, old):
    assert study_with(radius=value).digest == study_with(radius=old).digest
