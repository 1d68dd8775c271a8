"""SARIF logs follow the 2.1.0 specification: properties, enumerations, references, URIs as it has them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from hangscan.model import KINDS
from hangscan.reports import sarif
from replayer.backtrace import StackFrame
from tests.unit.test_hangscan_reports import candidate, report

URI = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?(?://)?[A-Za-z0-9._~!$&'()*+,;=:@/%-]*")
PROPERTIES: dict[str, dict[str, str]] = {
    "log": {"$schema": "text", "version": "text", "runs": "run[]"},
    "run": {
        "tool": "tool", "columnKind": "text", "originalUriBaseIds": "bases", "invocations": "invocation[]",
        "results": "result[]",
    },
    "tool": {"driver": "driver"},
    "driver": {"name": "text", "semanticVersion": "text", "rules": "rule[]"},
    "rule": {
        "id": "text", "name": "text", "shortDescription": "message", "fullDescription": "message",
        "help": "message", "defaultConfiguration": "configuration", "properties": "bag",
    },
    "configuration": {"level": "level"},
    "invocation": {"executionSuccessful": "flag", "toolExecutionNotifications": "notification[]"},
    "notification": {"level": "level", "message": "message"},
    "message": {"text": "text"},
    "result": {
        "ruleId": "text", "ruleIndex": "number", "level": "level", "message": "message",
        "locations": "location[]", "stacks": "stack[]", "codeFlows": "codeFlow[]",
        "partialFingerprints": "texts", "properties": "bag",
    },
    "stack": {"message": "message", "frames": "frame[]"},
    "frame": {"location": "location"},
    "location": {
        "logicalLocations": "logical[]", "physicalLocation": "physical", "message": "message",
    },
    "logical": {"name": "text", "kind": "text"},
    "physical": {"artifactLocation": "artifact", "region": "region"},
    "artifact": {"uri": "uri", "uriBaseId": "base"},
    "region": {"startLine": "number"},
}  # fmt: skip
REQUIRED = {
    "log": {"version", "runs"}, "run": {"tool"}, "tool": {"driver"}, "driver": {"name"}, "rule": {"id"},
    "invocation": {"executionSuccessful"}, "notification": {"message"}, "message": {"text"},
    "result": {"message"}, "stack": {"frames"}, "artifact": {"uri"},
}  # fmt: skip


def check(value: Any, kind: str, bases: set[str]) -> None:
    """Assert that a value is what the specification calls for; properties it does not know are wrong."""
    if kind.endswith("[]"):
        assert isinstance(value, list)
        for one in value:
            check(one, kind[:-2], bases)
    elif kind in PROPERTIES:
        assert REQUIRED.get(kind, set()) <= value.keys()
        for name, inner in value.items():
            assert name in PROPERTIES[kind], f"{kind} has no {name}"
            check(inner, PROPERTIES[kind][name], bases)
    else:
        {
            "text": lambda: isinstance(value, str) and value != "",
            "number": lambda: isinstance(value, int) and value >= 0,
            "flag": lambda: isinstance(value, bool),
            "level": lambda: value in ("none", "note", "warning", "error"),
            "texts": lambda: all(isinstance(one, str) for one in value.values()),
            "bag": lambda: isinstance(value, dict),
            "uri": lambda: bool(URI.fullmatch(value)),
            "base": lambda: value in bases,
            "bases": lambda: all(one["uri"].endswith("/") for one in value.values()),
        }[kind]() or pytest.fail(f"{value!r} is no {kind}")


def test_a_log_of_every_kind_of_hang_is_as_specified() -> None:
    """GIVEN hangs of all kinds, with odd names, without lines, without stacks WHEN written THEN the log has
    only what SARIF 2.1.0 has, every rule is described, and indices and bases refer to what is there."""
    odd = (
        StackFrame("f<\"'>", "/src/ä b%20#?.cc", 3, "/usr/bin/app", "native"),
        StackFrame("g", "", 0, "[vdso]", "native"),
        StackFrame("h", "rel/x.py", 9, "python3", "python"),
        StackFrame("i", "C:\\x.c", 1, "/opt/a/lib.so", "native"),
    )
    found = report(*[candidate(kind) for kind in KINDS], candidate(stack=()), candidate(stack=odd))
    log = json.loads(sarif.text(found, "1.2.3", Path("/src")))
    run = log["runs"][0]
    check(log, "log", set(run["originalUriBaseIds"]))
    assert run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
    rules = run["tool"]["driver"]["rules"]
    assert {rule["id"] for rule in rules} == {f"hang/{kind}" for kind in KINDS}
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert all(place["physicalLocation"]["region"]["startLine"] >= 1 for place in result["locations"]
                   if "region" in place.get("physicalLocation", {}))  # fmt: skip
