"""`python -m dtfctl` is the command line."""

from dtfctl.cli import main

if __name__ == "__main__":
    main()
