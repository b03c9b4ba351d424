"""Building blocks without training policy."""
