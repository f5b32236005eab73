"""Deliveries: jobs of endpoints reach HTTP targets, Redis streams and Kafka topics.

An endpoint is a kind whose jobs no handler does: a `Deliverer` renders its templates and
sends the result. ``jobq worker`` delivers by itself where the extra ``delivery`` is
installed.
"""

from jobq.delivery.address import AddressRefused, Guard
from jobq.delivery.deliverer import Deliverer
from jobq.delivery.secret import Keyring, SecretKeyError

__all__ = ["AddressRefused", "Deliverer", "Guard", "Keyring", "SecretKeyError"]
