"""The JSON schema of interface files, made from what the reader accepts."""

from __future__ import annotations

from typing import Any

from interfaces.libspec.model import PART_KINDS

_NAMES = {str: "string", bool: "boolean", int: "integer", list: "array", dict: "object"}


def schema() -> dict[str, Any]:
    """JSON schema (2020-12) of an interface file as a TOML editor sees it."""
    roles = {"type": "string", "description": f"CONDITION ? ROLE, ROLE; roles: {', '.join(PART_KINDS)}"}
    either = {"oneOf": [roles, {"type": "array", "items": roles}]}
    arguments = {"type": "object", "additionalProperties": either}

    def table(keys: dict[str, Any], required: list[str]) -> dict[str, Any]:
        properties: dict[str, Any] = {}
        for key, kind in keys.items():
            kinds = kind if isinstance(kind, tuple) else (kind,)
            properties[key] = {"type": [_NAMES[item] for item in kinds]}
        if "args" in properties:
            properties["args"] = arguments
        return {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }

    module = load_keys()
    top = table(module["top"], ["function"])
    top["anyOf"] = [{"required": ["library"]}, {"required": ["program"]}]
    top["properties"]["function"] = {
        "type": "object",
        "additionalProperties": table(module["function"], ["prototype"]),
    }
    top["properties"]["callback"] = {
        "type": "object",
        "additionalProperties": table(module["callback"], ["prototype"]),
    }
    part = table({"name": str, "only": list}, ["name", "only"])
    several = {
        "type": "object",
        "properties": {"use": {"type": "array", "items": {"oneOf": [{"type": "string"}, part]}}},
        "required": ["use"],
        "additionalProperties": False,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "rr-py library interface",
        "oneOf": [top, several],
    }


def load_keys() -> dict[str, dict[str, Any]]:
    """The keys of the three kinds of tables and the types of their values."""
    from interfaces.libspec.load import CALLBACK_KEYS, FUNCTION_KEYS, TOP_KEYS

    return {"top": TOP_KEYS, "function": FUNCTION_KEYS, "callback": CALLBACK_KEYS}
