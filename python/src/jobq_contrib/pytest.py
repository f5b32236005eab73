"""Fixtures for tests of code that enqueues: pytest_plugins = ["jobq_contrib.pytest"].

    def test_sign_up(jobq_client, run_due):
        sign_up(jobq_client, "ada@example.org")
        [ran] = run_due(registry)
        assert ran.state == "succeeded"

Each test runs in one transaction, which is rolled back. Override `jobq_connection` to use your own
connection.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import jobq_testing as testing
from jobq.client import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["jobq_client", "jobq_connection", "run_due"]


@pytest.fixture
def jobq_connection() -> Iterator[psycopg.Connection[Any]]:
    """A connection to ``DATABASE_URL``, where jobq is installed; rolled back at the end."""
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        yield connection
        connection.rollback()


@pytest.fixture
def jobq_client(jobq_connection: psycopg.Connection[Any]) -> Client:
    """A client in the transaction of the test."""
    return Client(jobq_connection)


@pytest.fixture
def run_due(jobq_connection: psycopg.Connection[Any]) -> Callable[..., list[testing.Ran]]:
    """`jobq_testing.run_due` on the connection of the test: ``run_due(registry)``."""
    return partial(testing.run_due, jobq_connection)
