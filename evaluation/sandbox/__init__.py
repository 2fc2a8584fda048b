"""Runs code that a model wrote, away from everything that is worth something.

    >>> run_program("def twice(n): return n + n", "assert twice(3) == 6", "twice")
    Outcome(passed=True, reason="", detail="", chosen=0)

Every program gets a fresh interpreter (`python -I -B`) with an empty environment, in an empty folder that is
a small memory disk, inside user, process, network, IPC and mount namespaces, behind Landlock (it reads Python
and the system's libraries, writes its folder), resource limits and seccomp (no sockets, no processes, no
signals). What it starts dies with it. Where the kernel lacks namespaces, Landlock and seccomp still make a
fence; where it lacks those, bubblewrap does if it is installed. probe() finds out once per process what
works, by trying to break out. With no fence run_program raises SandboxError, unless
configure(allow_unsafe=True) was called or CAPTRACK_ALLOW_UNSAFE_CODE=1 stands in the environment (configure
sets it, so worker processes inherit it): then only time, memory and file size are limited.

A pass is a random token written to a pipe after the last assertion, never an exit code. The tests'
comparisons see plain built-in values, so an object that equals everything equals nothing; builtins and the
modules that the tests import are restored between program and tests.

What this does not protect from: a program that looks for the token or for the grader's functions in its own
process (frames, gc) can forge its own pass, or patch a module again while a test calls it. It gains one row
of a benchmark and nothing else. A bug in the kernel's own fences is a hole here as well; the existence, size
and dates of files outside can be asked for (stat), not their content; side channels are open. Processor time
is limited, not reserved: many runs at once slow each other down, which is why the limit counts processor
seconds first and wall time later.
"""

from __future__ import annotations

import contextlib
import functools
import marshal
import os
import py_compile
import secrets
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

UNSAFE_VARIABLE = "CAPTRACK_ALLOW_UNSAFE_CODE"
# how a run can end without a pass; the last two say nothing about the program
WRONG = (
    "syntax_error",
    "wrong_answer",
    "exception",
    "timeout",
    "memory",
    "forbidden",
    "no_code_found",
    "no_entry_point",
)
UNSCORED = ("broken_tests", "no_tests")

_HOME = str(Path(__file__).resolve().parent)
# imported, not run as a script: so the child's code is compiled once, not once per program
_IMPORT = "import sys, marshal; sys.path.insert(0, sys.argv[1]); import jail; "
_START = _IMPORT + "jail.start(marshal.load(sys.stdin.buffer))"
_PROBE = _IMPORT + "sys.stdout.buffer.write(marshal.dumps(jail.probe(*marshal.load(sys.stdin.buffer))))"
_REPORT_BYTES = 1 << 16
# what the parent grants beyond the wall limit, for start-up on a busy machine, before it ends the child
# itself
_GRACE_SECONDS = 10.0


class SandboxError(RuntimeError):
    """There is no fence here and unsafe running was not allowed, or a fence that the probe saw did not
    close.
    """


@dataclass(frozen=True)
class Limits:
    """Of one program with its tests. cpu_seconds is the published limit; a program that only sleeps meets
    wall_seconds. file_bytes: one file; disk_bytes: the whole folder (with namespaces). processes: threads."""

    cpu_seconds: int = 10
    wall_seconds: float = 15.0
    memory_bytes: int = 1 << 30
    file_bytes: int = 1 << 20
    disk_bytes: int = 16 << 20
    processes: int = 64


@dataclass(frozen=True)
class Outcome:
    """reason: "" for a pass, else one of WRONG or UNSCORED. detail: one line for people. chosen: which of the
    programs that were offered was run."""

    passed: bool
    reason: str
    detail: str
    chosen: int = 0


@dataclass(frozen=True)
class Level:
    """What stands between a program and this machine. name: full | landlock | bubblewrap | none.

    layers: those of fence.LAYERS that are used. wrapper: the bubblewrap program, if used. missing: why a
    layer is not there. fence: whether this level was seen to stop a program from reading, sending and
    starting.
    """

    name: str
    layers: tuple[str, ...] = ()
    wrapper: str = ""
    missing: dict[str, str] = field(default_factory=dict)
    fence: bool = False

    def __str__(self) -> str:
        parts = [*self.layers, *(["bubblewrap"] if self.wrapper else []), "limits"]
        lacking = "; ".join(f"{layer} missing: {why}" for layer, why in self.missing.items())
        return f"{self.name} ({', '.join(parts)}{'; ' + lacking if lacking else ''})"


def configure(allow_unsafe: bool) -> None:
    """Allows or forbids running without a fence, here and in processes started from here on."""
    if allow_unsafe:
        os.environ[UNSAFE_VARIABLE] = "1"
    else:
        os.environ.pop(UNSAFE_VARIABLE, None)


def allows_unsafe() -> bool:
    return os.environ.get(UNSAFE_VARIABLE) == "1"


