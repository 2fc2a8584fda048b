"""Inside the fence: chooses the reading that is Python, runs it, runs the tests, names a reason.

    verdict({"programs": ["def twice(n) return", "def twice(n):\\n    return n + n"], "prelude": "",
             "tests": "assert twice(3) == 6", "entry_point": "twice", "wanted": "twice"})  ->  ("", "", 1)

Everything from here on shares its process with the program, which is why what matters is bound to local names
before the program runs.
"""

from __future__ import annotations

import builtins
import os
import sys
import types

PROGRAM, TESTS = "<program>", "<tests>"


def verdict(job: dict) -> tuple[str, str, int]:
    """Runs the job's program and tests here: (reason, detail, number of the program); reason "" is a pass."""
    tests, entry = job["tests"], job["entry_point"]
    try:
        tree = compile(tests, TESTS, "exec", 0x400, dont_inherit=True)  # PyCF_ONLY_AST
        if not tree.body:
            return "no_tests", "the tests hold no statement", 0
        if not entry and not _runs_something(tree):
            return "no_tests", "the tests only define things, and no entry point says what they check", 0
        own = _own_names(tree, (entry, job["wanted"]))
        tests_code = compile(_with_plain_comparisons(tree), TESTS, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return "broken_tests", _describe(error), 0

    chosen, program = _choose(job["programs"], entry or job["wanted"])
    if isinstance(program, BaseException):
        return "syntax_error", _describe(program), chosen

    # a real module: dataclasses and typing look it up. Not "__main__", so that demonstrations stay quiet
    module = types.ModuleType("solution")
    names = module.__dict__
    sys.modules["solution"] = module
    kept = _snapshot(tree)
    write, leave, run, plain, settrace = os.write, os._exit, exec, _plain, sys.settrace
    try:
        prelude = compile(job["prelude"], "<prompt>", "exec", dont_inherit=True)
        run(prelude, names)
    except BaseException:
        # the prompt is prose, or not whole: the program stands alone
        pass
    try:
        run(program, names)
        if entry and entry not in names:
            return "no_entry_point", f"{entry} is not defined", chosen
        candidate = names.get(entry)
        names.pop("check", None) if entry != "check" else None
        _restore(kept)
        settrace(None)
        names.update(own, __plain__=plain, __builtins__=builtins)
        run(tests_code, names)
        check = names.get("check")
        if entry and entry != "check" and callable(check):
            check(candidate)
    except BaseException as error:
        _restore(kept)
        return (*_reason(error, entry, job["wanted"]), chosen)
    finally:
        # the verdict is still to be told, and the process to be left
        os.write, os._exit = write, leave
    return "", "", chosen


def _choose(programs: list[str], wanted: str) -> tuple[int, object]:
    """The first text that is Python and defines `wanted`; else the first that is Python; else the first's
    error.
    """
    first_error: object = None
    usable: tuple[int, object] | None = None
    for number, text in enumerate(programs):
        try:
            tree = compile(text, PROGRAM, "exec", 0x400, dont_inherit=True)
            code = compile(tree, PROGRAM, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
            first_error = first_error or error
            continue
        if not wanted or (wanted in code.co_names and wanted in _defined(tree.body)):
            return number, code
        usable = usable or (number, code)
    return usable or (0, first_error or SyntaxError("no program"))


def _defined(body: list) -> set[str]:
    """Names that top-level statements bind, also inside if, try and with."""
    found: set[str] = set()
    for node in body:
        for block in ("body", "orelse", "finalbody", "handlers"):
            if type(node).__name__ in ("If", "Try", "TryStar", "With", "ExceptHandler", "For", "While"):
                found |= _defined(getattr(node, block, []))
        if hasattr(node, "name"):
            found.add(node.name)
        for target in [*getattr(node, "targets", []), getattr(node, "target", None)]:
            for one in [target, *getattr(target, "elts", [])]:
                found.add(getattr(one, "id", ""))
        for alias in getattr(node, "names", []):
            found.add(getattr(alias, "asname", None) or getattr(alias, "name", ""))
    return found


_QUIET = (
    "FunctionDef",
    "AsyncFunctionDef",
    "ClassDef",
    "Import",
    "ImportFrom",
    "Assign",
    "AnnAssign",
    "Pass",
)


def _runs_something(tree: object) -> bool:
    def quiet(node: object) -> bool:
        constant = type(node).__name__ == "Expr" and type(node.value).__name__ == "Constant"
        return constant or type(node).__name__ in _QUIET

    return not all(quiet(node) for node in tree.body)


def _walk(tree: object) -> list:
    found, todo = [], [tree]
    while todo:
        node = todo.pop()
        found.append(node)
        for name in node._fields:
            value = getattr(node, name, None)
            todo += [
                item for item in (value if isinstance(value, list) else [value]) if hasattr(item, "_fields")
            ]
    return found


def _with_plain_comparisons(tree: object) -> object:
    """The tests with both sides of every comparison (but `is`) passed through _plain."""
    import _ast

    def plain(node: object) -> object:
        place = {
            name: getattr(node, name) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")
        }
        function = _ast.Name("__plain__", _ast.Load(), **place)
        return _ast.Call(function, [node], [], **place)

    for node in _walk(tree):
        if isinstance(node, _ast.Compare) and not all(
            isinstance(op, _ast.Is | _ast.IsNot) for op in node.ops
        ):
            node.left = plain(node.left)
            node.comparators = [plain(side) for side in node.comparators]
    return tree


def _own_names(tests: object, theirs: tuple[str, ...]) -> dict[str, object]:
    """Renames the built-in functions that the tests use, in place, and returns them under their new names.

    So a program's own `abs` or `all` serves the program and not the tests. `theirs`: what the tests are to
    find in the program, though it may be called `sum`.
    """
    names = [node for node in _walk(tests) if type(node).__name__ == "Name"]
    bound = {node.id for node in names if type(node.ctx).__name__ != "Load"} | _defined(tests.body)
    found = {}
    for node in names:
        if node.id not in bound and node.id not in theirs and node.id in vars(builtins):
            found["__tests_" + node.id] = vars(builtins)[node.id]
            node.id = "__tests_" + node.id
    return found


def _snapshot(tests: object) -> list[tuple[dict, dict]]:
    """Copies of builtins and of the modules that the tests import, taken before the program can change
    them.
    """
    modules = [builtins]
    for node in _walk(tests):
        if type(node).__name__ == "Import":
            names = [alias.name for alias in node.names]
        elif type(node).__name__ == "ImportFrom" and node.module and not node.level:
            names = [node.module]
        else:
            continue
        for name in names:
            try:
                modules.append(__import__(name, fromlist=["*"]))
            except BaseException:
                # the tests will meet it themselves
                continue
    return [(vars(module), dict(vars(module))) for module in modules]


def _restore(kept: list[tuple[dict, dict]]) -> None:
    for live, copy in kept:
        live.update(copy)


def _plain(value: object, depth: int = 0) -> object:
    """A value for comparing: containers and subclasses as the built-in type that they are, by that type's own
    methods.

    An object of a class that the program wrote becomes (class, attributes), so two of them compare by content
    and none equals anything else, whatever its __eq__ says. Objects of other classes (Decimal, arrays) stay
    as they are.
    """
    kind = type(value)
    if kind in _ATOMS:
        return value
    if depth > 200:
        raise RecursionError("nested too deep to compare")
    for base, convert in _CONTAINERS:
        if issubclass(kind, base):
            return convert(value, depth + 1)
    for base, convert in _SUBCLASSED:
        if issubclass(kind, base):
            return convert(value)
    heap, immutable = kind.__flags__ & (1 << 9), kind.__flags__ & (1 << 8)
    if not heap or immutable or _is_library(kind):
        return value
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except AttributeError:
        attributes = {}
    return kind, tuple(_plain(attributes, depth + 1).items())


def _is_library(kind: type) -> bool:
    module = sys.modules.get(kind.__module__)
    known = module is not None and getattr(module, "__spec__", None) is not None
    return known and getattr(module, kind.__name__, None) is kind


_ATOMS = frozenset((type(None), bool, int, float, complex, str, bytes, range, type(Ellipsis)))
_CONTAINERS = (
    (list, lambda value, depth: [_plain(item, depth) for item in list.__iter__(value)]),
    (tuple, lambda value, depth: tuple([_plain(item, depth) for item in tuple.__iter__(value)])),
    (dict, lambda value, depth: {_plain(k, depth): _plain(v, depth) for k, v in dict.items(value)}),
    (set, lambda value, depth: {_plain(item, depth) for item in set.__iter__(value)}),
    (frozenset, lambda value, depth: frozenset([_plain(item, depth) for item in frozenset.__iter__(value)])),
)
_SUBCLASSED = (
    (int, lambda value: int.__add__(value, 0)),
    (float, lambda value: float.__add__(value, 0.0)),
    (complex, lambda value: complex.__add__(value, 0j)),
    (str, lambda value: str.__str__(value)),
    (bytes, lambda value: b"".join([b"", value])),
)


def _reason(error: BaseException, entry: str, wanted: str) -> tuple[str, str]:
    """A reason code and one line for what ended the run."""
    place, in_tests = _place(error)
    detail = _describe(error) + place
    chain, seen = error, 0
    while chain is not None and seen < 20:
        inner = getattr(chain, "reason", None)
        for one in (chain, inner):
            if isinstance(one, PermissionError) or (isinstance(one, OSError) and one.errno in (27, 28)):
                return "forbidden", detail
        chain, seen = chain.__cause__ or chain.__context__, seen + 1
    if isinstance(error, MemoryError):
        return "memory", detail
    if isinstance(error, AssertionError) and in_tests:
        return "wrong_answer", detail
    if isinstance(error, ImportError) and in_tests:
        return "broken_tests", detail
    if isinstance(error, NameError) and in_tests and error.name and error.name in (entry, wanted):
        return "no_entry_point", detail
    return "exception", detail


def _place(error: BaseException) -> tuple[str, bool]:
    """Where it happened, and whether the innermost frame is the tests' own."""
    trace, place, in_tests, steps = error.__traceback__, "", False, 0
    while trace is not None and steps < 100_000:
        name = trace.tb_frame.f_code.co_filename
        in_tests = name == TESTS
        if name in (PROGRAM, TESTS):
            place = f" ({name[1:-1]}, line {trace.tb_lineno})"
        trace, steps = trace.tb_next, steps + 1
    return place, in_tests


def _describe(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException:
        text = ""
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__
