"""FRO: synthetic pictures assembled from what a classifier knows of many people."""
