"""Prio3 against VDAF's published files: every message, share and refusal, byte for byte."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from hedgerow.crypto.proofs.circuits import BoundedSum, Count, Histogram, L1BoundSum, Multihot, SumVec
from hedgerow.crypto.proofs.field import Field128
from hedgerow.crypto.proofs.field64 import Field64
from hedgerow.crypto.proofs.prio3 import Prio3
from hedgerow.crypto.proofs.xof import TURBO_SHAKE128, TurboShake128
from hedgerow.errors import MessageRefused

VECTORS = Path(__file__).parent / "vectors"
FILES = sorted(VECTORS.glob("Prio3*.json"))

f64, f128 = Field64(), Field128()
h = bytes.fromhex


def made(kind: str, v: dict[str, Any]) -> Prio3:
    n = v["shares"]
    match kind:
        case "Prio3Count":
            return Prio3(Count(f64), n, id=1)
        case "Prio3Sum":
            return Prio3(BoundedSum(f64, v["max_measurement"]), n, id=2)
        case "Prio3SumVec":
            return Prio3(SumVec(f128, v["length"], v["max_measurement"], v["chunk_length"]), n, id=3)
        case "Prio3Histogram":
            return Prio3(Histogram(f128, v["length"], v["chunk_length"]), n, id=4)
        case "Prio3MultihotCountVec":
            return Prio3(Multihot(f128, v["length"], v["max_weight"], v["chunk_length"]), n, id=5)
        case "Prio3L1BoundSum":
            return Prio3(L1BoundSum(f128, v["length"], v["max_value"], v["chunk_length"]), n, id=7)
    assert kind == "Prio3SumVecWithMultiproof"
    return Prio3(SumVec(f64, v["length"], v["max_measurement"], v["chunk_length"]), n, proofs=3)


def joined(words: str | list[str]) -> str:
    return words if isinstance(words, str) else "".join(words)


class Replay:
    """One file's operations, in order; every check is counted."""

    def __init__(self, path: Path) -> None:
        self.v = json.loads(path.read_text())
        self.prio3 = made(path.stem.split("_")[0], self.v)
        self.field, self.ctx, self.compared = self.prio3.field, h(self.v["ctx"]), 0
        self.states: dict[tuple[int, int], tuple[bytes, Any]] = {}
        self.totals: dict[int, Any] = {}

    def same(self, found: Any, due: Any) -> None:
        assert found == due
        self.compared += 1

    def run(self) -> int:
        for operation in self.v["operations"]:
            step = getattr(self, operation["operation"])
            report = self.v["reports"][operation["report_index"]] if "report_index" in operation else {}
            if operation["success"]:
                step(operation, report)
            else:
                with pytest.raises(MessageRefused):
                    step(operation, report)
            self.compared += 1
        return self.compared

    def shard(self, operation: dict[str, Any], r: dict[str, Any]) -> None:
        public, shares = self.prio3.shard(self.ctx, r["measurement"], h(r["nonce"]), h(r["rand"]))
        self.same(public.hex(), r["public_share"])
        self.same([share.hex() for share in shares], r["input_shares"])
        assert [len(share) for share in shares] == [self.prio3.leader_bytes] + [self.prio3.seed_bytes] * (self.prio3.shares - 1)
        assert len(public) == self.prio3.public_bytes

    def verify_init(self, operation: dict[str, Any], r: dict[str, Any]) -> None:
        j = operation["aggregator_id"]
        share = h(r["input_shares"][j])
        seed, row, told = self.prio3.verify(h(self.v["verify_key"]), self.ctx, j, h(r["nonce"]), h(r["public_share"]), share)
        self.same(told.hex(), r["verifier_shares"][0][j])
        assert len(told) == self.prio3.told_bytes
        self.states[operation["report_index"], j] = seed, row

    def verifier_shares_to_message(self, operation: dict[str, Any], r: dict[str, Any]) -> None:
        message = self.prio3.combine(self.ctx, [h(told) for told in r["verifier_shares"][0]])
        self.same(message.hex(), r["verifier_messages"][0])

    def verify_next(self, operation: dict[str, Any], r: dict[str, Any]) -> None:
        j = operation["aggregator_id"]
        seed, row = self.states[operation["report_index"], j]
        if seed != h(r["verifier_messages"][0]):
            raise MessageRefused("another joint seed")
        self.same(self.field.encode(row).hex(), joined(r["out_shares"][j]))
        self.totals[j] = self.field.add(self.totals[j], row) if j in self.totals else row

    def aggregate(self, operation: dict[str, Any], r: dict[str, Any]) -> None:
        j = operation["aggregator_id"]
        self.same(self.field.encode(self.totals[j]).hex(), self.v["agg_shares"][j])

    def unshard(self, operation: dict[str, Any], r: dict[str, Any]) -> None:
        total = self.totals[0]
        for j in range(1, self.prio3.shares):
            total = self.field.add(total, self.totals[j])
        found = [int(value) for value in total]
        self.same(found if isinstance(self.v["agg_result"], list) else found[0], self.v["agg_result"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_message_of_a_published_file_is_equal_and_every_refusal_happens(path: Path) -> None:
    assert Replay(path).run() >= 3


def test_all_files_of_degree_two_are_there() -> None:
    assert len(FILES) == 25
    refusals = [path for path in FILES if "_bad_" in path.stem]
    assert len(refusals) == 8
    assert hashlib.sha256((VECTORS / "Prio3SumVec_0.json").read_bytes()).hexdigest().startswith("93a4ae011b547a0915a6")


def test_the_stream_is_that_of_the_published_file() -> None:
    v = json.loads((VECTORS / "XofTurboShake128.json").read_text())
    open_it = lambda: TURBO_SHAKE128.open(h(v["seed"]), h(v["dst"]), h(v["binder"]))  # noqa: E731
    assert open_it().read(32).hex() == v["derived_seed"]
    assert f128.encode(f128.stream(open_it(), v["length"])).hex() == v["expanded_vec_field128"]
    whole, reader = open_it().read(1000), open_it()
    assert b"".join(reader.read(n) for n in (0, 1, 167, 168, 169, 495)) == whole


def test_turboshake_is_that_of_the_rfc() -> None:
    """RFC 9861, section 5: the message FF FF FF with domain byte 01."""
    due = "bf323f940494e88ee1c540fe660be8a0c93f43d15ec006998462fa994eed5dab"
    assert TurboShake128(b"\xff\xff\xff").read(32).hex() == due
