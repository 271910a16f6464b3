"""The federation of `scripts/federation`: real processes, mutual TLS, plugs pulled with kill -9."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("grpc")
SCRIPT = Path(__file__).parents[2] / "scripts" / "federation.py"


@pytest.mark.slow
def test_a_federation_survives_a_killed_station_and_a_killed_coordinator(tmp_path):
    done = subprocess.run([sys.executable, str(SCRIPT), str(tmp_path / "pilot")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "beta killed with -9" in done.stdout
    assert "coordinator killed with -9" in done.stdout
    assert "waiting: " in done.stdout
    report = tmp_path / "pilot" / "hub" / "runs" / "study-001" / "report.html"
    assert "Malignant or benign" in report.read_text(encoding="utf-8")
