"""Hang points of Python code: from coroutines and GUI callbacks to calls that block, by the syntax trees.

Calls are resolved where that is certain: imported names, functions of the module and of the package, methods
through `self`, and objects whose constructor is seen. A method that only one class of the package has is
followed, too, and the way then says that it is a guess. What is awaited does not block; what is handed to
a thread or an executor is not followed.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from hangscan.static.blocking import Blocking
from hangscan.static.handlers import PythonLoop, read_handlers
from hangscan.static.model import Found, HangPoint, Step

_COMMON = frozenset(
    {"get", "put", "run", "start", "stop", "close", "open", "read", "write", "send", "update", "append",
     "add", "connect", "join", "wait", "result", "execute", "commit", "submit", "set", "clear", "copy", "pop",
     "items"}
)  # fmt: skip
"""Method names that too many classes have to follow them by name alone."""
_Definition = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True)
class _Call:
    line: int
    name: str
    awaited: bool
    method: str = ""
    certain: bool = True


@dataclass(slots=True)
class _Function:
    """A function of the searched code. `name` is dotted: module, class, function."""

    name: str
    shown: str
    file: str
    line: int
    coroutine: bool
    calls: list[_Call] = field(default_factory=list)


@dataclass(slots=True)
class _Module:
    name: str
    file: str
    tree: ast.Module
    imports: dict[str, str] = field(default_factory=dict)
    package: bool = False


@dataclass(frozen=True, slots=True)
class _Handler:
    function: str
    why: str
    toolkit: str


def search_python(root: Path, files: Sequence[Path], blocking: Blocking, found: Found) -> None:
    """Add the hang points of Python files below `root` to `found`; files that do not parse become notes."""
    index = _Index()
    for file in files:
        try:
            tree = ast.parse(file.read_bytes(), str(file))
        except (SyntaxError, ValueError, RecursionError, OSError) as error:
            found.notes.append(f"{file}: cannot be read as Python: {error}")
            continue
        found.files += 1
        index.add(_module_name(root, file), file, tree)
    index.resolve()
    found.functions += len(index.functions)
    found.handlers += len(index.handlers)
    found.points.extend(_points(index, blocking))


def _module_name(root: Path, file: Path) -> str:
    parts = list(file.relative_to(root).with_suffix("").parts)
    if (root / "__init__.py").exists():
        parts.insert(0, root.name)
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts) or root.name


class _Index:
    """All functions of the searched code, what they call, and which of them are handlers."""

    def __init__(self) -> None:
        self.functions: dict[str, _Function] = {}
        self.handlers: dict[str, _Handler] = {}
        self.methods: dict[str, list[str]] = {}
        self.bases: dict[str, list[str]] = {}
        self.objects: dict[str, str] = {}
        self._modules: list[_Module] = []

    def add(self, name: str, file: Path, tree: ast.Module) -> None:
        """Take in a module: its imports, classes and functions."""
        module = _Module(name, str(file), tree, package=file.name == "__init__.py")
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    bound = alias.asname or alias.name.split(".")[0]
                    module.imports[bound] = alias.name if alias.asname else bound
            elif isinstance(node, ast.ImportFrom):
                base = _absolute(module, node)
                for alias in node.names:
                    module.imports[alias.asname or alias.name] = (
                        f"{base}.{alias.name}" if base else alias.name
                    )
        self._modules.append(module)
        _Definitions(self, module).visit(tree)

    def resolve(self) -> None:
        """Find out what is called, once all names are known."""
        for module in self._modules:
            _Objects(self, module).visit(module.tree)
        for module in self._modules:
            _Calls(self, module).visit(module.tree)
        for function in self.functions.values():
            if function.coroutine:
                toolkit = "trio" if self._uses(function.file, "trio") else "asyncio"
                self.handlers.setdefault(function.name, _Handler(function.name, "a coroutine", toolkit))

    def _uses(self, file: str, package: str) -> bool:
        return any(module.file == file and package in module.imports.values() for module in self._modules)

    def method(self, owner: str, name: str, depth: int = 0) -> str | None:
        """A method of a class or of its bases, as far as they are in the searched code."""
        if f"{owner}.{name}" in self.functions:
            return f"{owner}.{name}"
        if depth < 8:
            for base in self.bases.get(owner, ()):
                inherited = self.method(base, name, depth + 1)
                if inherited is not None:
                    return inherited
        return None


def _absolute(module: _Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    keep = len(parts) - node.level + (1 if module.package else 0)
    return ".".join([*parts[: max(keep, 0)], *([node.module] if node.module else [])])


class _Scoped(ast.NodeVisitor):
    """A visitor that knows in which class and function it is."""

    def __init__(self, index: _Index, module: _Module) -> None:
        self.index = index
        self.module = module
        self.scope: list[str] = [module.name]
        self.owner: list[str] = []
        self.function: list[_Function] = []

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.scope.append(node.name)
        self.owner.append(".".join(self.scope))
        self.on_class(node)
        self.generic_visit(node)
        self.owner.pop()
        self.scope.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def _function(self, node: _Definition) -> None:
        for decorator in node.decorator_list:
            self.visit(decorator)
        self.scope.append(node.name)
        name = ".".join(self.scope)
        known = self.index.functions.get(name)
        if known is None:
            known = _Function(
                name,
                ".".join(self.scope[1:]),
                self.module.file,
                node.lineno,
                isinstance(node, ast.AsyncFunctionDef),
            )
            self.index.functions[name] = known
        self.function.append(known)
        self.on_function(node)
        for statement in node.body:
            self.visit(statement)
        self.function.pop()
        self.scope.pop()

    def on_class(self, node: ast.ClassDef) -> None:
        """A class begins."""

    def on_function(self, node: _Definition) -> None:
        """A function begins."""

    def dotted(self, node: ast.expr) -> str | None:
        """The dotted name an expression stands for, through imports and the module's own names."""
        if isinstance(node, ast.Name):
            for depth in range(len(self.scope), 0, -1):
                own = ".".join([*self.scope[:depth], node.id])
                if own in self.index.functions or own in self.index.bases or own in self.index.objects:
                    return own
            return self.module.imports.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            base = self.dotted(node.value)
            if base == "self" and self.owner:
                return f"{self.owner[-1]}.{node.attr}"
            return f"{base}.{node.attr}" if base is not None else None
        return None

    def type_of(self, node: ast.expr) -> str | None:
        """The constructor that made the value of an expression: one whose objects block, or a class of the
        searched code."""
        if isinstance(node, ast.Await):
            return None
        if isinstance(node, ast.Call):
            name = self.dotted(node.func)
            if name in read_handlers().objects or name in self.index.bases:
                return name
            if isinstance(node.func, ast.Attribute):
                made = self.type_of(node.func.value)
                if made in read_handlers().objects:
                    return read_handlers().objects[made].gives.get(node.func.attr)
            return None
        name = self.dotted(node)
        return self.index.objects.get(name) if name is not None else None


