"""What a reader sees: HTML, Markdown, terminal, comparisons."""
