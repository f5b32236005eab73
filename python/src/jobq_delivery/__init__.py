"""Deliveries: jobs of endpoints reach HTTP targets, Redis streams and Kafka topics.

An endpoint is a kind without a handler: a `Deliverer` renders its templates and sends the
result. ``jobq worker`` delivers if the extra ``delivery`` is installed.
"""

from jobq_delivery.address import AddressRefused, Guard
from jobq_delivery.deliverer import Deliverer
from jobq_delivery.keyring import Keyring, SecretKeyError
from jobq_delivery.links import LinkInvalid, approval_link

__all__ = [
    "AddressRefused",
    "Deliverer",
    "Guard",
    "Keyring",
    "LinkInvalid",
    "SecretKeyError",
    "approval_link",
]
