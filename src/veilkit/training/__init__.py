"""The loops: progress, checkpoints, exact resume."""
