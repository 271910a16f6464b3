"""The catalogue of programs: what is said of a name that is not in it."""

import pytest

from hedgerow.errors import StudyInvalid
from hedgerow.study.catalogue import listing


def test_a_misspelt_program_is_suggested():
    with pytest.raises(StudyInvalid, match="Did you mean 'fedavg'"):
        listing("fedavgg")


def test_where_no_name_is_near_none_is_suggested():
    with pytest.raises(StudyInvalid) as refused:
        listing("mantel_haenszel")
    assert "Did you mean" not in str(refused.value)
    assert "quantiles" not in str(refused.value)
    assert "an entry point of the group hedgerow.programs" in str(refused.value)
