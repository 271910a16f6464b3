"""A price for a unit of precision, and what owners answer."""
