"""Interface files: what is read from them, and the one clear message for each mistake."""

from __future__ import annotations

import pytest

from interfaces.libspec import SpecError, load, shipped
from interfaces.libspec.load import parse
from interposer.library import generate

HEAD = (
    'library = "libx.so.1"\nhandles = ["thing"]\ntypes = "typedef struct thing thing; enum { MANY = 3 };"\n'
)


def one(body: str) -> str:
    return f"{HEAD}[function.f]\n{body}\n"


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_interface_is_read_and_makes_stubs(name: str) -> None:
    interface = load(name)
    text = generate.source(generate.number([interface])[0], "")
    for function in interface.functions.values():
        assert (f"rr_f_{function.name}(" in text) == (function.special != "instruction")


def test_roles_that_types_imply() -> None:
    interface = parse(
        one('prototype = "int f(thing *t, const char *s, int *n, thing **out, double d)"'), "x.toml"
    )
    kinds = [p.roles[0].parts[0].kind for p in interface.functions["f"].parameters]
    assert kinds == ["handle", "string", "out", "out", "value"]


@pytest.mark.parametrize(
    ("body", "where", "key", "problem"),
    [
        ('prototype = "int f(int a"', "function f", "prototype", "does not parse"),
        ('prototype = "int g(int a)"', "function f", "prototype", "declares 'g'"),
        ('prototype = "int f(void *p)"', "function f", "args.p", "must be given"),
        ('prototype = "void *f(int a)"', "function f", "returns", "must be given"),
        ('prototype = "int f(void *p)"\nargs = { q = "data" }', "function f", "args.q", "no parameter"),
        (
            'prototype = "int f(void *p, int n)"\nargs = { p = "out[n +]" }',
            "function f",
            "args.p",
            "does not parse",
        ),
        ('prototype = "int f(void *p, int n)"\nargs = { p = "out[m]" }', "function f", "args.p", "'m'"),
        ('prototype = "int f(void *p, int n)"\nargs = { p = "out[n++]" }', "function f", "args.p", "changes"),
        ('prototype = "int f(void *p)"\nargs = { p = "out" }', "function f", "args.p", "needs a size"),
        ('prototype = "int f(void *p)"\nargs = { p = "otu[1]" }', "function f", "args.p", "is no role"),
        (
            'prototype = "int f(void (*c)(void))"\nargs = { c = "callback c" }',
            "function f",
            "args.c",
            "[callback.c]",
        ),
        ('prototype = "int f(const char *s, ...)"', "function f", "variadic", "is needed"),
        ('prototype = "int f(int a)"\nprototyp = 1', "function f", "prototyp", "did you mean 'prototype'"),
        ('prototype = "int f(int a)"\noutputs = ["bytes: p"]', "function f", "outputs", "second part"),
    ],
)
def test_mistakes_name_file_function_and_key(body: str, where: str, key: str, problem: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse(one(body), "x.toml")
    assert (caught.value.file, caught.value.where, caught.value.key) == ("x.toml", where, key)
    assert problem in caught.value.message


def test_wrong_soname_and_unknown_interface() -> None:
    with pytest.raises(SpecError, match="no soname"):
        parse('library = "sqlite"\n', "x.toml")
    with pytest.raises(SpecError, match=r"Did you mean sqlite3\?"):
        load("sqlite")


def test_old_values_are_kept_before_the_call() -> None:
    text = parse(
        one('prototype = "int f(char *p, int *n)"\nargs = { p = "out[old(*n) - *n]", n = "inout[1]" }'),
        "x.toml",
    )
    stub = generate.source(generate.number([text])[0], "")
    assert "__typeof__(*n) rr_old0 = (*n);" in stub
