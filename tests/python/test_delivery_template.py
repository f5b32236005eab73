"""Templates, by cases."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from jobq_delivery.template import Rendering, TemplateError, TooLargeError, as_json, exact

SCOPE = {
    "input": {"user": {"name": "Ada", "tags": ["a", {"b": 1}]}, "n": 12.5, "none": None},
    "config": {"url": "https://a.example", "evil": "{{secret.key}}", "on": True},
    "secret": {"key": "s3cret"},
    "job": {"id": "j1", "attempt": 2},
}


def render(template: Any, limit: int = 10_000) -> Any:
    return Rendering(SCOPE, limit).value(template)


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
        ("{{input}}", SCOPE["input"]),
        ("{{job.id}}/{{job.attempt}}", "j1/2"),
        ("{{job.attempt}}", 2),
        ('{{input.nobody ?? "none"}}', "none"),
        ("{{input.nobody??null}}", None),
        ("{{input.none ?? 7}}", 7),
        ("{{input.n ?? 7}}", 12.5),
        ("{{input.nobody ?? []}}", []),
        ('<{{config.nobody ?? ""}}>', "<>"),
    ],
)  # fmt: skip
def test_a_template_is_rendered(template: Any, rendered: Any) -> None:
    assert render(template) == rendered


@pytest.mark.parametrize(
    "template",
    [
        "{{input.nobody}}",
        "{{input.user.name.first}}",
        "{{input.user.tags.2}}",
        "{{input.user.tags.-1}}",
        "{{secret.other}}",
        "{{env.HOME}}",
        "{{secret}}",
        "{{job}}",
        "{{job.nobody}}",
        "{{input.nobody ?? none}}",
        "{{}}",
        "{{input.user name}}",
        ["deep", {"er": "{{config.nobody}}"}],
    ],
)
def test_what_is_not_there_is_refused(template: Any) -> None:
    with pytest.raises(TemplateError) as refused:
        render(template)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "value", "made"),
    [
        ("https://a.example/{{input.v}}", "b c/d?e#f", "https://a.example/b%20c%2Fd%3Fe%23f"),
        ("{{config.url}}/x?a={{input.v}}&b=1", "1&b=2", "https://a.example/x?a=1%26b%3D2&b=1"),
        ("{{config.url}}/{{job.id}}/{{input.v}}", 7, "https://a.example/j1/7"),
        ("https://a.example/{{input.v}}", "\u00fc\r\n", "https://a.example/%C3%BC%0D%0A"),
        ("{{config.url}}/{{secret.key}}", None, "https://a.example/s3cret"),
    ],
)
def test_values_in_urls_are_encoded(url: str, value: Any, made: str) -> None:
    assert Rendering({**SCOPE, "input": {"v": value}}, 1000).url(url) == made


@pytest.mark.parametrize(
    ("url", "value"),
    [
        ("https://{{input.v}}/", "evil.example"),
        ("https://a.example{{input.v}}/", "b"),
        ("https://a.example{{input.v}}", ".evil.example"),
        ("https://a.example:{{input.v}}/", 22),
        ("{{input.v}}://a.example/", "http"),
        ("{{config.url}}{{input.v}}/", ".evil.example"),
        ("https://a.example/x/{{input.v}}/y", ".."),
        ("https://a.example/x/.{{input.v}}/y", "."),
        ("https://a.example/x/%2e{{input.v}}/y", "."),
        ("https://a.example/x/{{input.v}}", "../y"),
        ("https://a.example/x/{{input.v}}", "y\\\\.."),
        ("https://a.example/x/{{input.v}}", "%2e%2e%252fy"),
        ("https://a.example/x/{{input.v}}/y", "..?x"),
        ("https://a.example/x/{{input.v}}/y", "..#"),
        ("https://a.example/x/{{input.v}}/y", "..;x"),
        ("https://a.example/x/{{input.v}}/y", "..%00"),
        ("https://a.example/x/{{input.v}}/y", "%u002e%u002E"),
        ("https://a.example/x/{{input.v}}/y", "%c0%ae%E0%80%ae"),
        ("https://a.example/x/{{input.v}}/y", "z%c0%af\uff0e."),
    ],
)
def test_input_reaches_no_host_and_leads_nowhere_up(url: str, value: Any) -> None:
    with pytest.raises(TemplateError):
        Rendering({**SCOPE, "input": {"v": value}}, 1000).url(url)


@pytest.mark.parametrize(
    "value", ["a..b", "...", "..a?x", ".a", "?..", "v1.2", "\u2026", "%", "%zz"]
)
def test_other_dots_of_input_are_sent(value: str) -> None:
    assert Rendering({"input": value}, 1000).url("https://a.example/x/{{input}}/y?q={{input}}")


@pytest.mark.parametrize("index", ["9" * 5000, "9", "²", "-1"])
def test_an_index_that_is_not_there_cannot_be_resolved(index: str) -> None:
    """Python makes no number of more than 4,300 digits."""
    with pytest.raises(TemplateError):
        render(f"{{{{input.user.tags.{index}}}}}")


def test_what_templates_bring_is_bounded_while_it_is_made() -> None:
    """A hundred million bytes in a value that stands often are never there at a time."""
    large = "x" * 100_000
    rendering = Rendering({"input": {"text": large}}, 250_000)
    tracemalloc.start()
    try:
        for template in (["{{input.text}}"] * 1000, "{{input.text}}" * 1000, "{{input}}"):
            with pytest.raises(TooLargeError):
                rendering.value(template)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
    assert render(["{{input.n}}"] * 10, 40) == [12.5] * 10
    with pytest.raises(TooLargeError):
        render(["{{input.n}}"] * 11, 40)


@pytest.mark.parametrize(
    "number",
    ["0.1000000000000000055", "123456789012345678901234567890", "1E+300", "5.0", "-0.0", "12.50"],
)
def test_numbers_keep_every_digit(number: str) -> None:
    assert as_json(exact(number)).decode() == number
    assert Rendering({"input": exact(number)}, 100).value("n={{input}}") == f"n={number}"
