"""Features for private learning: fixed ones that cost nothing, private centres and components, frozen layers."""

from .centre import centre, centring
from .chain import Features
from .frozen import freeze, trained
from .principal import Basis, principal, projection
from .scattering import scatter, scattering
from .steps import Step
from .straight import straighten, straightening
from .training import FeatureState, dpsgd_on_features

__all__ = [
    "Basis",
    "FeatureState",
    "Features",
    "Step",
    "centre",
    "centring",
    "dpsgd_on_features",
    "freeze",
    "principal",
    "projection",
    "scatter",
    "scattering",
    "straighten",
    "straightening",
    "trained",
]
