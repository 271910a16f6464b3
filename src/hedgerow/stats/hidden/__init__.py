"""Models and scalings that parties do not see."""
