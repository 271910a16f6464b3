"""The console page of a station: what was asked, what is left of the budget, and a person's decision."""
