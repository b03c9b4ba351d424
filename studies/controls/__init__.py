"""The usual controls: what they keep and hide on a whole test part, and by a picture's size."""
