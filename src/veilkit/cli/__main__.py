"""`python -m veilkit.cli`: the command line where no script of it is installed."""

from veilkit.cli import main

if __name__ == "__main__":
    main()
