# ruff: noqa: E501 (tables of programs, one line each)
"""The sandbox: attacks do not succeed, honest programs do, verdicts cannot be bought with tricks."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from hostile_programs import ATTACKS, PROVABLE
from support import ROOT

from evaluation import sandbox
from evaluation.sandbox import Limits, Outcome, SandboxError, run_program

RUNNER = ROOT / "tests" / "hostile_programs.py"
NOBODY = 65534
QUICK = Limits(cpu_seconds=1, wall_seconds=3.0)

FENCED = pytest.mark.skipif(not sandbox.probe().fence, reason=f"no sandbox here: {sandbox.probe()}")
IS_ROOT = os.name == "posix" and os.getuid() == 0


# --- attacks, as this user and as an ordinary one -----------------------------------------------------------
def attack(who: str, layers: str = "", wrapper: str = "") -> dict:
    """What came of every attack; as an ordinary user ("nobody") where this process is root."""
    return _attack(who, layers, wrapper)


@functools.cache
def _attack(who: str, layers: str, wrapper: str) -> dict:
    as_user, python = {}, sys.executable
    if who == "nobody":
        if not IS_ROOT:
            pytest.skip("the tests run as an ordinary user already")
        as_user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        python = next(
            (path for path in (sys.executable, "/usr/bin/python3") if _can_start(path, as_user)), None
        )
        if python is None:
            pytest.skip("an ordinary user cannot start any Python here")
    command = [
        python,
        "-W",
        "error",
        str(RUNNER),
        *([layers] if layers else []),
        *([wrapper] if wrapper else []),
    ]
    environment = {"PATH": os.environ["PATH"], "SECRET": "hostile-secret"}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd="/", timeout=300, **as_user
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _can_start(python: str, as_user: dict) -> bool:
    script = "import sys, ctypes; sys.exit(sys.version_info < (3, 11))"
    try:
        return subprocess.run([python, "-c", script], capture_output=True, **as_user).returncode == 0
    except OSError:
        return False


WHO = ("self", "nobody")
REASONS = {
    "network_ctypes": ("wrong_answer",),
    "read_home_by_ctypes": ("wrong_answer",),
    "shell": ("wrong_answer",),
    "new_user_namespace": ("wrong_answer",),
    "traces_parent": ("wrong_answer",),
    "thread_bomb": ("exception", "memory"),
    "memory_3_gb": ("memory",),
    "memory_list": ("memory",),
    "output_endless": ("timeout",),
    "report_flooded": ("timeout",),
    "sleeps": ("timeout",),
    "raises_its_limits": ("exception", "forbidden"),
    **dict.fromkeys([name for name in ATTACKS if name.startswith("exits_")], ("exception",)),
    "interrupts": ("exception",),
    "crashes": ("exception",),
}


@FENCED
@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("name", ATTACKS)
def test_attack_is_stopped(name: str, who: str) -> None:
    found = attack(who)
    if not found["fence"]:
        pytest.skip(f"no sandbox for this user: {found['level']}")
    if name == "disk_full" and "namespaces" not in found["level"]:
        pytest.skip("the folder's total size is limited by a mount namespace")
    outcome = found["outcomes"][name]
    assert not outcome["passed"], outcome
    assert outcome["reason"] in REASONS.get(name, ("forbidden",)), outcome


@FENCED
@pytest.mark.parametrize("who", WHO)
def test_nothing_outside_was_touched(who: str) -> None:
    found = attack(who)
    assert found["uid"] == (NOBODY if who == "nobody" else os.getuid())
    if not found["fence"]:
        pytest.skip(f"no sandbox for this user: {found['level']}")
    assert found["outside"] == ["canary", "goes", "moves", "server"]
    assert not found["touched"]
    assert not found["reached"]
    assert not found["daemon_lives"]


@FENCED
@pytest.mark.parametrize("who", WHO)
def test_attacks_are_real(who: str) -> None:
    """Without a fence every provable attack succeeds, so the tests above can fail; even then no daemon outlives."""
    found = attack(who, "none")
    # a root process has more rights than the program, whose capabilities are dropped even then
    expected = {name for name in PROVABLE if found["uid"] or not name.startswith("read_parent")}
    assert {name for name, outcome in found["outcomes"].items() if outcome["passed"]} >= expected
    assert found["reached"] and found["touched"]
    assert not found["daemon_lives"]


@FENCED
@pytest.mark.long
@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("layers", ["landlock,seccomp", "landlock,seccomp+bubblewrap", "seccomp+bubblewrap"])
def test_smaller_fences_hold_too(layers: str, who: str) -> None:
    wrapper = shutil.which("bwrap") or ""
    if "bubblewrap" in layers and not wrapper:
        pytest.skip("bubblewrap is not installed")
    found = attack(who, layers.removesuffix("+bubblewrap"), wrapper if "bubblewrap" in layers else "")
    # only the mount namespace of our own limits the folder as a whole; bubblewrap has a root folder of its own
    inside = {"disk_full", "list_root"} if layers == "seccomp+bubblewrap" else {"disk_full"}
    assert {name for name, outcome in found["outcomes"].items() if outcome["passed"]} <= inside
    assert found["outside"] == ["canary", "goes", "moves", "server"]
    assert not found["touched"] and not found["reached"] and not found["daemon_lives"]


@FENCED
@pytest.mark.parametrize("layers", [(), ("seccomp",), ("namespaces",), ("namespaces", "seccomp")])
def test_what_hides_no_file_is_no_fence(layers: tuple[str, ...]) -> None:
    assert "reads files outside" in sandbox._escapes(sandbox.Level("part", layers))


# --- a pass cannot be had by tricks -------------------------------------------------------------------------
EQUAL = (
    "class E{base}:\n    def __eq__(self, other): return True\n    def __ne__(self, other): return False\n"
)
EQUAL += "    def __hash__(self): return 1\n"
TRICKS = {
    "equals_everything": (EQUAL.format(base="") + "def f(n): return E()", "assert f(1) == 2"),
    "equals_everything_reversed": (EQUAL.format(base="") + "def f(n): return E()", "assert 2 == f(1)"),
    "equals_everything_as_int": (EQUAL.format(base="(int)") + "def f(n): return E(0)", "assert f(1) == 2"),
    "equals_everything_as_text": (
        EQUAL.format(base="(str)") + "def f(n): return E('')",
        "assert f(1) == 'a'",
    ),
    "equals_everything_as_list": (EQUAL.format(base="(list)") + "def f(n): return E()", "assert f(1) == [1]"),
    "equals_everything_in_a_list": (EQUAL.format(base="") + "def f(n): return [E()]", "assert f(1) == [2]"),
    "equals_everything_in_a_dict": (
        EQUAL.format(base="") + "def f(n): return {1: E()}",
        "assert f(1) == {1: 2}",
    ),
    "equals_everything_in_a_set": (
        EQUAL.format(base="") + "def f(n): return [E()]",
        "assert set(f(1)) == {2}",
    ),
    "is_in_everything": (EQUAL.format(base="") + "def f(n): return E()", "assert f(1) in [2, 3]"),
    "equals_by_metaclass": (
        "class M(type):\n    def __eq__(self, other): return True\nclass E(metaclass=M): pass\ndef f(n): return E",
        "assert f(1) == 2",
    ),
    "less_than_everything": (
        "class E:\n    def __sub__(self, other): return self\n    def __abs__(self): return self\n"
        "    def __lt__(self, other): return True\ndef f(n): return E()",
        "assert abs(f(1) - 0.5) < 1e-6",
    ),
    "own_check": (
        "def check(c): return None\ndef f(n): return 0",
        "def check(candidate):\n    assert candidate(1) == 2",
    ),
    "own_abs": ("abs = lambda x: 0\ndef f(n): return 9.0", "assert abs(f(1) - 0.5) < 1e-6"),
    "own_builtins": ("__builtins__ = {'all': lambda x: True}\ndef f(n): return 0", "assert all([f(1) == 2])"),
    "patched_abs": (
        "import builtins\nbuiltins.abs = lambda x: 0\ndef f(n): return 9.0",
        "assert abs(f(1)) < 1",
    ),
    "patched_isclose": (
        "import math\nmath.isclose = lambda *a: True\ndef f(n): return 0",
        "import math\nassert math.isclose(f(1), 2)",
    ),
    "patched_exec": (
        "import builtins\nbuiltins.exec = builtins.compile = lambda *a, **k: None\ndef f(n): return 0",
        "assert f(1) == 2",
    ),
    "patched_type": (
        "import builtins\nbuiltins.type = lambda x: int\ndef f(n): return 0",
        "assert f(1) == 2",
    ),
    "patched_assertion": (
        "import builtins\nbuiltins.AssertionError = KeyboardInterrupt\ndef f(n): return 0",
        "assert f(1) == 2",
    ),
    "patched_write": (
        "import os\nwrite = os.write\nos.write = lambda fd, b: write(fd, b.replace(b'wrong_answer', b''))\n"
        "def f(n): return 0",
        "assert f(1) == 2",
    ),
    "patched_exit": ("import os\nos._exit = lambda n: None\ndef f(n): return 0", "assert f(1) == 2"),
    "patched_exit_and_no_function": ("import os\nos._exit = lambda n: None", "assert f(1) == 2"),
    "patched_grader_module": (
        "import sys\nfor m in list(sys.modules.values()):\n    if hasattr(m, '_plain'): m._plain = lambda x: 0\n"
        "def f(n): return 0",
        "assert f(1) == 2",
    ),
    "traces_over_assertions": (
        "import sys\ndef trace(frame, event, arg):\n    if event == 'line' and frame.f_lineno == 1:\n"
        "        frame.f_lineno = 2\n    return trace\nsys.settrace(trace)\ndef f(n): return 0",
        "assert f(1) == 2\npass",
    ),
    "prints_a_verdict": ("print('passed')\ndef f(n): return 0", "assert f(1) == 2"),
    "writes_a_verdict": (
        "import os\nfor fd in range(16):\n    try: os.write(fd, b'\\n\\0\\0\\0')\n    except OSError: pass\n"
        "def f(n): return 0",
        "assert f(1) == 2",
    ),
}


@FENCED
@pytest.mark.parametrize("name", TRICKS)
def test_trick_does_not_pass(name: str) -> None:
    program, tests = TRICKS[name]
    outcome = run_program(program, tests, "f")
    assert not outcome.passed and outcome.reason in sandbox.WRONG, outcome


# --- what honest programs do works --------------------------------------------------------------------------
HONEST = {
    "plain": ("def f(n): return n + 1", "assert f(1) == 2"),
    "check": ("def f(n): return n + 1", "def check(candidate):\n    assert candidate(1) == 2"),
    "float_for_int": ("def f(n): return n + 1.0", "assert f(1) == 2"),
    "bool": ("def f(n): return True", "assert f(1) is True\nassert f(1) == True"),
    "nested": ("def f(n): return [(1, {2: {3}}, 'x')]", "assert f(1) == [(1, {2: {3}}, 'x')]"),
    "tuple_is_no_list": ("def f(n): return (1,)", "assert f(1) != [1]"),
    "named_tuple": (
        "from collections import namedtuple\nP = namedtuple('P', 'a')\ndef f(n): return P(1)",
        "assert f(1) == (1,)",
    ),
    "counter": ("from collections import Counter\ndef f(n): return Counter('aab')", "assert f(1) == {'a': 2, 'b': 1}"),
    "default_dict": (
        "from collections import defaultdict\ndef f(n):\n    d = defaultdict(int)\n    d[n] += 1\n    return d",
        "assert f(1) == {1: 1}",
    ),
    "fraction": ("from fractions import Fraction\ndef f(n): return Fraction(n, 2)", "assert f(1) == 0.5"),
    "decimal": ("from decimal import Decimal\ndef f(n): return Decimal(n)", "assert f(1) == 1"),
    "date": ("import datetime\ndef f(n): return datetime.date(2020, 1, n)", "import datetime\n"
             "assert f(1) == datetime.date(2020, 1, 1) and f(1) < datetime.date(2020, 1, 2)"),
    "generator": ("def f(n): yield n", "assert list(f(1)) == [1]"),
    "nan": ("def f(n): return float('nan')", "assert f(1) != f(1)"),
    "int_enum": ("from enum import IntEnum\nclass C(IntEnum):\n    A = 2\ndef f(n): return C.A", "assert f(1) == 2"),
    "own_class_compares_by_content": (
        "class P:\n    def __init__(self, a): self.a = a\n    def __eq__(self, o): return self.a == o.a\n"
        "def f(n): return P(n)",
        "assert f(1) == P(1)\nassert f(1) != P(2)",
    ),
    "own_class_as_argument": (
        "class P:\n    def __init__(self, a): self.a = a\ndef f(p): return p.a", "assert f(P(3)) == 3"
    ),
    "data_class": (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass(order=True)\nclass P:\n"
        "    a: int\ndef f(n): return max(P(n), P(0)).a",
        "assert f(1) == 1",
    ),
    "named_like_a_builtin": ("def f(n): return sum(n, 1)\ndef sum(a, b): return a + b", "assert f(1) == 2"),
    "chained_comparison": ("def f(n): return n", "assert 0 < f(1) <= 1 in [1, True]"),
    "recursion": ("def f(n): return n and 1 + f(n - 1)", "assert f(900) == 900"),
    "threads": (
        "import threading\ndef f(n):\n    r = []\n    t = threading.Thread(target=r.append, args=(n,))\n"
        "    t.start(); t.join()\n    return r",
        "assert f(1) == [1]",
    ),
    "asyncio": ("import asyncio\nasync def g(n): return n\ndef f(n): return asyncio.run(g(n))", "assert f(1) == 1"),
    "own_file": (
        "def f(n):\n    open('x', 'w').write('a')\n    return open('x').read()", "assert f(1) == 'a'"
    ),
    "temporary_file": (
        "import tempfile\ndef f(n):\n    with tempfile.TemporaryFile() as t: return t.write(b'ab')", "assert f(1) == 2"
    ),
    "standard_library": (
        "import re, json, heapq, itertools, bisect, string, random, math, functools, typing, hashlib, statistics\n"
        "def f(n): return n",
        "import copy\nfrom random import randint\nassert copy.deepcopy(f([1])) == [1]",
    ),
    "a_thread_that_stays": (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\ndef f(n): return n",
        "assert f(1) == 1",
    ),
    "prints": ("print('x' * 10**6)\ndef f(n): return n", "assert f(1) == 1"),
    "main_guard": ("def f(n): return n\nif __name__ == '__main__':\n    raise SystemExit", "assert f(1) == 1"),
}  # fmt: skip


@FENCED
@pytest.mark.parametrize("name", HONEST)
def test_honest_program_passes(name: str) -> None:
    program, tests = HONEST[name]
    assert run_program(program, tests, "f") == Outcome(True, "", "")


# --- reasons ------------------------------------------------------------------------------------------------
F = "def f(n): return n"
ENDINGS = {
    "syntax_error": ("def f(n) return", "assert f(1)", "f", "syntax_error"),
    "null_byte": ("def f(n): return '\0'", "assert f(1)", "f", "syntax_error"),
    "nested_too_deep": ("x = " + "(" * 5000, "assert f(1)", "f", "syntax_error"),
    "wrong_answer": (F, "assert f(1) == 2", "f", "wrong_answer"),
    "own_assertion": ("def f(n): assert n == 2", "f(1)", "f", "exception"),
    "exception": ("def f(n): return n / 0", "assert f(1)", "f", "exception"),
    "timeout": ("def f(n):\n    while True: pass", "assert f(1)", "f", "timeout"),
    "timeout_in_one_call": ("def f(n): return sum(range(10**12))", "assert f(1)", "f", "timeout"),
    "timeout_swallowed": (
        "def f(n):\n    while True:\n        try: [1] * 9\n        except BaseException: pass",
        "assert f(1)",
        "f",
        "timeout",
    ),
    "memory": ("def f(n): return [0] * 10**13", "assert f(1)", "f", "memory"),
    "forbidden": ("import socket\ndef f(n): return socket.socket()", "assert f(1)", "f", "forbidden"),
    "no_entry_point": ("def g(n): return n", "assert f(1)", "f", "no_entry_point"),
    "no_entry_point_found_by_tests": ("def g(n): return n", "assert f(1)", None, "no_entry_point"),
    "no_program": ([], "assert f(1)", "f", "no_code_found"),
    "tests_do_not_parse": (F, "assert (", "f", "broken_tests"),
    "tests_need_what_is_not_there": (F, "import no_such_module_1\nassert f(1)", "f", "broken_tests"),
    "tests_are_empty": (F, "# nothing", "f", "no_tests"),
    "check_without_entry_point": (F, "def check(candidate):\n    assert candidate(1)", None, "no_tests"),
}


@FENCED
@pytest.mark.parametrize("name", ENDINGS)
def test_reason(name: str) -> None:
    program, tests, entry, reason = ENDINGS[name]
    outcome = run_program(program, tests, entry, QUICK, wanted="f")
    assert (outcome.passed, outcome.reason) == (False, reason)


@FENCED
def test_the_first_reading_that_defines_the_entry_point_is_run() -> None:
    programs = ["def f(n", "x = 1", "def f(n): return n", "def f(n): return 0"]
    assert run_program(programs, "assert f(1) == 1", "f") == Outcome(True, "", "", chosen=2)


@FENCED
def test_the_prelude_comes_first_and_may_be_no_python() -> None:
    program = "def f(n: List[int]): return g(n)"
    prelude = "from typing import List\ndef g(n): return n"
    assert run_program(program, "assert f([1]) == [1]", "f", prelude=prelude).passed
    assert run_program(F, "assert f(1) == 1", "f", prelude="Write a function that").passed


# --- where it runs from -------------------------------------------------------------------------------------
def _passes(number: int) -> bool:
    return run_program(f"def f(n): return {number}", f"assert f(1) == {number}", "f").passed


@FENCED
def test_runs_in_worker_processes() -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(_passes, range(4))) == [True] * 4


@FENCED
def test_runs_in_threads_and_leaves_nothing_open() -> None:
    before = _open_files()
    passed: list[bool] = []
    threads = [threading.Thread(target=lambda n=n: passed.append(_passes(n))) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert passed == [True] * 6
    assert _open_files() <= before


def _open_files() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


@FENCED
def test_a_dying_evaluator_takes_its_programs_along(tmp_path: Path) -> None:
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from evaluation import sandbox\nsandbox.probe(); print('ready', flush=True)\n"
        "sandbox.run_program('import time; time.sleep(100)', 'assert 1', '')"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment) as parent:
        assert parent.stdout.readline() == b"ready\n"
        assert _until(lambda: _living_in(tmp_path)), "the program never started"
        parent.kill()
    assert _until(lambda: not _living_in(tmp_path))


def _living_in(folder: Path) -> list[str]:
    """Processes whose environment names `folder`'s run folders."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"HOME={folder}/captrack-code-".encode() in path.read_bytes():
                found.append(path.parent.name)
        except OSError:
            continue
    return found


