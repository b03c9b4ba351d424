"""Protect pictures of people so that they stay useful, and prove how well it worked."""
