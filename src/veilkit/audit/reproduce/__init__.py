"""A paper's tables and figures in small: independent cells, one JSON file each, and what is drawn from them."""
