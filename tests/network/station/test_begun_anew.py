"""What counts as spent where a journal was lost, beside `guard.budget`: exact numbers over all studies, and stores' budgets."""

from types import SimpleNamespace

import numpy as np
import pytest

from hedgerow.data import Schema
from hedgerow.errors import HedgerowError
from hedgerow.network.station.asking import account_of
from hedgerow.network.station.begin_anew import begin_anew
from hedgerow.network.station.config import BudgetLimit
from hedgerow.network.station.heads import FILE, write_mark
from hedgerow.network.station.local_data import Roll
from hedgerow.store import last
from hedgerow.study import build_remote
from hedgerow.wire.heads import Head
from station_house import MEANS, House, config_of, parse_text

GUARD = {"disclosure": 1 / 3, "disclosure_overall": 0.05, "approval": "automatic", "programs": [{"name": "moments"}]}


def answered(house, k):
    """Run the k-th study."""
    study = bytes([k]) * 16
    house.board(MEANS, ("age", "dose"), study=study)
    built = build_remote(
        parse_text(MEANS), Schema(house.schema.select(("age", "dose")).columns), house.network(study=study, life=k)
    )
    return last(built.listing.program(built.settings)(built.federation))


def begun_anew(house, path):
    """Lose the journal, and let the owner decide."""
    house.stations["alpha"].base.close()
    for file in (path / "alpha").glob("station.sqlite*"):
        file.unlink()
    keys = SimpleNamespace(path=path / "keys", key_material=house.keys["alpha"].key_material)
    keys.path.mkdir(mode=0o700)
    write_mark(keys.path / FILE, Head(0, bytes(32), 9, bytes(32)))
    begin_anew(house.configs["alpha"], keys, path / "alpha" / "station.sqlite", by="Ada", because="fire")
    house.stations.pop("alpha")


def test_exact_numbers_over_all_studies_are_no_fresh_limit(tmp_path):
    house = House(tmp_path, {"alpha": GUARD})
    answered(house, 1)
    with pytest.raises(HedgerowError, match="HR-216"):
        answered(house, 2)
    begun_anew(house, tmp_path)
    house.start("alpha")
    with pytest.raises(HedgerowError, match="HR-216"):
        answered(house, 3)


def test_what_the_owner_adds_to_the_limit_can_be_asked(tmp_path):
    house = House(tmp_path, {"alpha": GUARD})
    begun_anew(house, tmp_path)
    house.configs["alpha"] = config_of("alpha", **GUARD | {"disclosure_overall": 0.1})
    house.start("alpha")
    answered(house, 1)
    with pytest.raises(HedgerowError, match="HR-216"):
        answered(house, 2)


def test_a_store_has_no_larger_budget_than_the_guard():
    limit = BudgetLimit(epsilon=1.0, delta=1e-6, unit="record")
    account = account_of(limit, Roll(("s1", "s2", "s3"), (None, 10.0, 0.5), np.array([0, 1, 2])), own=True)
    assert [budget.epsilon for budget in account.budgets] == [1.0, 1.0, 0.5]
