"""Methods side by side on somebody's own pictures: protected, audited and compared by one command."""
