"""Reading and writing pictures safely; nothing here knows of methods or experts."""
