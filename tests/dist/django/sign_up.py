"""Enqueue a task in a transaction, and another in one that is rolled back."""

from __future__ import annotations

import django
import manage  # noqa: F401 - the settings
from django.db import transaction

django.setup()

from shop.tasks import welcome  # noqa: E402 - the decorator needs the settings

with transaction.atomic():
    welcome.enqueue("nobody")
    transaction.set_rollback(True)
with transaction.atomic():
    result = welcome.enqueue("Ada")
print(result.id)
