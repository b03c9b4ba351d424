"""A paper's tables in small: `python -m studies NAME` computes one, `python -m studies --list` names them."""
