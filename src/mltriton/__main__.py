"""`python -m mltriton`: the command line."""

from mltriton.cli import main

if __name__ == "__main__":
    main()
