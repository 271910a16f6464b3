import subprocess
import sys
import time
from pathlib import Path

import pandas as pd

from hedgerow.network.coordinator.store import Store


def hedgerow(*words):
    return subprocess.run([sys.executable, "-m", "hedgerow", *words], check=True, capture_output=True, text=True).stdout


def start(*words):
    return subprocess.Popen([sys.executable, "-m", "hedgerow", *words], stderr=subprocess.DEVNULL)


hedgerow("pilot", "trial")
running = [start("coordinator", "start", "trial/hub")]
running += [start("station", "start", f"trial/{name}") for name in ("alpha", "beta", "gamma")]
try:
    study = hedgerow("submit", "trial/study.toml", "--at", "trial/hub").strip()
    store = Store(Path("trial/hub/state"))
    while not store.study(study).ended and all(process.poll() is None for process in running):
        time.sleep(0.2)
    print(store.study(study).state)
    store.close()
    hedgerow("fetch", study, "--at", "trial/hub", "--out", "results")
finally:
    for process in running:
        process.terminate()
    for process in running:
        process.wait()

print(pd.read_csv("results/coefficients.csv", index_col=0)["coef"].round(3).to_string())
