"""Networks that make up records: CTGAN, TVAE and PATE-GAN, trained where the records are."""
