"""Vertical learning: parties hold different columns of the same people."""
