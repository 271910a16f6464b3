"""The section [protection] of a study: the channel's slots, in the words of a file."""

from __future__ import annotations

from inspect import signature
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from hedgerow.compression import Quantised, RandomK, Rotated, Sketched, TopK
from hedgerow.core.bound import Bound, Bounds, l1, l2, linf
from hedgerow.crypto import AdditiveShares, PairwiseMasks, PrivFL, SecAgg
from hedgerow.errors import HedgerowError, UnlawfulChannel
from hedgerow.privacy import Noise, Tree
from hedgerow.privacy.simulated_gaussian import SimulatedGaussian

from .section import Section


class Clip(Section):
    """A party-level bound."""

    norm: Literal["l1", "l2", "linf"] = Field("l2", description="how the length of a contribution is measured")
    radius: float = Field(description="longest contribution that passes unchanged")

    def bound(self) -> Bound:
        return {"l1": l1, "l2": l2, "linf": linf}[self.norm](self.radius)


class MechanismSection(Section):
    """Noise: its law, its size relative to the bound, and who adds it."""

    law: Literal["gaussian", "laplace", "skellam", "geometric", "discrete gaussian", "simulated gaussian", "tree"] = Field(
        "gaussian", description='distribution of the noise; "tree" is Gaussian noise on running totals'
    )
    noise_multiplier: float | None = Field(
        None,
        description="its scale over the radius of the bound; if not given, the least that the budget allows for all rounds",
    )
    at: Literal["server", "aggregators", "shares", "party"] = Field(
        "server",
        description="who adds it: central privacy, distributed (each aggregator of additive shares all of it, or each party a "
        "share, rows hidden), or local",
    )
    least: int = Field(0, description="shares: so many parties certainly answer, and keep their share of the noise secret")
    rounds: int | None = Field(None, description="tree: questions that one tree covers")
    every: int = Field(1, description="tree: each party answers every so many questions, as `program.every` says")

    @model_validator(mode="after")
    def fits(self) -> MechanismSection:
        if (self.law == "tree") == (self.rounds is None) or (self.law == "tree" and self.at != "server"):
            raise ValueError('law = "tree", at the server, has rounds; no other law has')
        if (self.at == "shares") == (self.least < 1):
            raise ValueError('at = "shares" has least = ..., how many parties\' shares make the whole noise; nothing else has')
        return self

    def mechanism(self) -> Any:
        """The mechanism; a multiplier that the budget decides is filled in before (`planned`)."""
        z = 1.0 if self.noise_multiplier is None else self.noise_multiplier
        if self.law == "tree":
            return Tree(z, int(self.rounds or 0), self.every)
        if self.law == "simulated gaussian" and self.at != "shares":
            return SimulatedGaussian(z, self.at)  # type: ignore[arg-type]  # which refuses aggregators
        return Noise(self.law, z, self.at, self.least)  # type: ignore[arg-type]


COMPRESSIONS: dict[str, Any] = {
    "quantised": Quantised,
    "rotated": Rotated,
    "top_k": TopK,
    "random_k": RandomK,
    "sketched": Sketched,
}
"""Ways of compressing; their fields are the keys of the section."""


class CompressionSection(Section):
    """Shorter codes for large contributions: which way, and the keys of that way."""

    by: Literal["quantised", "rotated", "top_k", "random_k", "sketched"] = Field(description="how contributions are compressed")
    bits: int | None = Field(None, description="quantised, rotated: bits for each number")
    stochastic: bool | None = Field(None, description="quantised, rotated: round at random, without bias")
    share: float | None = Field(None, description="top_k, random_k: share of a key's numbers that is sent")
    error_feedback: bool | None = Field(None, description="top_k, random_k: keep what was left out for the next round")
    rows: int | None = Field(None, description="sketched: rows of the sketch")
    columns: int | None = Field(None, description="sketched: buckets in each row")
    smallest: int | None = Field(None, description="keys with fewer numbers pass as they are; 64 if not given")

    @model_validator(mode="after")
    def fits(self) -> CompressionSection:
        kind, given = COMPRESSIONS[self.by], self.model_dump(exclude={"by"}, exclude_none=True)
        if foreign := given.keys() - set(kind.__match_args__):
            raise ValueError(f"{', '.join(sorted(foreign))}: no key of {self.by!r}, which has {', '.join(kind.__match_args__)}")
        try:
            self.compression()
        except TypeError:
            raise ValueError(f"{self.by!r} needs {' and '.join(kind.__match_args__[:2])}") from None
        except UnlawfulChannel as refusal:
            raise ValueError(f"{refusal.reason} {refusal.remedy}") from None
        return self

    def compression(self) -> Any:
        return COMPRESSIONS[self.by](**self.model_dump(exclude={"by"}, exclude_none=True))


