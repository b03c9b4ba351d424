"""Where a run's work is done."""
