"""The client: each method is one call of one function of the database."""

from jobq.client.client import AsyncClient, Client

__all__ = ["AsyncClient", "Client"]
