"""Compression in a study file, and what the report says of bytes."""

import pytest

from hedgerow.compression import Quantised, RandomK, Rotated, Sketched, TopK
from hedgerow.errors import StudyInvalid, UnlawfulChannel
from hedgerow.study import load, parse, rehearse, run_study
from hedgerow.study.build import build
from hedgerow.study.protection import COMPRESSIONS, CompressionSection

FEDAVG = {"name": "few-bytes", "data": {"name": "digits"}, "program": {"name": "fedavg", "rounds": 2}}


def study(baselines=True, **protection):
    return parse(FEDAVG | {"baselines": baselines, "protection": protection})


@pytest.mark.parametrize(
    ("section", "made"),
    [
        ({"by": "quantised"}, Quantised()),
        ({"by": "rotated", "bits": 3, "stochastic": False}, Rotated(3, stochastic=False)),
        ({"by": "top_k", "share": 0.02}, TopK(0.02)),
        ({"by": "random_k", "error_feedback": True, "smallest": 10}, RandomK(error_feedback=True, smallest=10)),
        ({"by": "sketched", "rows": 3, "columns": 50}, Sketched(3, 50)),
    ],
)
def test_a_section_names_a_compression(section, made):
    assert study(compression=section).protection.slots()["compression"] == made


def test_every_key_of_a_compression_is_a_key_of_the_section():
    fields = {key for kind in COMPRESSIONS.values() for key in kind.__match_args__}
    assert fields == CompressionSection.model_fields.keys() - {"by"}


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"by": "top_k", "shar": 0.1}, "unknown key 'protection.compression.shar'. Did you mean 'share'"),
        ({"by": "topk"}, "'top_k'"),
        ({"share": 0.1}, "protection.compression.by: Field required"),
        ({"by": "top_k", "bits": 4}, "bits: no key of 'top_k', which has share, error_feedback, smallest"),
        ({"by": "sketched", "rows": 3}, "'sketched' needs rows and columns"),
        ({"by": "top_k", "share": 2.0}, "a share of 2.0 of the numbers"),
    ],
)
def test_a_section_that_does_not_fit_is_refused(section, said):
    with pytest.raises(StudyInvalid) as caught:
        study(compression=section)
    assert said in str(caught.value)


def test_a_channel_that_is_not_lawful_is_refused_when_a_study_is_built():
    with pytest.raises(UnlawfulChannel, match="does not survive"):
        build(study(compression={"by": "top_k"}, clip={"radius": 1.0}, mechanism={"noise_multiplier": 1.0, "at": "party"}))


@pytest.mark.slow
def test_a_rehearsal_shows_bytes_and_hides_an_empty_column():
    plain, short = (
        rehearse(study()).left,
        rehearse(study(compression={"by": "quantised", "bits": 4}, clip={"radius": 5.0})).left,
    )
    assert plain.columns == ("query", "times", "numbers in all", "bytes up", "bytes down", "bound", "noise", "asked of")
    assert short.columns == (*plain.columns[:5], "compression", *plain.columns[5:])
    assert plain.rows[0][1:5] == (2, 2 * 651, 4 * 651, 4 * 650)
    assert short.rows[0][1:6] == (2, 2 * 650, 650 / 2 + 4, 4 * 650, "4 bits, rounded at random")


@pytest.mark.slow
def test_a_run_reports_the_bytes_of_all_parties(tmp_path):
    wanted = study(baselines=False, compression={"by": "top_k"}, clip={"radius": 5.0})
    result = run_study(wanted, tmp_path / "run")
    facts = dict(result.report.facts)
    assert facts["bytes up in all"] == round(2 * 5 * 7 * (32 + 10) / 8)
    assert facts["bytes down in all"] == 2 * 5 * 650 * 4
    assert result.report.left.rows[0][5] == "top 1% with error feedback"
    assert load(tmp_path / "run" / "study.toml").digest == wanted.digest
