import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"

sys.path.append(str(EXAMPLES))


@pytest.fixture(scope="session")
def patients(tmp_path_factory):
    """The file that the tutorial works on."""
    folder = tmp_path_factory.mktemp("patients")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        runpy.run_path(str(EXAMPLES / "make_patients.py"))
    return folder / "patients.csv"


@pytest.fixture
def beside_patients(tmp_path, monkeypatch, patients):
    """A folder of one's own that holds the examples' studies and `patients.csv`."""
    for file in (patients, *EXAMPLES.glob("*.toml")):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path
