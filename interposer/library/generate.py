"""C stubs made from library interfaces: one function to record and replay each function and callback."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from interfaces.libspec.model import Callback, Extra, Function, Guarded, Interface, Parameter
from interposer.library.ctext import (
    Olds,
    as_word,
    branches,
    bytes_of,
    declare_all,
    from_word,
    guard,
    names_of,
    original,
    place_of,
    returning,
)

CALLBACK_SLOTS = 48
"""Different functions of the program that one callback type can stand for."""

RESULT = 255
EXTRA = 128
SIGNAL_HANDLER = "signal_handler"
"""The callback that stands for all handlers of signals."""
INSIDE = "rr_c.t->inside = 1; if (rr_c.t->nheld) rr_held(&rr_c); "
OUTSIDE = " rr_c.t->inside = 0;"
"""Around the library's own function: a signal that arrives there is delivered there."""
SIGNAL_FLAGS = {"signal": "0x10000000UL", "sysv_signal": "0xC0000000UL"}
"""What the variants of signal() set: SA_RESTART; SA_RESETHAND and SA_NODEFER."""
TEXT_ROLES = {"string": 0, "new": 1, "malloc": 4}
"""How the runtime's rr_ret hands a text over in replay."""


@dataclass(frozen=True, slots=True)
class Numbered:
    """An interface with the numbers its functions and callbacks have in a trace."""

    interface: Interface
    functions: dict[str, int]
    callbacks: dict[str, int]


def number(interfaces: Sequence[Interface]) -> list[Numbered]:
    """Give every function and callback of several interfaces a number, from 1."""
    found, following = [], 1
    for interface in interfaces:
        functions = {name: following + i for i, name in enumerate(interface.functions)}
        following += len(functions)
        callbacks = {name: following + i for i, name in enumerate(interface.callbacks)}
        following += len(callbacks)
        found.append(Numbered(interface, functions, callbacks))
    return found


def source(numbered: Numbered, header: str, *, nested: bool = False) -> str:
    """The C text of one interface's module; `nested`: calls beneath its functions are logged, too."""
    interface = numbered.interface
    from interfaces.libspec.cdecl import PRELUDE

    lines = [
        "#include <stdarg.h>",
        header,
        PRELUDE if "size_t" not in header else "",
        interface.types,
        "extern void *rr_orig[], *rr_alt[], *rr_fork_function;",
    ]
    lines += _callable(interface)
    for callback in interface.callbacks.values():
        lines += _callback(callback, numbered.callbacks[callback.name])
    # Calls made from here on are the library's. What a callback ends with, by a jump, is called above.
    lines.append("void rr_begins(void) {}")
    for index, function in enumerate(interface.functions.values()):
        if function.special != "instruction":
            lines += _Stub(function, index, numbered, nested).text()
    lines.append("void rr_ends(void) {}")
    return "\n".join(lines) + "\n"


def _callable(interface: Interface) -> Iterator[str]:
    """Macros for the functions of the interface that its own expressions call."""
    called = {word for function in interface.functions.values() for word in _words(function)}
    for index, function in enumerate(interface.functions.values()):
        if function.name in called:
            types = ", ".join(p.type.bare for p in function.parameters) or "void"
            pointer = function.returns.declare(f"(*)({types})")
            yield f"#define {function.name}(...) ((({pointer})rr_orig[{index}])(__VA_ARGS__))"


def _words(function: Function) -> Iterator[str]:
    roles = [
        *function.result.parts,
        *(part for p in function.parameters for r in p.roles for part in r.parts),
    ]
    for text in [*(part.argument for part in roles), *(extra.size for extra in function.outputs)]:
        yield from re.findall(r"[A-Za-z_]\w*", text)


