"""C declarations and expressions of interface files, read with pycparser."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from interfaces.libspec.errors import MissingPackageError
from interfaces.libspec.model import CType

if TYPE_CHECKING:
    from pycparser import c_ast

PRELUDE = """
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t;
typedef unsigned long uint64_t; typedef signed char int8_t; typedef short int16_t; typedef int int32_t;
typedef long int64_t; typedef unsigned long size_t; typedef long ssize_t; typedef long ptrdiff_t;
typedef long intptr_t; typedef unsigned long uintptr_t; typedef long off_t; typedef long time_t;
typedef int pid_t; typedef unsigned int uid_t; typedef unsigned int gid_t; typedef unsigned int mode_t;
typedef unsigned int socklen_t; typedef int wchar_t;
"""
"""Types every interface file may use."""

HELPERS = frozenset(
    {
        "old",
        "strlen",
        "wcslen",
        "min",
        "max",
        "is_output",
        "is_standard",
        "stdout_is_output",
        "standard_input",
        "standard_output",
        "count",
        "fd_is_output",
        "strnlen",
    }
)
"""Functions an expression may call."""

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


class CError(Exception):
    """C text that does not parse; `str()` says why in one line."""


@dataclass(frozen=True, slots=True)
class Prototype:
    """A parsed prototype."""

    name: str
    returns: CType
    parameters: tuple[tuple[str, CType], ...]
    has_dots: bool


class Declarations:
    """The types of one interface file, and what is declared and expressed in terms of them."""

    def __init__(self, types: str) -> None:
        try:
            from pycparser import c_parser
        except ImportError:
            raise MissingPackageError("pycparser") from None
        self._parser = c_parser.CParser()
        self._text = PRELUDE + _COMMENT.sub(" ", types)
        self.constants: set[str] = set()
        self._callable = HELPERS
        self._kinds: dict[str, Any] = {}
        unit = self._parse(self._text)
        for node in unit.ext:
            self._note(node)

    def prototypes(self, texts: Mapping[str, str]) -> dict[str, Prototype]:
        """Parse prototypes, all at once; CError's argument is (key, problem) of the first that is bad."""
        joined = self._text + "".join(f"\n{text.rstrip().rstrip(';')};" for text in texts.values())
        try:
            nodes = self._parse(joined).ext[-len(texts) :] if texts else []
        except CError:
            nodes = []
            for key, text in texts.items():
                try:
                    nodes.append(self._parse(f"{self._text}\n{text.rstrip().rstrip(';')};").ext[-1])
                except CError as why:
                    raise CError(key, str(why)) from None
        found = {}
        for (key, text), node in zip(texts.items(), nodes, strict=True):
            try:
                found[key] = self._prototype(node)
            except CError as why:
                raise CError(key, f"{why}: {text.strip()}") from None
        return found

    def expressions(
        self, wanted: Iterable[tuple[object, str, frozenset[str]]], functions: frozenset[str] = frozenset()
    ) -> Iterator[tuple[object, str]]:
        """Check C expressions, each with the names it may use; yields (key, problem) for each bad one.

        `functions` may be called besides the helpers.
        """
        self._callable = HELPERS | functions
        items = list(wanted)
        if not items:
            return
        bodies = [f"\nint rr_e(void) {{ return ({text}); }}" for _, text, _ in items]
        try:
            nodes: list[Any] = self._parse(self._text + "".join(bodies)).ext[-len(items) :]
        except CError:
            nodes = []
            for (key, text, _), body in zip(items, bodies, strict=True):
                try:
                    nodes.append(self._parse(self._text + body).ext[-1])
                except CError as why:
                    nodes.append(None)
                    yield key, f"the expression {text!r} does not parse: {why}"
        for (key, text, names), node in zip(items, nodes, strict=True):
            if node is None:
                continue
            statements = node.body.block_items
            if len(statements) != 1 or node.decl.name != "rr_e":
                yield key, f"{text!r} is not one expression"
                continue
            problem = self._pure(statements[0].expr, names)
            if problem:
                yield key, f"the expression {text!r} {problem}"

    def _parse(self, text: str) -> c_ast.FileAST:
        try:
            return self._parser.parse(text)
        except Exception as why:
            message = str(why).rsplit(": ", 1)[-1] if ": " in str(why) else str(why)
            raise CError(message or "syntax error") from None

    def _note(self, node: Any) -> None:
        from pycparser import c_ast

        if isinstance(node, c_ast.Typedef):
            self._kinds[node.name] = node.type
        for enum in _enums(node):
            self.constants.update(item.name for item in enum.values.enumerators)

    def _pure(self, node: Any, names: frozenset[str]) -> str:
        """ "" for an expression without side effects over known names, else what is wrong with it."""
        from pycparser import c_ast

        if isinstance(node, c_ast.Assignment) or (
            isinstance(node, c_ast.UnaryOp) and node.op in ("++", "--", "p++", "p--")
        ):
            return "changes something"
        if isinstance(node, c_ast.FuncCall):
            if not isinstance(node.name, c_ast.ID) or node.name.name not in self._callable:
                return f"calls something else than {', '.join(sorted(HELPERS))} or a function of this file"
            return next(filter(None, (self._pure(arg, names) for arg in (node.args or []))), "")
        if isinstance(node, c_ast.ID):
            if node.name not in names and node.name not in self.constants:
                return f"names {node.name!r}, which is no parameter, constant or `result`"
            return ""
        if isinstance(node, c_ast.StructRef):
            return self._pure(node.name, names)
        if isinstance(node, c_ast.Typename):
            return ""
        return next(filter(None, (self._pure(child, names) for _, child in node.children())), "")

    def _prototype(self, node: Any) -> Prototype:
        from pycparser import c_ast

        if not isinstance(node, c_ast.Decl) or not isinstance(node.type, c_ast.FuncDecl):
            raise CError("this is no function prototype")
        function = node.type
        parameters: list[tuple[str, CType]] = []
        dots = False
        for number, item in enumerate(function.args.params if function.args else []):
            if isinstance(item, c_ast.EllipsisParam):
                dots = True
                continue
            kind = self.type(item.type)
            if kind.kind == "void":
                continue
            if kind.kind == "struct":
                raise CError(f"parameter {item.name!r} is a structure by value, which cannot be recorded")
            parameters.append((item.name or f"arg{number}", kind))
        returns = self.type(function.type)
        if returns.kind == "struct":
            raise CError("the function returns a structure by value, which cannot be recorded")
        return Prototype(str(node.name), returns, tuple(parameters), dots)

    def type(self, node: Any) -> CType:
        """The type of a declarator."""
        from pycparser import c_ast, c_generator

        if isinstance(node, c_ast.ArrayDecl):
            node = c_ast.PtrDecl([], node.type)
        generator = c_generator.CGenerator()
        with _named(node, "RR_NAME"):
            text = generator.visit(c_ast.Decl("RR_NAME", [], [], [], [], node, None, None))
        text = text.replace("RR_NAME", "%s")
        if "%s" not in text:
            text += " %s"
        kind, target = self._kind(node)
        if target is None:
            return CType(text, kind)
        pointee_kind, _ = self._kind(target)
        quals = getattr(target, "quals", None) or getattr(getattr(target, "type", None), "quals", None) or []
        with _named(target, None):
            inner = generator.visit(c_ast.Typename(None, [], None, target))
        return CType(text, kind, inner, pointee_kind, "const" in quals)

    def _kind(self, node: Any) -> tuple[str, Any]:
        from pycparser import c_ast

        if isinstance(node, c_ast.PtrDecl | c_ast.ArrayDecl):
            resolved = self._resolve(node.type)
            if isinstance(resolved, c_ast.FuncDecl):
                return "function", None
            return "pointer", node.type
        if isinstance(node, c_ast.FuncDecl):
            return "function", None
        inner = node.type
        if isinstance(inner, c_ast.Struct | c_ast.Union):
            return "struct", None
        if isinstance(inner, c_ast.Enum):
            return "integer", None
        names = inner.names
        if len(names) == 1 and names[0] in self._kinds:
            return self._kind(self._kinds[names[0]])
        if "void" in names:
            return "void", None
        if "long" in names and "double" in names:
            raise CError("long double cannot be recorded")
        return ("floating" if {"float", "double"} & set(names) else "integer"), None

    def _resolve(self, node: Any) -> Any:
        from pycparser import c_ast

        while isinstance(node, c_ast.TypeDecl) and isinstance(node.type, c_ast.IdentifierType):
            names = node.type.names
            if len(names) != 1 or names[0] not in self._kinds:
                break
            node = self._kinds[names[0]]
        return node

    def pointee_name(self, kind: CType) -> str:
        """`sqlite3` for `sqlite3 *`: the bare name a pointer points to."""
        return re.sub(r"\b(const|volatile|struct|union|restrict)\b", "", kind.pointee).strip()


@contextmanager
def _named(node: Any, name: str | None) -> Iterator[None]:
    """Let a declarator declare another name meanwhile."""
    from pycparser import c_ast

    inner = node
    while not isinstance(inner, c_ast.TypeDecl):
        inner = inner.type
    before, inner.declname = inner.declname, name
    try:
        yield
    finally:
        inner.declname = before


def _enums(node: Any) -> Iterator[Any]:
    from pycparser import c_ast

    if isinstance(node, c_ast.Enum) and node.values:
        yield node
    for _, child in node.children():
        yield from _enums(child)
