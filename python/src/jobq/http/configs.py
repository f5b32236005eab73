"""Configs: values that the templates of endpoints refer to."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from jobq.http import examples
from jobq.http.definitions import DefinitionName, Named, Sort
from jobq.http.operation import text
from jobq.http.page import Next
from jobq.http.values import JsonMembers, JsonObject, Moment


class ConfigChange(Named, kw_only=True):
    """Values that the templates of endpoints refer to."""

    values: JsonMembers

    def arguments(self) -> dict[str, Any]:
        """Return what jobq.put_config() takes."""
        return {"entries": text(self.values)}


class NewConfig(ConfigChange, kw_only=True):
    """Values that the templates of endpoints refer to, with their name."""

    name: DefinitionName


class Config(Struct):
    """Values that the templates of endpoints refer to."""

    name: str
    values: JsonObject
    version: int
    created_at: Moment
    updated_at: Moment


class ConfigPage(Struct):
    """A page of configs, by name."""

    items: list[Config]
    cursor: Next


OPERATIONS = Sort(
    "/configs",
    "config",
    "a config",
    NewConfig,
    ConfigChange,
    Config,
    ConfigPage,
    examples.CONFIG,
    ["TEMPLATE_RESOLUTION_FAILED"],
).operations()
