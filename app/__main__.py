"""`python -m app` is `onthedot`."""

from app.cli import main

main()
