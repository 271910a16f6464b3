"""PINE against its draft's published files: every message and share, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hedgerow.crypto.proofs.field import Field128
from hedgerow.crypto.proofs.field64 import Field64
from hedgerow.crypto.proofs.pine import Pine
from hedgerow.crypto.proofs.pine_circuits import PineShape
from hedgerow.crypto.proofs.xof import EARLY_TURBO_SHAKE128

FILES = sorted((Path(__file__).parent / "vectors").glob("Pine*.json"))
h = bytes.fromhex


def test_all_files_are_there() -> None:
    assert [path.stem for path in FILES] == [f"Pine{bits}_{i}" for bits in (128, 64) for i in range(4)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_message_of_a_published_file_is_equal(path: Path) -> None:
    v = json.loads(path.read_text())
    field = {"Field64": Field64(), "Field128": Field128()}[v["field"]]
    shape = PineShape(
        field,
        v["dimension"],
        v["l2_norm_bound"] ** 2,
        v["num_wr_checks"],
        v["num_wr_successes"],
        v["alpha"],
        v["chunk_length"],
        v["chunk_length_norm_equality"],
        as_drafted=True,
    )
    n = v["shares"]
    pine = Pine(
        shape,
        n,
        v["proofs"],
        v["proofs_norm_equality"],
        EARLY_TURBO_SHAKE128,
        "coefficients",
        id=0xFFFFFFFF,
        version=1,
        drafted=True,
    )
    key, sums = h(v["verify_key"]), [field.zeros(shape.length) for _ in range(n)]
    for r in v["prep"]:
        row = np.array([round(value * 2 ** v["num_frac_bits"]) for value in r["measurement"]], np.int64)
        public, letters = pine.shard_all(b"", row, h(r["nonce"]), h(r["rand"]))
        assert public.hex() == r["public_share"]
        assert [letter.hex() for letter in letters] == r["input_shares"]
        assert len(letters[0]) == pine.leader_bytes
        found = [pine.verify(key, [b""], j, [h(r["nonce"])], [public], [letters[j]]) for j in range(n)]
        tolds = [one.told for one in found]
        assert [told[0].hex() for told in tolds] == r["prep_shares"][0]
        assert len(tolds[0][0]) == pine.told_bytes
        sound, seeds = pine.decide([b""], tolds)
        assert sound[0]
        assert seeds[0].hex() == r["prep_messages"][0]
        for j, one in enumerate(found):
            assert pine.judge([b""], one.states, tolds).all()
            assert [field.encode(one.shares[0][i : i + 1]).hex() for i in range(shape.length)] == r["out_shares"][j]
            sums[j] = field.add(sums[j], one.shares[0])
    assert [field.encode(total).hex() for total in sums] == [
        "".join(total) if isinstance(total, list) else total for total in v["agg_shares"]
    ]
    total = sums[0]
    for other in sums[1:]:
        total = field.add(total, other)
    assert [float(value) / 2 ** v["num_frac_bits"] for value in field.centred(total)] == v["agg_result"]
