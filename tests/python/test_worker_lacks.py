"""How a worker tells which kinds it cannot do."""

from __future__ import annotations

from jobq.worker.lacks import MOST, NAMED, Lacks


def test_every_kind_is_named_up_to_a_bound() -> None:
    lacks = Lacks()
    lacks.told({"b": ("KEY", "no key"), "a": ("KEY", "no key"), "c": ("KEY", "no other key")})
    lacks.met("d", "DRIVER", "no driver")
    told = "a, b: no key; c: no other key"
    assert lacks.texts() == {"KEY": told, "DRIVER": "d: no driver"}
    assert lacks.texts(is_told=True) == {"KEY": told}
    assert lacks.left == {"KEY": 3}
    lacks.told({})
    assert (lacks.texts(), lacks.left) == ({"DRIVER": "d: no driver"}, {})


def test_kinds_that_anybody_names_are_bounded() -> None:
    lacks = Lacks()
    for n in range(MOST + 5):
        lacks.met(f"k{n:05}", "UNKNOWN_KIND", "no handler of this kind")
    text = lacks.texts()["UNKNOWN_KIND"]
    assert text.count(",") == NAMED - 1
    assert text.endswith(f"k{NAMED - 1:05}: no handler of this kind; and {MOST - NAMED} more")
