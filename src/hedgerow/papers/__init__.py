"""Published experiments: their studies, their printed numbers, and what is special to them. Nothing imports this room."""
