"""AVIH: noise that keeps an expert's features, and that a secret key model turns back into the picture."""
