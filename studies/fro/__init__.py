"""FRO's tables and figures in small."""