def run_program(
    program: str | Sequence[str],
    tests: str,
    entry_point: str | None,
    limits: Limits = Limits(),
    *,
    prelude: str = "",
    wanted: str = "",
) -> Outcome:
    """Runs a program and then its tests; from any thread or process.

    program: its text, or several readings of one answer, best first: the first that parses and defines the
    entry point is run. tests: statements; if they define check, it is called with the entry point. prelude:
    what the prompt gave before the function (imports, helpers). wanted: the name that the tests call, where
    no entry_point is given. Raises SandboxError (see there).
    """
    level = probe()
    if not level.fence and not allows_unsafe():
        raise SandboxError(
            f"no sandbox on this machine: {level}. Install bubblewrap, or run without (--allow_unsafe_code)"
        )
    programs = [program] if isinstance(program, str) else list(program)
    if not programs:
        return Outcome(False, "no_code_found", "")
    return _run(level, programs, tests, entry_point or "", limits, prelude, wanted)


@functools.cache
def probe() -> Level:
    """The level that this machine reaches; found by running a program that tries to break out (about 0.1
    s).
    """
    if os.name != "posix" or not hasattr(os, "fork"):
        return Level("none", missing={"posix": "this system has no fork"})
    found = _probe_layers()
    layers = tuple(layer for layer, why in found.items() if not why)
    missing = {layer: why for layer, why in found.items() if why}
    tries = []
    if "landlock" in layers and "seccomp" in layers:
        tries.append(Level("landlock" if missing else "full", layers, "", missing))
    wrapper = shutil.which("bwrap")
    if wrapper:
        kept = tuple(layer for layer in layers if layer != "namespaces")
        tries.append(Level("bubblewrap", kept, wrapper, missing))
    for level in tries:
        why = _escapes(level)
        if not why:
            return Level(level.name, level.layers, level.wrapper, level.missing, fence=True)
        missing = {**missing, level.name: why}
    return Level("none", missing=missing)


# run behind a fence that works, every one of these is refused; PARENT and OUTSIDE are put in
_ESCAPES = """
import os, socket
def refused(act):
    try:
        act()
    except OSError:
        return True
    return False
assert refused(lambda: open('OUTSIDE/canary').read()), 'reads files outside'
assert refused(lambda: open('OUTSIDE/made', 'w')), 'writes files outside'
assert refused(lambda: open('/proc/PARENT/environ').read()), 'reads the environment of its parent'
assert refused(lambda: socket.create_connection(('127.0.0.1', PORT), 1)), 'reaches the network'
open('own', 'w').write('x')
"""


def _escapes(level: Level) -> str:
    """ "" where the level holds; else what a program could do, or why it did not run."""
    import socket

    outside = tempfile.mkdtemp(prefix="captrack-probe-")
    try:
        Path(outside, "canary").write_text("x")
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            server.listen(4)
            tests = _ESCAPES.replace("OUTSIDE", outside).replace("PARENT", str(os.getpid()))
            tests = tests.replace("PORT", str(server.getsockname()[1]))
            outcome = _run(level, ["pass"], tests, "", Limits(), "", "")
        return "" if outcome.passed else outcome.detail or outcome.reason
    except (OSError, SandboxError) as error:
        return str(error)
    finally:
        shutil.rmtree(outside, ignore_errors=True)


def _compile_child() -> None:
    """Keeps the child's bytecode beside it, where that can be written: it saves a quarter of every start."""
    for name in ("jail.py", "fence.py", "grade.py"):
        with contextlib.suppress(OSError, py_compile.PyCompileError):
            py_compile.compile(str(Path(_HOME, name)), doraise=True)


