"""Validation by JSON Schema, draft 2020-12; requires the extra ``delivery``."""
