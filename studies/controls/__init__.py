"""The usual controls at several picture sizes."""
