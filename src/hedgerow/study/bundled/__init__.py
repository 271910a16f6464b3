"""Studies that come with Hedgerow and repeat no paper, and the models that they name."""
