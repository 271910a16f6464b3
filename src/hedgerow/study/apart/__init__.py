"""Studies of parties that hold different columns of the same people: their sections, their checks, their runs and words."""
