"""Papers' tables and figures in small: `python -m studies NAME`."""
