"""The reason why a database cannot be used, for /ready, without its address or user."""

from __future__ import annotations

import socket
from os import environ
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from jobq.calls.call import statement
from jobq.errors import NotDeployed, NotPermitted, of_database

SECONDS: Final = 2


def ready(url: str) -> tuple[str, str]:
    """Check on a new connection whether queue and repo can be used: ok, or error(reason)."""
    patient = make_conninfo(url, connect_timeout=SECONDS)
    try:
        with psycopg.connect(patient, autocommit=True) as connection:
            [(queue, repo)] = connection.execute(statement("ready", ())).fetchall()
    except psycopg.Error as error:
        queue = repo = f"error({reason(url, error)})"
    return queue, repo


def reason(url: str, error: psycopg.Error) -> str:
    """Return why a connection failed, from the server's error or else from the network."""
    refusal = of_database(error)
    if isinstance(refusal, NotPermitted):
        return "auth_failed"
    if isinstance(refusal, NotDeployed):
        return "not_deployed"
    if isinstance(error, psycopg.errors.ConnectionTimeout):
        return "timeout"
    return reason_of_network(url)


def reason_of_network(url: str) -> str:
    """Return why an address cannot be reached; ``unreachable`` if it can."""
    given = {name: str(value) for name, value in conninfo_to_dict(url).items() if value}
    host = given.get("hostaddr") or given.get("host") or environ.get("PGHOST", "")
    port = given.get("port") or environ.get("PGPORT", "5432")
    try:
        knock(host.split(",")[0], int(port.split(",")[0]))
    except socket.gaierror:
        return "dns_error"
    except TimeoutError:
        return "timeout"
    except (ConnectionRefusedError, FileNotFoundError):
        return "refused"
    except (OSError, ValueError):
        return "unreachable"
    return "unreachable"


def knock(host: str, port: int) -> None:
    """Connect to a server, and disconnect; the class of an OSError is the reason."""
    if host and not host.startswith("/"):
        socket.create_connection((host, port), SECONDS).close()
        return
    with socket.socket(socket.AF_UNIX) as local:
        local.connect(f"{host or '/var/run/postgresql'}/.s.PGSQL.{port}")
