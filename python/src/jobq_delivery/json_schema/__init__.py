"""Payloads against JSON Schema, draft 2020-12; needs the extra ``delivery``."""
