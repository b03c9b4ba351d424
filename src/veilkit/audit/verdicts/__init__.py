"""What the cells let a reader conclude: verdicts by level, findings, gaps and remedies."""
