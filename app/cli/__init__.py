"""The command line."""

from app.cli.root import main

__all__ = ["main"]
