"""Penalised regression: ridge, lasso and elastic net, with paths and cross-validation by sums."""
