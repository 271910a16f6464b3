"""The rules in force: an edited guard holds as soon as its file lies still, and whoever looks sees what holds."""

from dataclasses import replace

import pytest
from gate_house import TOML, Gate, Hub, made
from typer.testing import CliRunner

from hedgerow.cli.station import app
from hedgerow.errors import ConfigInvalid, HedgerowError
from hedgerow.network.console.rules import noted
from hedgerow.network.station.review import Review
from hedgerow.network.station.rules import OF_CHILDREN, differing, kept_rules
from hedgerow.network.station_service import open_folder
from patience import until
from station_house import MEANS, STUDY, House, config_of

BUDGET = "[guard.budget]\nepsilon = 3.0\ndelta = 1e-6\n"


@pytest.fixture
def folder(tmp_path):
    return made(tmp_path)


class Watched:
    """A station in this process that watches its file, by a clock of the test's."""

    def __init__(self, folder):
        self.folder, self.time = folder, 0.0
        self.opened = replace(open_folder(folder), file=folder)
        self.station = self.opened.station()
        self.station.rules._clock = lambda: self.time
        self.look()

    def look(self, n=2):
        """Let the file lie still."""
        for _ in range(n):
            self.time += 1.5
            self.station.refresh()

    def edit(self, text):
        (self.folder / "station.toml").write_text(text)

    def entries(self):
        return [entry for entry in self.station.journal.entries() if entry.kind == "rules"]

    def close(self):
        self.station.close()
        self.opened.base.close()


@pytest.fixture
def watched(folder):
    watched = Watched(folder)
    yield watched
    watched.close()


def test_the_log_says_what_a_rule_was_and_what_it_is(watched, caplog):
    caplog.set_level("INFO", logger="hedgerow")
    before = watched.folder.joinpath("station.toml").read_text()
    watched.edit(before.replace("[guard]", "[guard]\nleast_records = 7", 1))
    watched.look()
    assert "guard.least_records 0 -> 7" in caplog.text


def test_an_edited_guard_is_in_force_once_its_file_lies_still(watched):
    assert watched.entries() == []
    watched.edit(TOML + "least_cohort = 3\n")
    watched.look(1)
    assert watched.station.config.guard.least_cohort == 1  # it may be half written
    watched.look(1)
    assert watched.station.config.guard.least_cohort == 3
    [entry] = watched.entries()
    assert (entry.code, entry.reason) == ("changed", "guard.least_cohort 1 -> 3")
    watched.look()
    assert len(watched.entries()) == 1


def test_a_file_that_is_being_written_changes_nothing(watched):
    text = TOML + "least_cohort = 3\n"
    for n in range(len(text) - 40, len(text), 8):
        watched.edit(text[:n])
        watched.look(1)
    assert watched.station.config.guard.least_cohort == 1
    watched.edit(text)
    watched.look()
    assert watched.station.config.guard.least_cohort == 3


@pytest.mark.parametrize("text", ["[guard", TOML + "least_cohrt = 3\n", TOML + "least_cohort = 0\n", ""])
def test_a_file_with_a_mistake_leaves_the_rules_in_force(watched, text, caplog):
    watched.edit(TOML + "least_cohort = 3\n")
    watched.look()
    watched.edit(text)
    watched.look()
    assert watched.station.config.guard.least_cohort == 3
    assert "station.toml is not in force" in caplog.text
    assert kept_rules(watched.opened.base).problem
    box = Review.at(watched.folder)
    try:
        assert box.config.guard.least_cohort == 3
        [note] = box.notes()
    finally:
        box.close()
    assert "cannot be read" in note
    assert noted([note]) == [("The file", note)]
    watched.edit(TOML + "least_cohort = 4\n")
    watched.look()
    assert watched.station.config.guard.least_cohort == 4
    assert not kept_rules(watched.opened.base).problem


def test_a_file_that_is_gone_leaves_the_rules_in_force(watched):
    (watched.folder / "station.toml").unlink()
    watched.look()
    assert watched.station.config.guard.least_cohort == 1
    assert "does not exist" in kept_rules(watched.opened.base).problem


def test_what_is_not_the_guard_s_waits_for_the_next_start(watched):
    watched.edit(TOML.replace('name = "heart"', 'name = "hearts"') + "least_cohort = 3\n")
    watched.look()
    assert watched.station.config.data.name == "heart"
    assert watched.station.config.guard.least_cohort == 3
    box = Review.at(watched.folder)
    try:
        assert [note for note in box.notes() if "data.name" in note and "next start" in note]
    finally:
        box.close()


def test_an_edit_of_a_stopped_station_is_in_its_journal(folder):
    Watched(folder).close()
    (folder / "station.toml").write_text(TOML + "least_cohort = 3\n")
    again = Watched(folder)
    try:
        [entry] = again.entries()
        assert entry.reason == "while the station was stopped: guard.least_cohort 1 -> 3"
        again.station.journal.verify()
    finally:
        again.close()


def test_a_new_budget_counts_what_was_charged_before(tmp_path):
    guard = {"approval": "automatic", "programs": [{"name": "moments"}]}
    before, after = config_of("alpha", **guard), config_of("alpha", **guard, budget={"epsilon": 3.0, "delta": 1e-6})
    house = House(tmp_path, {"alpha": {}}, **guard)
    station = house.stations["alpha"]
    house.board(MEANS, ("age", "dose"))

    class Edited:
        config = after
        changed = differing(before, after)

        def look(self):
            changed, self.changed = self.changed, []
            return changed

    assert station.account.unlimited
    station.rules = Edited()
    station.refresh()
    assert not station.account.unlimited
    built = house.built(MEANS, ("age", "dose"))
    with pytest.raises(HedgerowError, match="HR-606"):
        next(iter(built.listing.program(built.settings)(built.federation)))


@pytest.mark.parametrize("key", OF_CHILDREN)
def test_keys_of_children_are_keys_of_the_file(key):
    part = config_of("alpha").model_dump()
    for name in key.split("."):
        assert name in part
        part = part[name]


@pytest.mark.slow
def test_a_running_station_keeps_to_its_edited_guard_and_shows_it(folder, tmp_path):
    hub = Hub(folder)
    gate = Gate(folder)
    try:
        assert hub.boarded(MEANS, STUDY) == "approved"
        assert hub.run(MEANS, STUDY).n == 60
        (folder / "station.toml").write_text(TOML + "least_cohort = 3\n")
        gate.until_it_says("the rules in force have changed in guard.least_cohort")
        with pytest.raises(HedgerowError, match="HR-605"):
            hub.run(MEANS, STUDY)
        (folder / "station.toml").write_text(TOML + "least_cohort = 3\nhous = []\n")
        gate.until_it_says("station.toml is not in force")
        shown = CliRunner().invoke(app, ["inbox", str(folder)]).output
        assert "cannot be read" in shown
        checked = CliRunner().invoke(app, ["check", str(folder)])
        assert isinstance(checked.exception, ConfigInvalid)
        assert "parties 3" in checked.output
        with pytest.raises(HedgerowError, match="HR-605"):
            hub.run(MEANS, STUDY)
        (folder / "station.toml").write_text(TOML)
        until(lambda: sum("have changed" in line for line in gate.log) == 2, "the first rules", ended=gate.process.poll)
        assert hub.run(MEANS, STUDY).n == 60
    finally:
        gate.end()
        hub.rail.close()
