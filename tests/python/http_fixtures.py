"""Fixtures of the HTTP API's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from http_api import Api, opened, served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def api(database: str) -> AsyncIterator[Api]:
    """The HTTP API in this process, on a fresh database."""
    async with opened(database) as api:
        yield api


@pytest.fixture
async def live(database: str) -> AsyncIterator[Api]:
    """The HTTP API behind a real socket, on a fresh database."""
    async with served(database) as api:
        yield api
