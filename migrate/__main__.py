"""Lets `python -m migrate` do what the command `kraft-migrate` does."""

from migrate.cli.main import main

if __name__ == "__main__":
    main()
