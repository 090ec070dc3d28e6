"""Entry point of `python -m evenmatch`: the command line."""

from evenmatch.cli import main

if __name__ == "__main__":
    main()
