"""Training of Disguise: swapper, identity transform and critics."""