AGGREGATIONS: dict[str, Any] = {"secagg": SecAgg, "pairwise": PairwiseMasks, "additive": AdditiveShares, "privfl": PrivFL}
"""Ways of adding up rows that the server does not see; their parameters are the keys of the section."""


class AggregationSection(Section):
    """How rows are added up without being seen: which way, and the keys of that way."""

    by: Literal["secagg", "pairwise", "additive", "privfl"] = Field(
        description="masks with recovery, masks without, shares, or a model hidden from parties as well"
    )
    mode: Literal["real", "simulated"] | None = Field(None, description="carry the protocol out, or account for it; real")
    bits: Literal[16, 32, 64] | None = Field(None, description="of a number on the wire; 64 if not given")
    records: float | None = Field(None, description="most records at one party, by which a bound per record becomes a range")
    largest: float | None = Field(None, description="range of numbers that declare no bound")
    least: int | None = Field(None, description="the smallest cohort of which a party lets itself be added up; 3")
    neighbours: int | None = Field(None, description="secagg: parties with which each shares masks; from the fractions below")
    threshold: int | None = Field(None, description="secagg: neighbours that recover a mask together")
    corrupt: float | None = Field(None, description="secagg: share of parties that may collude with the server; 0.05")
    dropouts: float | None = Field(None, description="secagg: share of parties that may drop out; 0.1")
    adversary: Literal["curious", "active"] | None = Field(
        None, description="secagg: a server that keeps to the protocol, or one that does not"
    )
    rounds_per_epoch: int | None = Field(None, description="secagg: questions for which keys and shares are made at once")
    once_per_context: bool | None = Field(None, description="secagg: parties answer the same question once; false")
    group: int | None = Field(None, description="pairwise: parties of a group, whose total the server sees; all if not given")
    key_bits: int | None = Field(None, description="privfl: length of the server's Paillier key; 3072")
    most_rounds: int | None = Field(None, description="privfl: rounds that a party answers under one key; 1000")
    aggregators: int | None = Field(None, description="additive: among how many a row is split, one of them honest; 3")
    verified: bool | None = Field(
        None, description="additive: each row comes with a proof that it is within its bound, and is left out without; false"
    )

    @model_validator(mode="after")
    def fits(self) -> AggregationSection:
        known = signature(AGGREGATIONS[self.by]).parameters
        if foreign := self.model_dump(exclude={"by"}, exclude_none=True).keys() - known.keys():
            raise ValueError(f"{', '.join(sorted(foreign))}: no key of {self.by!r}, which has {', '.join(known)}")
        try:
            self.aggregation()
        except HedgerowError as refusal:
            raise ValueError(f"{refusal.reason} {refusal.remedy}") from None
        return self

    def aggregation(self) -> Any:
        return AGGREGATIONS[self.by](**self.model_dump(exclude={"by"}, exclude_none=True))


class ProtectionSection(Section):
    """The channel's slots."""

    clip: Clip | dict[str, Clip] | None = Field(None, description="party-level bound, for all keys together or for each")
    compression: CompressionSection | None = Field(None, description="shorter codes for large contributions")
    mechanism: MechanismSection | None = Field(None, description="noise; none leaves the release exact")
    aggregation: AggregationSection | None = Field(None, description="rows hidden from the server; it sees them if not given")
    disclosure: float | None = Field(
        None,
        gt=0,
        description="most exact numbers asked of a party, over all rounds, for each value that it holds; 1/3 of statistics",
    )

    @field_validator("aggregation", mode="before")
    @classmethod
    def by_name(cls, given: Any) -> Any:
        """`aggregation = "secagg"` is short for a section with that key alone."""
        return {"by": given} if isinstance(given, str) else given

    def slots(self) -> dict[str, Any]:
        """Return the arguments of `Federation.protect`."""
        clip: Bounds | None = None
        if isinstance(self.clip, Clip):
            clip = self.clip.bound()
        elif self.clip is not None:
            clip = {key: part.bound() for key, part in self.clip.items()}
        noise, shorter = self.mechanism, self.compression
        return {
            "clip": clip,
            "compression": shorter and shorter.compression(),
            "mechanism": noise and noise.mechanism(),
            "aggregation": self.aggregation and self.aggregation.aggregation(),
        }
