"""`python -m jobq_cli`."""

from jobq_cli import main

main()
