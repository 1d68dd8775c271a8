"""Reading and checking interface files."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from interfaces.libspec import roles
from interfaces.libspec.cdecl import CError, Declarations, Prototype
from interfaces.libspec.errors import SpecError
from interfaces.libspec.model import Callback, CType, Extra, Function, Guarded, Interface, Parameter, Part

FOLDER = Path(__file__).parent.parent / "library"
"""Where the interfaces that come with the tool are."""

ADDED = ("pthread", "random")
"""Interfaces that recordings get by themselves: `pthread` each, `random` where libc is recorded."""

TOP_KEYS = {
    "title": str,
    "library": (str, list),
    "program": str,
    "use": list,
    "types": str,
    "handles": list,
    "errno": bool,
    "function": dict,
    "callback": dict,
    "name": str,
    "optional": bool,
}
FUNCTION_KEYS = {
    "prototype": str,
    "args": dict,
    "returns": str,
    "outputs": list,
    "inputs": list,
    "errno": bool,
    "release": bool,
    "ordered": bool,
    "live": str,
    "variadic": str,
    "special": str,
    "optional": bool,
    "ends": bool,
    "refuse": int,
    "symbol": str,
}
CALLBACK_KEYS = {"prototype": str, "args": dict, "returns": str, "symbol": str}
SPECIALS = frozenset(
    {
        "pthread_create",
        "pthread_join",
        "cond_wait",
        "fork",
        "close",
        "dup",
        "fcntl",
        "fclose",
        "freopen",
        "live_stream",
        "mmap",
        "epoll_ctl",
        "epoll_wait",
        "open",
        "wait",
        "exec",
        "starts",
        "sigaction",
        "signal",
        "sysv_signal",
        "siginterrupt",
        "sigmask",
        "timer_create",
        "longjmp",
        "output",
        "end",
        "instruction",
        "through",
        "thread_end",
        "unlock",
        "syscall",
        "login_tty",
    }
)
_SECOND = {
    "blocks": "LVALUE | SIZE",
    "bytes": "POINTER | SIZE",
    "copy": "POINTER | SIZE",
    "line": "CHAR_POINTER | SIZE",
    "offset": "LVALUE | POINTER",
    "remember": "HANDLE | CHAR_POINTER",
    "vector": "IOVEC_POINTER | COUNT, SIZE",
    "kept": "POINTER | SIZE",
}
EXTRA_KINDS = (
    "value",
    "advance",
    "string",
    "strings",
    "blocks",
    "bytes",
    "offset",
    "pointer",
    "line",
    "stream",
    "copy",
    "vector",
    "addresses",
    "scanned",
    "kept",
    "remember",
    "remembered",
)
INPUT_KINDS = ("value", "string", "bytes", "vector")


def shipped() -> list[str]:
    """Names of the interfaces that come with the tool."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load_all(names: Iterable[str]) -> list[Interface]:
    """Each interface once, in the order given; a file that says `use = [...]` stands for several, and for
    itself if it has functions.

    Of an entry `{ name = "zlib", only = ["gzopen", "gzread"] }` only these functions are taken.
    """
    from interfaces.libspec.restrict import restrict

    wanted: dict[str, list[str] | None] = {}
    for name in names:
        for used, only in _used(name) or [(name, None)]:
            wanted[used] = None if used in wanted or only is None else only
    return [load(name) if only is None else restrict(load(name), only) for name, only in wanted.items()]


def completed(interfaces: Sequence[Interface]) -> list[Interface]:
    """The interfaces with those that go with them (ADDED)."""
    have = [interface.name for interface in interfaces]
    wanted = ["random", "pthread"] if "libc" in have else ["pthread"]
    return [*interfaces, *(load(name) for name in wanted if name not in have)]


