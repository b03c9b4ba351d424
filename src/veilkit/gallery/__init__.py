"""A protected feature gallery: noisy vectors to search, pseudonyms, cameras and times; never a picture or a clean vector."""
