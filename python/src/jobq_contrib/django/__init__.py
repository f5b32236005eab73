"""jobq in a Django project: INSTALLED_APPS = [..., "jobq_contrib.django"].

    with transaction.atomic():
        customer = Customer.objects.create(name="Ada")
        client().enqueue("welcome", {"customer_id": customer.pk})

The job exists when the transaction has committed, without ``on_commit``. The app adds
`manage.py jobq_worker`, and shows jobs and schedules in the admin.
"""

from __future__ import annotations

import psycopg
from django.db import connections

from jobq.client import Client
from jobq.errors import InvalidArgument

__all__ = ["client"]


def client(using: str = "default") -> Client:
    """Return a client that uses Django's connection and its transaction.

    Args:
        using: the alias of the database.

    Raises:
        InvalidArgument: the database is not PostgreSQL with psycopg 3.
    """
    home = connections[using]
    # As Django's cursors do. It does not see this client's errors, and would keep a closed one.
    home.close_if_health_check_failed()
    if getattr(home.connection, "closed", False) and not home.in_atomic_block:
        home.close()
    home.ensure_connection()
    if not isinstance(home.connection, psycopg.Connection):
        raise InvalidArgument(
            f"the database {using} has the driver {type(home.connection).__module__}",
            hint="use django.db.backends.postgresql with psycopg 3",
        )
    return Client(home.connection)