class _Stub:
    """The stub of one function."""

    def __init__(self, function: Function, index: int, numbered: Numbered, nested: bool) -> None:
        self.f = function
        self.nested = nested
        self.index = index
        self.numbered = numbered
        self.olds = Olds()

    def text(self) -> list[str]:
        f = self.f
        table = "rr_alt" if f.variadic else "rr_orig"
        call = f"rr_o({names_of(f.parameters)}{', rr_ap' if f.variadic else ''})"
        dots, rest = (", ...", "va_list") if f.variadic else ("", "")
        enter = "rr_enter_ordered" if f.ordered else "rr_enter"
        if f.special in ("exec", "fork"):
            enter = "rr_enter_anywhere"
        elif f.special == "end":
            enter = "rr_enter_end"
        number = self.numbered.functions[f.name]
        before = self._before()
        after = self._after()
        head = f"rr_f_{f.name}({declare_all(f.parameters) or 'void'}{dots})"
        lines = [
            f.returns.declare(head),
            "{",
            original(f.returns, f.parameters, "rr_o", f"{table}[{self.index}]", rest),
            "\tstruct rr_call rr_c;",
        ]
        if f.returns.kind != "void":
            lines.append(f"\t{f.returns.declare('result')};")
        if f.variadic:
            lines += ["\tva_list rr_ap, rr_list;", f"\tva_start(rr_ap, {f.parameters[-1].name});"]
            lines.append("\tva_copy(rr_list, rr_ap);")
        if f.special == "longjmp":
            return [*lines, f"\trr_jump({f.parameters[0].name}); {call};", "}"]
        if f.special == "thread_end":
            # Left as it was entered: what unwinds the stack must not find this function there.
            jump = 'asm("movq %0,%%rdi; movq %1,%%rax; leave; jmp *%%rax" : : "m"(value), "m"(rr_o));'
            return [*lines, f"\trr_thread_ends(); {jump}", "}"]
        if f.special == "through":
            given = "" if f.returns.kind == "void" else "result = "
            back = "" if f.returns.kind == "void" else " return result;"
            return [*lines, f"\tvoid *rr_t = rr_through(); {given}{call}; rr_through_end(rr_t);{back}", "}"]
        if f.special == "sigaction":
            call = f"rr_foreign_sigaction((void *)rr_o, {names_of(f.parameters)})"
        swallow = ""
        caller = "(u64)__builtin_return_address(0)"
        if f.special == "exec":
            lines += [
                "\tvoid *rr_k;",
                f"\tif (rr_spawned()) {{ rr_k = rr_knock(0, {self._path()}); result = {call}; "
                "rr_stays(rr_k); return result; }",
            ]
        elif f.special == "output":
            fd, what, size = (parameter.name for parameter in f.parameters)
            lines.append(
                f"\tif (rr_orders({fd})) return ({f.returns.bare})rr_output({number}, rr_o, {fd}, "
                f"{what}, {size}, {int(f.name == 'writev')}, {caller});"
            )
            swallow = f"if (rr_swallows({fd})) return rr_size({what}, {size}, {int(f.name == 'writev')}); "
        lines.append(
            f"\tif (!{enter}(&rr_c, {number}, {caller})) {{ {swallow}{returning(f.returns, call)} }}"
        )
        assign = "" if f.returns.kind == "void" else "result = "
        done = "\treturn;" if f.returns.kind == "void" else "\treturn result;"
        if f.special == "mmap":
            at, n, _, flags = (p.name for p in f.parameters[:4])
            lines.append(f"\t{at} = rr_place({at}, {n}, {flags});")
        if f.special == "syscall":
            lines.append("\tif (rr_refused(number)) { rr_live_leave(&rr_c); rr_refuse(38); return -1; }")
        if f.live:
            lines.append(
                f"\tif ({f.live}) {{ rr_live_enter(&rr_c); {assign}{call}; {self._marks(live=True)}"
                f"rr_live_leave(&rr_c);{done} }}"
            )
        if f.refuse:
            return [
                *lines,
                f"\trr_live_leave(&rr_c); rr_refuse({f.refuse}); return ({f.returns.bare})-1;",
                "}",
            ]
        lines += [*self.olds.declare(), *before]
        if f.special == "pthread_create":
            a = [p.name for p in f.parameters]
            return [*lines, f"\treturn rr_create(&rr_c, rr_o, {', '.join(f'(void *){x}' for x in a)});", "}"]
        if f.special == "fork":
            return [*lines, "\treturn rr_fork(&rr_c, rr_fork_function);", "}"]
        if f.special in ("sigaction", "siginterrupt", *SIGNAL_FLAGS):
            number = self.numbered.callbacks.get(SIGNAL_HANDLER, 0)
            words = [str(number), "rr_o", *(p.name for p in f.parameters)]
            words += [SIGNAL_FLAGS[f.special]] if f.special in SIGNAL_FLAGS else []
            stub = "rr_signal" if f.special in SIGNAL_FLAGS else f"rr_{f.special}"
            return [*lines, f"\treturn {stub}(&rr_c, {', '.join(words)});", "}"]
        if f.special == "end":
            return [*lines, "\trr_end_process(&rr_c);", f"\t{call};", "}"]
        if f.special == "starts":
            lines.append("\trr_starts(&rr_c);")
        lines.append("\trr_exec(&rr_c);" if f.special == "exec" else "\trr_begin(&rr_c);")
        streams = [extra for extra in f.outputs if extra.kind == "stream"]
        if streams:
            lines.append("\trr_stream_begun(&rr_c);")
        if f.special == "sigmask":
            how, chosen = (p.name for p in f.parameters[:2])
            lines.append(f"\tu64 rr_room[16]; {chosen} = rr_mask({how}, {chosen}, rr_room);")
        if f.release or f.special == "cond_wait":
            lines.append("\trr_release(&rr_c);")
            if f.release:
                # Locked in earnest, before there was a second thread.
                held = f"if (*(int *){f.parameters[0].name}) {call}; " if f.special == "unlock" else ""
                lines.append(
                    f"\tif (rr_c.replaying) {{ {held}rr_end(&rr_c);"
                    + (" return; }" if not assign else f" return ({f.returns.bare})0; }}")
                )
                return [*lines, f"\t{assign}{call};", "\trr_end(&rr_c);", done, "}"]
        keep = "" if f.returns.kind == "void" else f" rr_c.result = {as_word('result', f.returns)};"
        if f.special == "pthread_join":
            lines.append(
                f"\tif (rr_c.replaying) {{ rr_answer(&rr_c); {assign}{call}; }} "
                f"else {{ {INSIDE}{assign}{call};{OUTSIDE}{keep} }}"
            )
        else:
            take = "" if f.returns.kind == "void" else " " + from_word("rr_c.result", "result", f.returns)
            if f.special == "exec":
                call = f"rr_k = rr_knock(&rr_c, {self._path()}); {assign}{call}; rr_stays(rr_k)"
                assign = ""
            made = f"{INSIDE}{assign}{call};{OUTSIDE}"
            if self.nested:
                made = f"rr_open(&rr_c); {assign}{call}; rr_shut(&rr_c);"
            lines.append(f"\tif (rr_c.replaying) {{ rr_answer(&rr_c);{take} }} else {{ {made}{keep} }}")
        if streams:
            lines.append("\tif (rr_c.replaying) rr_stream_answered(&rr_c);")
        return [*lines, *after, f"\t{self._marks(live=False)}rr_leave(&rr_c);", done, "}"]

    def _path(self) -> str:
        """The path of what becomes of a process, 0 where it is named by a descriptor."""
        return next((p.name for p in self.f.parameters if p.name == "path"), "0")

    def _marks(self, *, live: bool) -> str:
        """What a call does beyond its arguments: output descriptors and streams, the program's pointers."""
        first = self.f.parameters[0].name if self.f.parameters else ""
        match self.f.special:
            case "close":
                return f"rr_fd_mark({first}, 0); "
            case "dup":
                return f"rr_dup(&rr_c, {first}, result); "
            case "fcntl":
                return f"if (command == 0 || command == 1030) rr_dup(&rr_c, {first}, result); "
            case "fclose":
                return f"rr_forget((void *){first}); "
            case "freopen":
                return f"rr_freopen((void *){self.f.parameters[-1].name}); "
            case "open":
                path = next(p.name for p in self.f.parameters if p.name == "path")
                return f"rr_opened(&rr_c, {path}, result); "
            case "wait":
                status = next((p.name for p in self.f.parameters if p.name == "status"), "(int *)0")
                return f"rr_waited(&rr_c, result, {status}); "
            case "epoll_ctl":
                return f"rr_epoll_ctl(&rr_c, {self.f.parameters[-1].name}); "
            case "epoll_wait":
                return f"rr_epoll_wait(&rr_c, {self.f.parameters[1].name}, result); "
            case "syscall":
                return "rr_by_number(&rr_c, number, a, b, (void *)d, result); "
            case "login_tty":
                return "if (result == 0) { rr_fd_mark(1, 0); rr_fd_mark(2, 0); } "
            case "sigmask":
                how, chosen = (p.name for p in self.f.parameters[:2])
                return f"rr_sigmask(&rr_c, {how}, (const u64 *){chosen}); "
            case "timer_create":
                return f"rr_timer_value(&rr_c, (const u64 *){self.f.parameters[1].name}); "
            case "live_stream" if live:
                return "rr_live_stream((void *)result); "
            case _:
                return ""

    def _before(self) -> list[str]:
        lines = [f"\trr_c.nargs = {len(self.f.parameters)};"]
        for i, parameter in enumerate(self.f.parameters):
            lines += guard(parameter)
            lines.append(f"\t{place_of(i)} = {as_word(parameter.name, parameter.type)};")
        for i, parameter in enumerate(self.f.parameters):
            lines += branches(parameter, [self._input(i, parameter, role) for role in parameter.roles])
        for i, extra in enumerate(self.f.inputs):
            at, text = EXTRA + 64 + i, extra.expression
            match extra.kind:
                case "bytes":
                    line = f"rr_in(&rr_c, {at}, (const void *)({text}), (i64)({extra.size}));"
                case "string":
                    line = f"rr_in_string(&rr_c, {at}, (const char *)({text}));"
                case "vector":
                    line = f"rr_in_vector(&rr_c, {at}, (const void *)({text}), {extra.size});"
                case _:
                    line = f"rr_in(&rr_c, {at}, (const void *)&({text}), sizeof({text}));"
            lines.append("\t" + self._guarded(extra, line))
        for i, extra in enumerate(self.f.outputs):
            if extra.kind == "kept":
                size = f"(i64)({extra.size})"
                take = f"rr_k{i} = rr_kept((const void *)({extra.expression}), {size});"
                lines.append(f"\tu64 rr_k{i} = 0; {self._guarded(extra, take)}")
            if extra.kind == "stream":
                lines.append(f"\trr_stream_enter(&rr_c, (void *)({extra.expression}));")
        return lines

    def _guarded(self, extra: Extra, statement: str) -> str:
        """The statement, if need be only for a parameter that is not NULL."""
        if extra.when:
            return f"if ({self.olds.replace(extra.when)}) {{ {statement} }}"
        named = re.match(r"\*?\s*\(*([A-Za-z_]\w*)", extra.expression)
        if named is None or extra.expression == named[1]:
            return statement
        pointers = {p.name for p in self.f.parameters if p.type.kind == "pointer"}
        return f"if ({named[1]}) {{ {statement} }}" if named[1] in pointers else statement

    def _input(self, i: int, parameter: Parameter, role: Guarded) -> list[str]:
        lines, compare = [], "RR_C_NULL" if parameter.type.kind in ("pointer", "function") else "RR_C_VALUE"
        name = parameter.name
        for part in role.parts:
            argument = self.olds.replace(part.argument)
            match part.kind:
                case "value":
                    compare = "RR_C_VALUE"
                case "handle":
                    compare = "RR_C_HANDLE"
                case "free":
                    compare = "RR_C_NULL | 16"
                case "ignore":
                    compare = "0"
                case "data":
                    lines.append(f"\trr_data(&rr_c, {i}, (void *){name});")
                case "string":
                    lines.append(f"\trr_in_string(&rr_c, {i}, (const char *){name});")
                case "strings":
                    lines.append(f"\trr_in_strings(&rr_c, {i}, (char **){name}, {argument or -1});")
                case "in" | "inout":
                    lines.append(
                        f"\trr_in(&rr_c, {i}, (const void *){name}, {bytes_of(parameter.type, argument)});"
                    )
                case "callback":
                    compare = "RR_C_VALUE"
                    number = self.numbered.callbacks[argument]
                    lines.append(
                        f"\tif ((u64){name} > 4096 && (u64){name} < (u64)-4096) {{ "
                        "int rr_s = rr_callback_slot("
                        f"(void *){name}, rr_fns_{argument}, {CALLBACK_SLOTS}, {number}); if (rr_s >= 0) {{ "
                        f"{place_of(i)} = rr_s + 1; "
                        f"if (!rr_c.replaying) {name} = (void *)rr_stubs_{argument}[rr_s]; }} }}"
                    )
        return [f"\trr_c.cmp[{i}] = {compare};", *lines]

    def _after(self) -> list[str]:
        lines: list[str] = []
        for i, parameter in enumerate(self.f.parameters):
            bodies = []
            for role in parameter.roles:
                body = []
                for part in role.parts:
                    if part.kind in ("out", "inout"):
                        size = bytes_of(parameter.type, self.olds.replace(part.argument))
                        body.append(
                            f"\trr_out(&rr_c, {i}, (void *){parameter.name}, rr_c.replaying ? 0 : {size});"
                        )
                bodies.append(body)
            if any(bodies):
                lines += branches(parameter, bodies)
        lines += self._result()
        for i, extra in enumerate(self.f.outputs):
            lines.append(self._extra(EXTRA + i, extra))
        return lines

    def _extra(self, at: int, extra: Extra) -> str:
        expression = self.olds.replace(extra.expression)
        return "\t" + self._guarded(extra, self._extra_text(at, extra, expression).strip())

    def _extra_text(self, at: int, extra: Extra, expression: str) -> str:
        match extra.kind:
            case "offset":
                return (
                    f"\t{{ i64 rr_by = (i64)((u8 *)({expression}) - (u8 *)({extra.size})); "
                    f"rr_out(&rr_c, {at}, &rr_by, 8); "
                    f"if (rr_c.replaying) {expression} = (void *)((u8 *)({extra.size}) + rr_by); }}"
                )
            case "value":
                return f"\trr_out(&rr_c, {at}, (void *)&({expression}), sizeof({expression}));"
            case "copy":
                size = self.olds.replace(extra.size)
                return (
                    f"\t{{ void *rr_t = rr_ret(&rr_c, {at}, (const void *)({expression}), "
                    f"rr_c.replaying ? 0 : (i64)({size}), 0); if (rr_c.replaying) {expression} = rr_t; }}"
                )
            case "kept":
                now = f"rr_kept((const void *)({expression}), (i64)({extra.size}))"
                return f"\tif (!rr_c.replaying && {now} != rr_k{at - EXTRA}) rr_broken(&rr_c);"
            case "stream":
                return f"\trr_stream(&rr_c, {at}, (void *)({expression}));"
            case "vector":
                return f"\trr_out_vector(&rr_c, {at}, (const void *)({expression}), {extra.size});"
            case "strings":
                return f"\trr_out_strings(&rr_c, {at}, (char ***)&({expression}));"
            case "remember":
                return f"\trr_remember((u64)({expression}), (void *)({extra.size}));"
            case "remembered":
                return f"\trr_remembered(&rr_c, {at}, (u64)({expression}));"
            case "blocks":
                each = f"(i64)({extra.size})"
                return f"\trr_out_blocks(&rr_c, {at}, (char ***)&({expression}), {each});"
            case "addresses":
                return f"\trr_addresses(&rr_c, {at}, (void *)&({expression}));"
            case "scanned":
                done = "rr_c.replaying ? (i64)rr_c.result : (i64)result"
                return f"\trr_scanned(&rr_c, {at}, {expression}, rr_list, {done});"
            case "line":
                return f"\trr_line(&rr_c, {at}, (char **)&({expression}), room, (i64)({extra.size}));"
            case "pointer":
                return (
                    f"\trr_out(&rr_c, {at}, (void *)&({expression}), 8); "
                    f"if (rr_c.replaying) {expression} = rr_translate((u64)({expression}));"
                )
            case "advance":
                before = self.olds.replace(f"old({extra.expression})")
                return f"\trr_advance_pointer(&rr_c, {at}, (u8 **)&({expression}), (u8 *){before});"
            case "string":
                return (
                    f"\t{{ char *rr_t = rr_ret_string(&rr_c, {at}, "
                    f"rr_c.replaying ? 0 : (const char *)({expression}), 0); "
                    f"if (rr_c.replaying) {expression} = (void *)rr_t; }}"
                )
            case _:
                size = self.olds.replace(extra.size)
                return f"\trr_out(&rr_c, {at}, (void *)({expression}), rr_c.replaying ? 0 : (i64)({size}));"

    def _result(self) -> list[str]:
        kind, cast = self.f.returns, f"({self.f.returns.bare})"
        lines = []
        if self.f.special == "mmap":
            names = ", ".join(p.name for p in self.f.parameters[1:])
            return [f"\tresult = rr_mapped(&rr_c, {RESULT}, result, {names});"]
        for part in self.f.result.parts:
            size = (
                "rr_c.replaying ? 0 : " + bytes_of(kind, self.olds.replace(part.argument))
                if part.argument
                else "0"
            )
            match part.kind:
                case "string" | "new" | "malloc":
                    lines.append(
                        f"\tresult = {cast}rr_ret_string(&rr_c, {RESULT}, (const char *)result, "
                        f"{TEXT_ROLES[part.kind]});"
                    )
                case "buffer" | "alloc" | "object" | "realloc":
                    role = ("buffer", "alloc", "object", "realloc").index(part.kind)
                    lines.append(
                        f"\tresult = {cast}rr_ret(&rr_c, {RESULT}, (const void *)result, {size}, {role});"
                    )
                case "handle" | "data":
                    lines.append(f"\tif (rr_c.replaying) result = {cast}rr_translate(rr_c.result);")
                case "param":
                    name = part.argument
                    lines.append(
                        f"\t{{ i64 rr_by = (i64)((u8 *)result - (u8 *){name}); "
                        f"rr_out(&rr_c, {RESULT}, &rr_by, 8); "
                        f"if (rr_c.replaying) result = "
                        f"rr_c.result ? {cast}((u8 *){name} + rr_by) : {cast}0; }}"
                    )
        return lines


