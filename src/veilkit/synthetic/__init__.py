"""People and faces who do not exist, drawn with their ground truth."""
