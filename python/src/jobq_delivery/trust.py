"""The trusted certificate authorities of deliveries; separate from HTTP, which loads late."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from typing import Final

import certifi

from jobq.errors import InvalidArgument

CA_FILE: Final = "JOBQ_DELIVERY_CA_FILE"


def trusting(environment: Mapping[str, str] = os.environ) -> ssl.SSLContext:
    """Return a context that trusts the public authorities and those of JOBQ_DELIVERY_CA_FILE."""
    trust = ssl.create_default_context(cafile=certifi.where())
    name = environment.get(CA_FILE)
    if name:
        try:
            trust.load_verify_locations(name)
        except (OSError, ssl.SSLError) as error:
            raise InvalidArgument(
                "the file of authorities cannot be read", detail=f"{CA_FILE} {name}: {error}"
            ) from error
    return trust