def _until(condition, seconds: float = 20.0) -> bool:
    waiting = threading.Event()
    for _ in range(int(seconds / 0.05)):
        if condition():
            return True
        waiting.wait(0.05)
    return False


# --- without a fence ----------------------------------------------------------------------------------------
@pytest.fixture
def no_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "probe", lambda: sandbox.Level("none", missing={"landlock": "not here"}))
    monkeypatch.delenv(sandbox.UNSAFE_VARIABLE, raising=False)


@pytest.mark.usefixtures("no_fence")
def test_without_a_fence_it_refuses() -> None:
    with pytest.raises(SandboxError, match="not here"):
        run_program(F, "assert f(1) == 1", "f")


@pytest.mark.usefixtures("no_fence")
def test_without_a_fence_it_runs_when_told_to() -> None:
    sandbox.configure(allow_unsafe=True)
    try:
        assert run_program(F, "assert f(1) == 1", "f").passed
        assert run_program("import os; os._exit(0)", "assert f(1) == 1", "f").reason == "exception"
        looping = run_program("while True: pass", "assert f(1) == 1", "f", QUICK)
        assert looping.reason == "timeout"
    finally:
        sandbox.configure(allow_unsafe=False)
    with pytest.raises(SandboxError):
        run_program(F, "assert f(1) == 1", "f")


@FENCED
def test_a_promised_layer_that_fails_stops_the_run() -> None:
    level = sandbox.Level("full", ("landlock", "seccomp", "namespaces"), fence=True)
    job_limits = Limits(disk_bytes=-1)
    with pytest.raises(SandboxError):
        sandbox._run(level, [F], "assert f(1) == 1", "f", job_limits, "", "")


def test_the_level_says_what_is_missing() -> None:
    level = sandbox.Level(
        "landlock", ("landlock", "seccomp"), missing={"namespaces": "unshare: not permitted"}
    )
    assert str(level) == "landlock (landlock, seccomp, limits; namespaces missing: unshare: not permitted)"
    assert str(sandbox.Level("bubblewrap", wrapper="/usr/bin/bwrap")) == "bubblewrap (bubblewrap, limits)"
