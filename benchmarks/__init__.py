"""Speed, memory and robustness, each measured by one script, and the claims that follow."""
