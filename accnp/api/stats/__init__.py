"""Probability distributions and statistics of samples; `accnp.scipy.stats` has their names."""
