"""``python -m halfmask``: the command line."""

from halfmask.cli.main import run

if __name__ == "__main__":
    run()
