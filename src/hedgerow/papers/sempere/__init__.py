"""Sempere 2024: federated averaging under partitions, and made-up records beside real ones."""