def _callback(callback: Callback, number: int) -> list[str]:
    """The functions that stand for one type of callback: one for each slot, and the one that replay calls."""
    name, returns, parameters = callback.name, callback.returns, callback.parameters
    declared, arguments = declare_all(parameters), names_of(parameters)
    assign = "" if returns.kind == "void" else "result = "
    done = "\treturn;" if returns.kind == "void" else "\treturn result;"
    keep = [] if returns.kind == "void" else [f"\trr_c.result = {as_word('result', returns)};"]
    head = [f"\t{returns.declare('result')};"] if returns.kind != "void" else []
    filled: list[str] = []
    given: list[str] = []
    taken: list[str] = []
    for i, parameter in enumerate(parameters):
        given += guard(parameter)
        bodies, back, after = [], [], []
        for role in parameter.roles:
            body, take, fill = [], [], []
            for part in role.parts:
                size = bytes_of(parameter.type, part.argument) if part.argument else "0"
                match part.kind:
                    case "string":
                        body.append(f"\trr_ret_string(&rr_c, {i}, (const char *){parameter.name}, 0);")
                        take.append(
                            f"\t{parameter.name} = ({parameter.type.bare})rr_region_of(rr_e, {i}, 0);"
                        )
                    case "strings":
                        body.append(
                            f"\trr_put_strings(&rr_c, {i}, (char **){parameter.name}, {part.argument or -1});"
                        )
                        take.append(f"\t{parameter.name} = ({parameter.type.bare})rr_strings_of(rr_e, {i});")
                    case "in" | "inout":
                        body.append(f"\trr_out(&rr_c, {i}, (void *){parameter.name}, {size});")
                        take.append(
                            f"\t{parameter.name} = ({parameter.type.bare})rr_region_of(rr_e, {i}, 0);"
                        )
                    case "object":
                        body.append(f"\trr_ret(&rr_c, {i}, (void *){parameter.name}, {size}, 2);")
                        take.append(
                            f"\t{{ u64 *rr_n = rr_region_of(rr_e, {i}, 0); {parameter.name} = rr_n ? "
                            f"({parameter.type.bare})rr_take(*rr_n ? *rr_n : 1) : 0; }}"
                        )
                        fill.append(f"\tif (rr_e) rr_drop((void *){parameter.name});")
                    case "out":
                        fill.insert(0, f"\trr_in(&rr_c, {i}, (void *){parameter.name}, {size});")
                    case "handle" | "data":
                        take.append(
                            f"\t{parameter.name} = "
                            f"({parameter.type.bare})rr_translate((u64){parameter.name});"
                        )
            bodies.append(body)
            back.append(take)
            after.append(fill)
        if any(bodies):
            given += branches(parameter, bodies)
        if any(back):
            taken += [*guard(parameter), *branches(parameter, back)]
        if any(after):
            filled += branches(parameter, after)
    set_arguments = [f"\t{place_of(i)} = {as_word(p.name, p.type)};" for i, p in enumerate(parameters)]
    stub = [
        "static " + returns.declare(f"rr_cb_{name}(int rr_slot{', ' if declared else ''}{declared})"),
        "{",
        original(returns, parameters, "rr_o", f"rr_fns_{name}[rr_slot]"),
        "\tstruct rr_call rr_c; struct rr_event *rr_e = 0;",
        *head,
        f"\tif (!rr_enter_callback(&rr_c, {number}, 0)) {{ {returning(returns, f'rr_o({arguments})')} }}",
        f"\trr_c.nargs = {len(parameters)};",
        *set_arguments,
        *given,
        "\trr_callback_enter(&rr_c, rr_slot);",
        f"\t{assign}rr_o({arguments});",
        *keep,
        *filled,
        "\trr_callback_leave(&rr_c);",
        done,
        "}",
    ]
    replayed = [
        f"void rr_cbr_{name}(struct rr_event *rr_e)",
        "{",
        "\tstruct rr_call rr_c;",
        "\tu64 *rr_more = rr_more_of(rr_e);" if len(parameters) > 6 else "",
        original(returns, parameters, "rr_o", f"rr_fns_{name}[rr_e->result]"),
        *(f"\t{p.type.declare(p.name)};" for p in parameters),
        *head,
        *(
            "\t" + from_word(f"rr_e->args[{i}]" if i < 6 else f"rr_more[{i - 6}]", p.name, p.type)
            for i, p in enumerate(parameters)
        ),
        *taken,
        "\trr_replay_begin(&rr_c, rr_e);",
        f"\t{assign}rr_o({arguments});",
        *keep,
        *[line for line in filled if "rr_g_" not in line],
        f"\trr_replay_end(&rr_c, {int(callback.result == 'handle')});",
        "}",
    ]
    count = 1 if callback.symbol else CALLBACK_SLOTS
    slots = [
        "static "
        + returns.declare(f"rr_cb_{name}_{i}({declared or 'void'}) ")
        + f"{{ {'' if returns.kind == 'void' else 'return '}"
        + f"rr_cb_{name}({i}{', ' if arguments else ''}{arguments}); }}"
        for i in range(count)
    ]
    table = ", ".join(f"rr_cb_{name}_{i}" for i in range(count))
    return [
        f"extern void *rr_fns_{name}[];",
        *stub,
        *slots,
        f"static void *rr_stubs_{name}[{count}] = {{ {table} }};",
        f"void *rr_first_{name}(void) {{ return rr_stubs_{name}[0]; }}",
        *replayed,
    ]
