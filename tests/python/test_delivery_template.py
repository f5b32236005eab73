"""Templates, by cases."""

from __future__ import annotations

from typing import Any

import pytest

from jobq.delivery.template import TemplateError, render

SCOPE = {
    "input": {"user": {"name": "Ada", "tags": ["a", {"b": 1}]}, "n": 12.5, "none": None},
    "config": {"url": "https://a.example", "evil": "{{secret.key}}", "on": True},
    "secret": {"key": "s3cret"},
}


@pytest.mark.parametrize(
    ("template", "rendered"),
    [
        ("plain", "plain"),
        (7, 7),
        (None, None),
        ("{{input.n}}", 12.5),
        ("{{ input.n }}", 12.5),
        ("n={{input.n}}", "n=12.5"),
        ("{{input.none}}", None),
        ("{{input.none}}!", "null!"),
        ("{{config.on}}", True),
        ("{{config.on}} {{input.user.name}}", "true Ada"),
        ("{{input.user}}", SCOPE["input"]["user"]),  # type: ignore[index]
        ("{{input.user.tags.1.b}}", 1),
        ("t={{input.user.tags}}", 't=["a",{"b":1}]'),
        ({"a": ["{{config.url}}/x", {"b": "{{secret.key}}"}]},
         {"a": ["https://a.example/x", {"b": "s3cret"}]}),
        ({"{{input.n}}": 1}, {"{{input.n}}": 1}),
        ("{{config.evil}}", "{{secret.key}}"),
        ("<{{config.evil}}>", "<{{secret.key}}>"),
        ("{{ not closed }", "{{ not closed }"),
    ],
)  # fmt: skip
def test_a_template_is_rendered(template: Any, rendered: Any) -> None:
    assert render(template, SCOPE) == rendered


@pytest.mark.parametrize(
    "template",
    [
        "{{input.nobody}}",
        "{{input.user.name.first}}",
        "{{input.user.tags.2}}",
        "{{input.user.tags.-1}}",
        "{{secret.other}}",
        "{{env.HOME}}",
        "{{input}}",
        "{{}}",
        "{{input.user name}}",
        ["deep", {"er": "{{config.nobody}}"}],
    ],
)
def test_what_is_not_there_is_refused(template: Any) -> None:
    with pytest.raises(TemplateError) as refused:
        render(template, SCOPE)
    assert "s3cret" not in str(refused.value)
