"""`python -m jobq.cli`."""

from jobq.cli import main

main()
