"""coordinator.toml: everything that is wrong with it at once, with the nearest known words."""

import pytest

from hedgerow.errors import ConfigInvalid
from hedgerow.network.coordinator.config import EXAMPLE, load_config, parse_config


def test_the_example_of_the_error_is_a_configuration(tmp_path):
    (tmp_path / "coordinator.toml").write_text(EXAMPLE)
    config = load_config(tmp_path)
    assert (config.name, config.rail.kind, config.rail.address) == ("hub", "grpc", "0.0.0.0:8443")
    assert config.keys_folder == tmp_path / "keys"
    assert config.runs_folder == tmp_path / "runs"
    assert load_config(tmp_path / "coordinator.toml") == config


def test_a_folder_without_a_file_is_told_what_to_write(tmp_path):
    with pytest.raises(ConfigInvalid, match="no folder of a coordinator") as caught:
        load_config(tmp_path)
    assert "[rail]" in caught.value.remedy


def test_all_problems_are_told_at_once():
    found = {
        "nam": "hub",
        "rail": {"kind": "grpc", "adress": "0.0.0.0:1"},
        "limits": {"question_second": 3, "retry_seconds": -1, "studies_at_once": 0},
    }
    with pytest.raises(ConfigInvalid) as caught:
        parse_config(found)
    remedy = caught.value.remedy
    for words in (
        "unknown key 'nam'. Did you mean 'name'?",
        "unknown key 'rail.adress'. Did you mean 'address'?",
        "unknown key 'limits.question_second'. Did you mean 'question_seconds'",
        "limits.retry_seconds",
        "limits.studies_at_once",
    ):
        assert words in remedy


@pytest.mark.parametrize(
    ("rail", "words"),
    [
        ({"kind": "grpc"}, "needs an address"),
        ({"kind": "grpc", "address": "8443"}, "host:port"),
        ({"kind": "grpc", "address": "host:99999"}, "host:port"),
        ({"kind": "socket"}, "path of a socket"),
        ({"kind": "pigeon"}, "'grpc', 'socket' or 'nvflare'"),
    ],
)
def test_a_rail_that_cannot_be_laid_is_refused(rail, words):
    with pytest.raises(ConfigInvalid) as caught:
        parse_config({"name": "hub", "rail": rail})
    assert words in caught.value.remedy


def test_pauses_that_shrink_are_refused():
    with pytest.raises(ConfigInvalid) as caught:
        parse_config({"name": "hub", "rail": {"kind": "socket", "path": "r"}, "limits": {"retry_seconds": 700}})
    assert "retry_most_seconds is below" in caught.value.remedy


def test_what_is_no_toml_is_refused(tmp_path):
    (tmp_path / "coordinator.toml").write_text("name = ")
    with pytest.raises(ConfigInvalid, match="not a TOML file"):
        load_config(tmp_path)


def test_the_root_cannot_be_set_by_the_file():
    with pytest.raises(ConfigInvalid, match="1 problem"):
        parse_config({"name": "hub", "rail": {"kind": "socket", "path": "r"}, "root": "/"})
