"""Attack a release and report what leaks and what is kept."""