class _Definitions(_Scoped):
    """First pass: functions, methods by name, base classes."""

    def on_class(self, node: ast.ClassDef) -> None:
        name = self.owner[-1]
        self.index.bases[name] = [base for one in node.bases if (base := self.dotted(one)) is not None]

    def on_function(self, node: _Definition) -> None:
        if self.owner and len(self.scope) >= 2 and ".".join(self.scope[:-1]) == self.owner[-1]:
            self.index.methods.setdefault(node.name, []).append(".".join(self.scope))


class _Objects(_Scoped):
    """Second pass: names and attributes that hold an object whose methods block."""

    def visit_Assign(self, node: ast.Assign) -> None:
        made = self.type_of(node.value)
        if made is not None:
            for target in node.targets:
                self._holds(target, made)
        self.generic_visit(node)

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            made = self.type_of(item.context_expr)
            if made is not None and item.optional_vars is not None:
                self._holds(item.optional_vars, made)
        self.generic_visit(node)

    def _holds(self, target: ast.expr, made: str) -> None:
        if isinstance(target, ast.Name):
            self.index.objects[".".join([*self.scope, target.id])] = made
        elif isinstance(target, ast.Attribute):
            name = self.dotted(target)
            if name is not None:
                self.index.objects[name] = made


class _Calls(_Scoped):
    """Third pass: who calls whom, and who is given to an event loop."""

    def __init__(self, index: _Index, module: _Module) -> None:
        super().__init__(index, module)
        self._awaited: set[int] = set()
        self._loops = [loop for loop in read_handlers().loops if self._imports(loop)]

    def _imports(self, loop: PythonLoop) -> bool:
        names = self.module.imports.values()
        return any(name == one or name.startswith(f"{one}.") for name in names for one in loop.imports)

    def on_function(self, node: _Definition) -> None:
        if not self.owner:
            return
        for loop in self._loops:
            bases = self.index.bases.get(self.owner[-1], ())
            foreign = any(base.split(".")[0] in loop.imports for base in bases)
            if loop.overrides and foreign and fnmatchcase(node.name, loop.overrides):
                name = ".".join(self.scope)
                self.index.handlers.setdefault(
                    name, _Handler(name, "overrides an event handler", loop.toolkit)
                )

    def visit_Await(self, node: ast.Await) -> None:
        if isinstance(node.value, ast.Call):
            self._awaited.add(id(node.value))
        self.generic_visit(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """What a lambda calls is called by whoever is given it (see `_given`)."""

    def visit_Call(self, node: ast.Call) -> None:
        self._registers(node)
        if self.function:
            call = self._call(node)
            if call is not None:
                self.function[-1].calls.append(call)
        self.generic_visit(node)

    def _call(self, node: ast.Call) -> _Call | None:
        awaited = id(node) in self._awaited
        if isinstance(node.func, ast.Attribute):
            made = self.type_of(node.func.value)
            if made in self.index.bases:
                method = self.index.method(made, node.func.attr)
                return _Call(node.lineno, method, awaited) if method is not None else None
            if made is not None:
                one = read_handlers().objects[made]
                if node.func.attr in one.methods:
                    shown = f"{made}().{node.func.attr}"
                    return _Call(node.lineno, one.like, awaited, shown)
                return None
            guessed = read_handlers().guesses.get(node.func.attr)
            if guessed is not None and self._unknown(node.func):
                return _Call(node.lineno, guessed, awaited, f"?.{node.func.attr}", certain=False)
        name = self.dotted(node.func)
        if name is not None:
            owner, _dot, last = name.rpartition(".")
            target = self.index.method(owner, last) if owner in self.index.bases else None
            if target is None and name in self.index.bases:
                target = self.index.method(name, "__init__")
            return _Call(node.lineno, target or name, awaited)
        if isinstance(node.func, ast.Attribute):
            return _Call(node.lineno, "", awaited, node.func.attr)
        return None

    def _unknown(self, node: ast.Attribute) -> bool:
        """Whether nothing is known of the object whose method is named: no module, no own function."""
        name = self.dotted(node)
        if name is None:
            return True
        root = node
        while isinstance(root.value, ast.Attribute):
            root = root.value
        imported = isinstance(root.value, ast.Name) and root.value.id in self.module.imports
        return not imported and name not in self.index.functions

    def _registers(self, node: ast.Call) -> None:
        """A call that gives a function to an event loop."""
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        for loop in self._loops:
            position = loop.methods.get(method)
            if position is not None and position < len(node.args):
                self._given(node.args[position], loop)
            for keyword in node.keywords:
                if keyword.arg in loop.keywords:
                    self._given(keyword.value, loop)

    def _given(self, value: ast.expr, loop: PythonLoop) -> None:
        if isinstance(value, ast.Lambda):
            for node in ast.walk(value.body):
                if isinstance(node, ast.Call):
                    self._handler(self.dotted(node.func), loop)
            return
        if isinstance(value, ast.Attribute) and (made := self.type_of(value.value)) in self.index.bases:
            self._handler(f"{made}.{value.attr}", loop)
            return
        self._handler(self.dotted(value), loop)

    def _handler(self, name: str | None, loop: PythonLoop) -> None:
        if name is None:
            return
        owner, _dot, last = name.rpartition(".")
        target = name if name in self.index.functions else self.index.method(owner, last)
        if target is not None:
            self.index.handlers.setdefault(target, _Handler(target, loop.why, loop.toolkit))


def _points(index: _Index, blocking: Blocking) -> Iterator[HangPoint]:
    """The shortest way from any handler to each call that blocks."""
    came: dict[str, tuple[str, int, bool] | None] = {}
    first: dict[str, _Handler] = {}
    queue: deque[str] = deque()
    for name in sorted(index.handlers):
        came[name] = None
        first[name] = index.handlers[name]
        queue.append(name)
    while queue:
        name = queue.popleft()
        for call in index.functions[name].calls:
            pattern = blocking.python(call.name) if call.name and not call.awaited else None
            if pattern is not None:
                path, certain = _path(index, came, name, call.line)
                certain = certain and call.certain
                handler = first[name]
                shown, fix = call.method or call.name, pattern.advice(handler.toolkit)
                yield HangPoint(pattern.kind, shown, pattern.operation, fix, handler.why, path, certain)
                continue
            target, certain = _target(index, call)
            if target is not None and target not in came:
                came[target] = (name, call.line, certain)
                first[target] = first[name]
                queue.append(target)


def _target(index: _Index, call: _Call) -> tuple[str | None, bool]:
    if call.name in index.functions:
        return call.name, True
    method = call.method or call.name.rpartition(".")[2]
    owners = index.methods.get(method, [])
    if len(owners) == 1 and method not in _COMMON and not call.name.split(".")[0].islower():
        return owners[0], False
    if call.method and len(owners) == 1 and method not in _COMMON:
        return owners[0], False
    return None, True


def _path(
    index: _Index, came: dict[str, tuple[str, int, bool] | None], name: str, line: int
) -> tuple[tuple[Step, ...], bool]:
    steps: list[Step] = []
    certain = True
    while True:
        function = index.functions[name]
        steps.append(Step(function.shown, function.file, line))
        before = came[name]
        if before is None:
            return tuple(reversed(steps)), certain
        name, line, sure = before
        certain = certain and sure
