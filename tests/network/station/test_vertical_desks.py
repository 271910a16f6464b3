"""Desks of a station's parties: what came of an alignment outlives a killed process, and ends with the study."""

import os
import signal
import stat
import subprocess
import sys

import numpy as np
import pytest

from hedgerow.engines.desk_files import DeskFile
from hedgerow.engines.party_states import StateFiles
from hedgerow.errors import CannotWrite, ContributionInvalid

ROWS = {"rows": np.array([3, 0, 7]), "sizes": {"tax": 9, "town": 8}}


def test_what_is_kept_is_there_after_a_restart_and_is_each_partys_own(tmp_path):
    files = StateFiles(tmp_path / "states")
    first = files.desk("aa")
    first.desks()["tax"].put("alignment a", ROWS)
    first.desks()["tax"].put("pair secrets", {"town": bytes(range(32))})
    first.close()
    again = files.desk("aa")
    entry = again.desks()["tax"].get("alignment a")
    np.testing.assert_array_equal(entry["rows"], ROWS["rows"])
    assert entry["sizes"] == ROWS["sizes"]
    assert again.desks()["tax"].get("pair secrets") == {"town": bytes(range(32))}
    assert again.desks()["town"].get("pair secrets") is None
    again.close()


KILLED = """
import os, signal, sys
from pathlib import Path
import numpy as np
from hedgerow.engines.party_states import StateFiles
desk = StateFiles(Path(sys.argv[1])).desk("aa").desks()["tax"]
desk.put("alignment a", {"rows": np.array([3, 0, 7])})
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_v19_a_process_that_is_killed_after_an_alignment_has_kept_it(tmp_path):
    told = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "states")], env=os.environ, check=False)
    assert told.returncode == -signal.SIGKILL
    desk = StateFiles(tmp_path / "states").desk("aa")
    np.testing.assert_array_equal(desk.get("tax", "alignment a")["rows"], [3, 0, 7])
    desk.close()


def test_its_owner_alone_can_read_the_file_and_the_end_deletes_it(tmp_path):
    files = StateFiles(tmp_path / "states")
    desk = files.desk("aa")
    desk.put("tax", "alignment a", ROWS)
    files.of("aa").close()
    assert stat.S_IMODE(desk.path.stat().st_mode) == 0o600
    desk.close()
    files.erase("aa")
    assert list((tmp_path / "states").iterdir()) == []


def test_a_start_deletes_desks_of_studies_that_have_ended(tmp_path):
    files = StateFiles(tmp_path / "states")
    for study in ("aa", "bb"):
        desk = files.desk(study)
        desk.put("tax", "alignment a", ROWS)
        desk.close()
    files.sweep({"bb"})
    assert {path.stem for path in (tmp_path / "states").iterdir()} == {"bb"}


def test_a_full_disk_keeps_the_entry_before(tmp_path, monkeypatch):
    desk = DeskFile(tmp_path / "aa.desk")
    desk.put("tax", "alignment a", {"rows": np.array([1])})

    def full(*args, **kwargs):
        raise CannotWrite("no room.")

    monkeypatch.setattr(desk._database, "transaction", full)
    with pytest.raises(CannotWrite):
        desk.put("tax", "alignment a", ROWS)
    np.testing.assert_array_equal(desk.get("tax", "alignment a")["rows"], [1])
    desk.close()


def test_nothing_that_could_run_is_kept(tmp_path):
    with pytest.raises(ContributionInvalid, match="no number, array, text or bytes"):
        DeskFile().put("tax", "alignment a", {"rows": np.argsort})
