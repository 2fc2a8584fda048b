"""The child that runs one program: started by run_program as `python -I -B`, told what to do on standard
input.

Three processes, the last one alone inside the fence:
    starter   enters the namespaces, waits
    keeper    process 1 of the new process namespace: ends the run at its limit, ends what it left behind,
    reports how
              it ended ("exit 0 1.2", "timeout 0 10.0", "signal 11 0.3": what, number, seconds of processor
              time)
    worker    closes the fence, then runs program and tests and reports the verdict behind the parent's token

The job, as run_program sends it: {"programs": ["def twice(n):\\n    return n + n"], "tests": "assert twice(3)
== 6", "prelude": "", "entry_point": "twice", "token": b"…", "layers": ["namespaces", "landlock", "seccomp"],
…}
"""

from __future__ import annotations

import builtins
import os
import select
import signal
import sys
import time
import types

import fence

PROGRAM, TESTS = "<program>", "<tests>"
# between fields of the verdict
SEPARATOR = b"\0"


def start(job: dict) -> None:
    """Runs a job to its end and leaves the process; the keeper's last line is on standard output."""
    for name in ("jail", "fence"):
        sys.modules.pop(name, None)
    sys.path[:] = [path for path in sys.path if path != job["home"]]
    namespaces = "namespaces" in job["layers"]
    if namespaces:
        fence.enter_namespaces(job["folder"], job["disk_bytes"])
    fence.die_with_parent()
    if job["parent"] and os.getppid() != job["parent"]:
        os._exit(1)
    keeper = os.fork()
    if keeper:
        os.close(1)
        os.close(job["report"])
        os.waitpid(keeper, 0)
        os._exit(0)
    fence.die_with_parent()
    fence.adopt_orphans()
    worker = os.fork()
    if not worker:
        _work(job)
    _keep(worker, job["wall_seconds"], namespaces)


def _keep(worker: int, wall_seconds: float, namespaces: bool) -> None:
    started = time.monotonic()
    what = "exit"
    while True:
        left = wall_seconds - (time.monotonic() - started)
        if left <= 0:
            what = "timeout"
            os.kill(worker, signal.SIGKILL)
        pid, status, usage = _wait(worker, max(left, 0) if what == "exit" else None)
        if pid == worker:
            break
    seconds = usage.ru_utime + usage.ru_stime
    number = os.waitstatus_to_exitcode(status)
    if what == "exit" and number < 0:
        what, number = "signal", -number
    if not namespaces:  # where there are, the end of process 1 is the end of all
        _end_orphans()
    os.write(1, f"{what} {number} {seconds:.2f}\n".encode())
    os._exit(0)


def _wait(worker: int, seconds: float | None) -> tuple[int, int, object]:
    """Waits for the worker, at most `seconds`; a pidfd wakes at once where the kernel has one."""
    if seconds is not None:
        try:
            handle = os.pidfd_open(worker)
        except (AttributeError, OSError):
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                found = os.wait4(worker, os.WNOHANG)
                if found[0]:
                    return found
                time.sleep(0.005)
        else:
            poll = select.poll()
            poll.register(handle, select.POLLIN)
            poll.poll(seconds * 1000)
            os.close(handle)
        return os.wait4(worker, os.WNOHANG)
    return os.wait4(worker, 0)


def _end_orphans() -> None:
    """Without namespaces: kills what the program started, also in a session of its own, until nothing is
    left.
    """
    for _ in range(50):
        for pid in _children():
            os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.01)


def _children() -> list[int]:
    me, found = os.getpid(), []
    if not os.path.isdir("/proc/self"):  # noqa: PTH112
        return found
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    if int(file.read().rpartition(b")")[2].split()[1]) == me:
                        found.append(int(name))
            except (OSError, IndexError):
                continue
    return found


def _work(job: dict) -> None:
    try:
        _close_fence(job)
    except BaseException as error:
        _say(job["report"], job["token"], "fence_failed", str(error))
        os._exit(3)
    reason, detail, chosen = _verdict(job)
    _say(job["report"], job["token"], reason, detail, str(chosen))
    os._exit(0)


def _say(report: int, token: bytes, *fields: str) -> None:
    texts = [field.replace("\0", " ")[:1000].encode("utf-8", "replace") for field in fields]
    os.write(report, b"\n" + SEPARATOR.join([token, *texts]) + b"\n")


def _close_fence(job: dict) -> None:
    layers = job["layers"]
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    report = os.dup2(job["report"], 3) if job["report"] != 3 else 3
    job["report"] = report
    os.closerange(4, 256)
    if sys.platform == "linux":
        fence.drop_capabilities()
    fence.die_with_parent()
    if "landlock" in layers:
        fence.enter_landlock(job["read"], job["folder"])
    processes = job["processes"] if "namespaces" in layers else None
    fence.set_limits(job["cpu_seconds"], job["memory_bytes"], job["file_bytes"], processes)
    if "seccomp" in layers:
        fence.enter_seccomp()


# --- the verdict: (reason, detail, number of the program that was chosen); reason "" is a pass --------------
def _verdict(job: dict) -> tuple[str, str, int]:
    tests, entry = job["tests"], job["entry_point"]
    try:
        tree = compile(tests, TESTS, "exec", 0x400, dont_inherit=True)  # PyCF_ONLY_AST
        if not tree.body:
            return "no_tests", "the tests hold no statement", 0
        if not entry and not _runs_something(tree):
            return "no_tests", "the tests only define things, and no entry point says what they check", 0
        tests_code = compile(_with_plain_comparisons(tree), TESTS, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return "broken_tests", _describe(error), 0

    chosen, program = _choose(job["programs"], entry or job["wanted"])
    if isinstance(program, BaseException):
        return "syntax_error", _describe(program), chosen

    # a real module: dataclasses and typing look their classes' module up. Not "__main__": demonstrations stay
    # quiet
    module = types.ModuleType("solution")
    names = module.__dict__
    sys.modules["solution"] = module
    kept = _snapshot(tree)
    write, leave, run, plain, describe = os.write, os._exit, exec, _plain, _describe
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
        names["__plain__"] = plain
        run(tests_code, names)
        check = names.get("check")
        if entry and entry != "check" and callable(check):
            check(candidate)
    except BaseException as error:
        _restore(kept)
        os.write, os._exit = write, leave
        return (*_reason(error, entry, job["wanted"]), chosen)
    os.write, os._exit = write, leave
    return "", describe(None), chosen


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


def _describe(error: BaseException | None) -> str:
    if error is None:
        return ""
    try:
        text = str(error)
    except BaseException:
        text = ""
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__


def probe(folder: str, read: list[str]) -> dict[str, str]:
    """Tries each layer in a process of its own: {layer: "" if it works, else why not}."""
    tries = {
        "namespaces": lambda: fence.enter_namespaces(folder, 1 << 20),
        "landlock": lambda: fence.enter_landlock(read, folder),
        "seccomp": fence.enter_seccomp,
    }
    found = {}
    for layer, enter in tries.items():
        out, into = os.pipe()
        pid = os.fork()
        if not pid:
            try:
                enter()
            except BaseException as error:
                os.write(into, str(error).encode()[:500] or b"failed")
                os._exit(1)
            os._exit(0)
        os.close(into)
        with os.fdopen(out, "rb") as file:
            text = file.read().decode("utf-8", "replace")
        status = os.waitpid(pid, 0)[1]
        found[layer] = text if text or not status else f"ended with status {status}"
    return found