def _probe_layers() -> dict[str, str]:
    _compile_child()
    folder = tempfile.mkdtemp(prefix="captrack-probe-")
    job = marshal.dumps((folder, _readable()))
    command = [sys.executable, "-I", "-B", "-c", _PROBE, _HOME]
    try:
        done = subprocess.run(
            command,
            input=job,
            capture_output=True,
            cwd=folder,
            env=_environment(folder),
            timeout=60,
            check=True,
        )
        return marshal.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError, EOFError) as error:
        return dict.fromkeys(("namespaces", "landlock", "seccomp"), f"the probe failed: {error}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def _readable() -> list[str]:
    """What a program may read: this Python's libraries, the system's, and a few devices."""
    roots = [Path(sys.executable).resolve().parent.parent, Path(sys.base_prefix), Path(sys.prefix)]
    paths = [str(root / name) for root in roots for name in ("lib", "lib64", "pyvenv.cfg")]
    paths += ["/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64", "/usr/share/zoneinfo"]
    paths += ["/etc/ld.so.cache", "/etc/localtime", "/dev/zero", "/dev/random", "/dev/urandom"]
    return list(dict.fromkeys(path for path in paths if Path(path).exists()))


def _environment(folder: str) -> dict[str, str]:
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    fixed = {
        "PATH": "/usr/bin:/bin",
        "HOME": folder,
        "TMPDIR": folder,
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
    }
    return {**fixed, **dict.fromkeys(names, "1")}


def _wrapped(level: Level, command: list[str], folder: str) -> list[str]:
    if not level.wrapper:
        return command
    # the interpreter itself must be there as well, under the name that it is called by and the one behind the
    # link
    programs = [sys.executable, str(Path(sys.executable).resolve())]
    shown = list(dict.fromkeys([*_readable(), *programs, _HOME]))
    binds = [part for path in shown if not path.startswith("/dev/") for part in ("--ro-bind", path, path)]
    isolation = ["--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--dev", "/dev"]
    return [level.wrapper, *isolation, *binds, "--bind", folder, folder, "--chdir", folder, "--", *command]


def _run(
    level: Level,
    programs: list[str],
    tests: str,
    entry: str,
    limits: Limits,
    prelude: str,
    wanted: str,
) -> Outcome:
    token = secrets.token_hex(16).encode()
    folder = tempfile.mkdtemp(prefix="captrack-code-")
    report, report_in = os.pipe()
    job = {
        "home": _HOME,
        "programs": programs,
        "tests": tests,
        "entry_point": entry,
        "prelude": prelude,
        "wanted": wanted,
        "token": token,
        "report": report_in,
        "folder": folder,
        "parent": 0 if level.wrapper else os.getpid(),
        "layers": list(level.layers),
        "read": _readable(),
        "cpu_seconds": limits.cpu_seconds,
        "wall_seconds": limits.wall_seconds,
        "memory_bytes": limits.memory_bytes,
        "file_bytes": limits.file_bytes,
        "disk_bytes": limits.disk_bytes,
        # outside a user namespace the user's other processes would count as well
        "processes": limits.processes if level.wrapper or "namespaces" in level.layers else None,
    }
    command = _wrapped(level, [sys.executable, "-I", "-B", "-c", _START, _HOME], folder)
    try:
        with tempfile.TemporaryFile() as file:
            file.write(marshal.dumps(job))
            file.seek(0)
            child = subprocess.Popen(
                command,
                stdin=file,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if level.wrapper else subprocess.DEVNULL,
                pass_fds=(report_in,),
                cwd=folder,
                env=_environment(folder),
                start_new_session=True,
            )
        os.close(report_in)
        report_in = -1
        _finish(child, limits.wall_seconds + _GRACE_SECONDS)
        with child.stdout:
            ending = _read_now(child.stdout.fileno())
        if child.stderr:
            child.stderr.close()
        return _outcome(_read_now(report), token, ending, limits)
    finally:
        if report_in >= 0:
            os.close(report_in)
        os.close(report)
        shutil.rmtree(folder, ignore_errors=True)


def _finish(child: subprocess.Popen[bytes], seconds: float) -> None:
    """Waits for the child's end, at most `seconds`, and ends its process group in every case.

    Popen.wait with a limit sleeps in doubling steps, which would add up to 32 ms a program; a pidfd wakes at
    once. The group is ended before the child is reaped: until then its number cannot belong to anyone else.
    """
    try:
        try:
            handle = os.pidfd_open(child.pid)
        except (AttributeError, OSError):
            end = time.monotonic() + seconds
            waiting = os.WEXITED | os.WNOHANG | os.WNOWAIT
            while time.monotonic() < end and os.waitid(os.P_PID, child.pid, waiting) is None:
                time.sleep(0.005)
        else:
            try:
                poll = select.poll()
                poll.register(handle, select.POLLIN)
                poll.poll(seconds * 1000)
            finally:
                os.close(handle)
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _read_now(pipe: int) -> bytes:
    """What lies in a pipe, without waiting for more."""
    os.set_blocking(pipe, False)
    try:
        return os.read(pipe, _REPORT_BYTES)
    except BlockingIOError:
        return b""


def _outcome(report: bytes, token: bytes, ending: bytes, limits: Limits) -> Outcome:
    what, number, seconds = (ending.decode("ascii", "replace").split() + ["", "", ""])[:3]
    start = report.rfind(b"\n" + token + b"\0")
    if start >= 0:
        fields = report[start + 1 :].rstrip(b"\n").split(b"\0")
        reason, detail, *rest = [text.decode("utf-8", "replace") for text in fields[1:]]
        if reason == "fence_failed":
            raise SandboxError(f"the sandbox did not close: {detail}")
        chosen = int(rest[0]) if rest and rest[0].isdigit() else 0
        return Outcome(not reason, reason, detail, chosen)
    if not what:
        return Outcome(False, "timeout", f"no end within {limits.wall_seconds + _GRACE_SECONDS:g} s")
    # a hair under the limit where the clock ticks are coarse
    spent = float(seconds) >= limits.cpu_seconds - 0.05
    if what == "timeout" or spent or number == str(int(signal.SIGXCPU)):
        return Outcome(False, "timeout", f"stopped at its limit, after {seconds} s of processor time")
    if what == "signal":
        reason = "memory" if number == str(int(signal.SIGKILL)) else "exception"
        return Outcome(False, reason, f"ended by signal {number}")
    return Outcome(False, "exception", f"the process ended with status {number} before its tests did")
