"""Split networks: layers at the parties that hold the columns, and what crosses between them."""
