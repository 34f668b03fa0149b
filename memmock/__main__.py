"""`python -m memmock` and the `memmock` command."""

from memmock.cli import main

if __name__ == "__main__":
    main()
