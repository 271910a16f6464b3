"""How good a model is, by sums: errors, ROC and AUC, calibration, odds ratios."""
