"""What an audit computes: independent cells, each one JSON file, and what they cost."""
