"""A private page to look at what a run did: before and after, doubtful first, with boxes to correct."""