def _used(name: str) -> list[tuple[str, list[str] | None]]:
    """The interfaces a file stands for and what is taken of each, none for an ordinary file."""
    if not ("/" in name or name.endswith(".toml")):
        return []
    try:
        document = tomllib.loads(Path(name).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return []
    if "use" not in document:
        return []
    found: list[tuple[str, list[str] | None]] = []
    for item in document["use"] if isinstance(document["use"], list) else [None]:
        match item:
            case str():
                found.append((item, None))
            case {"name": str() as used, "only": [*only]} if all(isinstance(word, str) for word in only):
                found.append((used, [str(word) for word in only]))
            case _:
                raise SpecError(name, "", "use", "is no list of names or of { name = ..., only = [...] }")
    return [*found, (name, None)] if "function" in document else found


def load(name: str) -> Interface:
    """Read a shipped interface by name, or a file by its path. Raises SpecError."""
    if "/" in name or name.endswith(".toml"):
        path = Path(name)
    else:
        path = FOLDER / f"{name}.toml"
        if not path.exists():
            near = difflib.get_close_matches(name, shipped(), 1)
            hint = f"Did you mean {near[0]}? " if near else ""
            raise SpecError(
                name,
                "",
                "",
                "there is no interface of this name",
                f"{hint}There are {', '.join(shipped())}; or give the path of a file.",
            )
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as why:
        raise SpecError(str(path), "", "", f"cannot be read: {why.strerror}") from None
    except UnicodeDecodeError:
        raise SpecError(str(path), "", "", "is not UTF-8 text") from None
    return parse(text, str(path))


def parse(text: str, file: str) -> Interface:
    """Parse the text of an interface file; `file` is its name in messages. Raises SpecError."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as why:
        raise SpecError(file, "", "", f"is not TOML: {why}") from None
    return _Reader(file, document).interface(text)


class _Reader:
    """One file being read."""

    def __init__(self, file: str, document: dict[str, Any]) -> None:
        self.file = file
        self.document = document
        self._keys(document, TOP_KEYS, "")
        libraries = document.get("library", document.get("program"))
        if not libraries or not all(isinstance(item, str) for item in [*libraries]):
            raise SpecError(file, "", "library", 'names no library: give a soname, such as "libz.so.1"')
        self.libraries = (libraries,) if isinstance(libraries, str) else tuple(libraries)
        for item in self.libraries:
            if "/" in item or (".so" not in item and "program" not in document):
                raise SpecError(file, "", "library", f'{item!r} is no soname, such as "libz.so.1"')
        try:
            self.c = Declarations(document.get("types", ""))
        except CError as why:
            raise SpecError(file, "", "types", f"does not parse as C: {why}") from None
        self.handles = frozenset(document.get("handles", []))
        self.checks: list[tuple[object, str, frozenset[str]]] = []

    def interface(self, text: str) -> Interface:
        tables: dict[str, dict[str, Any]] = self.document.get("function", {})
        back: dict[str, dict[str, Any]] = self.document.get("callback", {})
        if not tables:
            raise SpecError(self.file, "", "function", "there is no function in this file")
        prototypes = self._prototypes("function", tables)
        types = self._prototypes("callback", back)
        self.callbacks = {name: self._callback(name, back[name], types[name]) for name in back}
        functions = {name: self._function(name, tables[name], prototypes[name]) for name in tables}
        for where, problem in self.c.expressions(self.checks, frozenset(tables)):
            assert isinstance(where, tuple)
            raise SpecError(self.file, where[0], where[1], problem)
        return Interface(
            name=self.document.get("name", Path(self.file).stem),
            path=self.file,
            title=self.document.get("title", ""),
            libraries=self.libraries,
            types=self.document.get("types", ""),
            functions=functions,
            callbacks=self.callbacks,
            text=text,
        )

    def _keys(self, table: Mapping[str, Any], known: Mapping[str, Any], where: str) -> None:
        for key, value in table.items():
            if key not in known:
                near = difflib.get_close_matches(key, known, 1)
                raise SpecError(
                    self.file,
                    where,
                    key,
                    "is no key of an interface file" + (f"; did you mean {near[0]!r}?" if near else ""),
                )
            if not isinstance(value, known[key]):
                raise SpecError(self.file, where, key, f"has a value of the wrong type: {value!r}")

    def _prototypes(self, what: str, tables: Mapping[str, Any]) -> dict[str, Prototype]:
        known = FUNCTION_KEYS if what == "function" else CALLBACK_KEYS
        texts = {}
        for name, table in tables.items():
            where = f"{what} {name}"
            if not isinstance(table, dict):
                raise SpecError(self.file, where, "", f"is no table: write [{what}.{name}]")
            self._keys(table, known, where)
            if "prototype" not in table:
                raise SpecError(self.file, where, "prototype", "is missing")
            texts[name] = table["prototype"]
        try:
            found = self.c.prototypes(texts)
        except CError as why:
            name, problem = why.args if len(why.args) == 2 else ("?", str(why))
            raise SpecError(
                self.file, f"{what} {name}", "prototype", f"does not parse as C: {problem}"
            ) from None
        for name, prototype in found.items():
            if what == "function" and prototype.name != name:
                raise SpecError(self.file, f"function {name}", "prototype", f"declares {prototype.name!r}")
        return found

    def _callback(self, name: str, table: dict[str, Any], prototype: Prototype) -> Callback:
        where = f"callback {name}"
        names = frozenset(param for param, _ in prototype.parameters) | {"result"}
        parameters = self._parameters(where, table, prototype, names, given=True)
        result = table.get("returns", "value")
        if result not in ("value", "handle"):
            problem = "is 'value' (compared) or 'handle' (the program's own)"
            raise SpecError(self.file, where, "returns", problem)
        return Callback(name, prototype.returns, parameters, table.get("symbol", ""), result)

    def _function(self, name: str, table: dict[str, Any], prototype: Prototype) -> Function:
        where = f"function {name}"
        names = frozenset(param for param, _ in prototype.parameters) | {"result"}
        parameters = self._parameters(where, table, prototype, names, given=False)
        if prototype.has_dots and "variadic" not in table:
            raise SpecError(
                self.file,
                where,
                "variadic",
                "is needed: the function takes `...`",
                'Name the variant that takes a va_list (variadic = "vprintf"), or write the '
                "further parameters into the prototype instead of `...`.",
            )
        for key in ("live",):
            if key in table:
                self.checks.append(((where, key), table[key], names))
        special = table.get("special", "")
        if special and special not in SPECIALS:
            raise SpecError(
                self.file, where, "special", f"{special!r} is none of {', '.join(sorted(SPECIALS))}"
            )
        result = self._result(where, table, prototype.returns, names)
        outputs = tuple(self._extras(where, "outputs", table.get("outputs", []), names))
        inputs = tuple(self._extras(where, "inputs", table.get("inputs", []), names - {"result"}))
        return Function(
            name=name,
            returns=prototype.returns,
            result=result,
            parameters=parameters,
            outputs=outputs,
            inputs=inputs,
            errno=table.get("errno", self.document.get("errno", False)),
            release=table.get("release", False),
            ordered=table.get("ordered", False),
            live=table.get("live", ""),
            variadic=table.get("variadic", ""),
            special=special,
            optional=table.get("optional", self.document.get("optional", False)),
            ends=table.get("ends", False),
            refuse=table.get("refuse", 0),
            symbol=table.get("symbol", ""),
            has_dots=prototype.has_dots,
        )

    def _parameters(
        self, where: str, table: dict[str, Any], prototype: Prototype, names: frozenset[str], *, given: bool
    ) -> tuple[Parameter, ...]:
        said = table.get("args", {})
        for key in said:
            if key not in names:
                raise SpecError(
                    self.file, where, f"args.{key}", "the prototype has no parameter of this name"
                )
        found = []
        for name, kind in prototype.parameters:
            if name == "result" or name.startswith("rr_"):
                raise SpecError(self.file, where, "prototype", f"a parameter cannot be called {name!r}")
            texts = said.get(name)
            if texts is None:
                role = roles.default(kind, self.c.pointee_name(kind), self.handles, given=given)
                if role is None:
                    raise SpecError(
                        self.file,
                        where,
                        f"args.{name}",
                        f"must be given: {kind.declare(name).strip()!r} may be anything",
                        "Say what crosses: in[size], out[size], string, handle, data, callback NAME, ignore.",
                    )
                guarded: tuple[Guarded, ...] = (role,)
            else:
                guarded = tuple(self._roles(where, f"args.{name}", texts, names, kind))
            found.append(Parameter(name, kind, guarded))
        return tuple(found)

    def _roles(
        self, where: str, key: str, texts: object, names: frozenset[str], kind: CType
    ) -> Iterator[Guarded]:
        listed = [texts] if isinstance(texts, str) else texts
        if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
            raise SpecError(self.file, where, key, f"is neither a role nor a list of roles: {texts!r}")
        for text in listed:
            try:
                guarded = roles.parse(text)
            except roles.RoleError as why:
                raise SpecError(self.file, where, key, str(why)) from None
            if guarded.when:
                self.checks.append(((where, key), guarded.when, names))
            for part in guarded.parts:
                self._part(where, key, part, names, kind)
            yield guarded

    def _part(self, where: str, key: str, part: Part, names: frozenset[str], kind: CType) -> None:
        if part.kind == "callback":
            if part.argument not in self.callbacks:
                raise SpecError(self.file, where, key, f"there is no [callback.{part.argument}]")
        elif part.kind == "param":
            if part.argument not in names - {"result"}:
                raise SpecError(self.file, where, key, f"{part.argument!r} is no parameter")
        elif part.argument:
            self.checks.append(((where, key), part.argument, names))
        if part.kind in ("in", "out", "inout", "string", "strings") and kind.kind == "integer":
            raise SpecError(self.file, where, key, f"{part.kind!r} is for pointers, not for {kind.bare!r}")

    def _result(self, where: str, table: dict[str, Any], kind: CType, names: frozenset[str]) -> Guarded:
        text = table.get("returns")
        if text is not None:
            return next(iter(self._roles(where, "returns", text, names, kind)))
        role = roles.default(kind, self.c.pointee_name(kind), self.handles, given=True)
        if role is None:
            raise SpecError(
                self.file,
                where,
                "returns",
                f"must be given: {kind.bare!r} may be anything",
                "Say what comes back: string, handle, buffer[size], object[size], param NAME, data, ...",
            )
        return role

    def _extras(self, where: str, key: str, texts: list[Any], names: frozenset[str]) -> Iterator[Extra]:
        for text in texts:
            head, colon, rest = str(text).partition(":")
            when, mark, kind = head.rpartition(" ? ")
            when = when.strip()
            if when:
                self.checks.append(((where, key), when, names))
            kind, rest = kind.strip(), rest.strip()
            del mark
            known = EXTRA_KINDS if key == "outputs" else INPUT_KINDS
            if not colon or kind not in known:
                raise SpecError(
                    self.file,
                    where,
                    key,
                    f"{text!r} does not begin with one of {', '.join(known)} and a colon",
                )
            size = ""
            if kind in _SECOND:
                rest, bar, size = rest.partition("|")
                rest, size = rest.strip(), size.strip()
                if not bar or not size:
                    raise SpecError(
                        self.file,
                        where,
                        key,
                        f"{text!r} needs a second part: {kind}: {_SECOND[kind]}",
                    )
                self.checks.append(((where, key), size, names))
            self.checks.append(((where, key), rest, names))
            yield Extra(kind, rest, size, when)
