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

import os
import select
import signal
import sys
import time

import fence
import grade

# between fields of the verdict
SEPARATOR = b"\0"


def start(job: dict) -> None:
    """Runs a job to its end and leaves the process; the keeper's last line is on standard output."""
    for name in ("jail", "fence", "grade"):
        sys.modules.pop(name, None)
    sys.path[:] = [path for path in sys.path if path != job["home"]]
    namespaces = "namespaces" in job["layers"]
    try:
        if namespaces:
            fence.enter_namespaces(job["folder"], job["disk_bytes"])
        fence.die_with_parent()
    except OSError as error:
        _say(job["report"], job["token"], "fence_failed", str(error))
        os._exit(3)
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
    reason, detail, chosen = grade.verdict(job)
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
    fence.set_limits(job["cpu_seconds"], job["memory_bytes"], job["file_bytes"], job["processes"])
    if "seccomp" in layers:
        fence.enter_seccomp()


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
