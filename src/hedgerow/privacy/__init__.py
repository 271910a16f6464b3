"""Privacy: mechanisms on an integer grid, accountants of the ledger, budgets that refuse."""

from .accounting import epsilon
from .budget import Budget
from .mechanisms import Gaussian, Laplace, Noise

__all__ = ["Budget", "Gaussian", "Laplace", "Noise", "epsilon"]
