"""Models that judge or supervise, each owning its resize and normalisation."""
