"""Deliveries: jobs of endpoints reach HTTP targets, Redis streams and Kafka topics.

An endpoint is a kind whose jobs no handler does: a `Deliverer` renders its templates and
sends the result. ``jobq worker`` delivers by itself where the extra ``delivery`` is
installed.
"""

from jobq.keyring import Keyring, SecretKeyError
from jobq_delivery.address import AddressRefused, Guard
from jobq_delivery.deliverer import Deliverer

__all__ = ["AddressRefused", "Deliverer", "Guard", "Keyring", "SecretKeyError"]
