"""Parties that lie, servers that look, audits that see: every attack of the survey to be tried, and what each defence costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .acts.act import Moment, RecordsAct, RowsAct
    from .acts.liars import Liars
    from .acts.records import LabelFlip, NoiseRecords, SingleTarget, Stamp, Trigger
    from .acts.rows import Alie, FreeRider, GaussianRows, InnerProduct, MinMax, ScaledRows, Sybils, hidden_z
    from .audits.ceiling import AttackCeiling
    from .audits.cosine import CosineEstimate, cosine_estimate
    from .audits.law import LawTest, law_of_scores, law_test
    from .audits.law_parts import LawPart
    from .audits.noise_laws import NoiseLaw
    from .audits.one_run import (
        GaussianFamily,
        NoiseFamily,
        OneRunBound,
        TradeOffFamily,
        least_epsilon,
        least_leak,
        one_run_bounds,
    )
    from .audits.power import AuditPower, power_of_law, power_of_scores
    from .audits.sightings import CanaryDirections, Sighting
    from .audits.sums import LawSums
    from .evasion import Evasion, evade
    from .observers.against_sums import InconsistentServer, SybilAttempt, differences, silencing_weights, sybil_cohort
    from .observers.attribute import infer_attribute
    from .observers.class_images import ClassImage, class_image, invert_class
    from .observers.cosine_search import CosineSearch
    from .observers.guesses import Guesses
    from .observers.inferred_labels import InferredLabels
    from .observers.inversion import Inverted, infer_labels, invert
    from .observers.inversion_cases import sigmoid_net
    from .observers.membership import confidences, lira, losses_of, scaled_confidences, shadow_attack
    from .observers.party_property import PropertyAttack, flat_update
    from .observers.rates import MembershipRates, Rate, at_threshold
    from .observers.recognised import psnr
    from .observers.several_targets import TargetRates
    from .observers.shadow_models import ShadowState, membership_trials

__all__ = [
    "Alie",
    "AttackCeiling",
    "AuditPower",
    "CanaryDirections",
    "ClassImage",
    "CosineEstimate",
    "CosineSearch",
    "Evasion",
    "FreeRider",
    "GaussianFamily",
    "GaussianRows",
    "Guesses",
    "InconsistentServer",
    "InferredLabels",
    "InnerProduct",
    "Inverted",
    "LabelFlip",
    "LawPart",
    "LawSums",
    "LawTest",
    "Liars",
    "MembershipRates",
    "MinMax",
    "Moment",
    "NoiseFamily",
    "NoiseLaw",
    "NoiseRecords",
    "OneRunBound",
    "PropertyAttack",
    "Rate",
    "RecordsAct",
    "RowsAct",
    "ScaledRows",
    "ShadowState",
    "Sighting",
    "SingleTarget",
    "Stamp",
    "SybilAttempt",
    "Sybils",
    "TargetRates",
    "TradeOffFamily",
    "Trigger",
    "at_threshold",
    "class_image",
    "confidences",
    "cosine_estimate",
    "differences",
    "evade",
    "flat_update",
    "hidden_z",
    "infer_attribute",
    "infer_labels",
    "invert",
    "invert_class",
    "law_of_scores",
    "law_test",
    "least_epsilon",
    "least_leak",
    "lira",
    "losses_of",
    "membership_trials",
    "one_run_bounds",
    "power_of_law",
    "power_of_scores",
    "psnr",
    "scaled_confidences",
    "shadow_attack",
    "sigmoid_net",
    "silencing_weights",
    "sybil_cohort",
]

lazily(__name__)
