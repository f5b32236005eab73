"""Fixtures: DATABASE_URL names a database where `jobq deploy` has run."""

pytest_plugins = ["jobq_contrib.pytest"]
