# ruff: noqa: E501 (tables of programs, one line each)
"""Runs programs that attack, as whoever starts it, and prints what came of them: used by test_sandbox.py.

    python tests/hostile_programs.py [LAYERS [WRAPPER]]   ->   {"read_home": {"passed": false, "reason": "forbidden", …}, …}

Imports only the sandbox, which needs nothing but the standard library, so any Python and any user can run it. Every
attack is a function that returns true if it succeeded, and `assert attack()` is its test: a pass is a hole.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import socket
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from evaluation import sandbox

LIMITS = sandbox.Limits(cpu_seconds=2, wall_seconds=4.0)

# HOME, OUTSIDE, PID and PORT are put in. Those in PROVABLE succeed where there is no fence: they are real attacks
PROVABLE = {
    "network_socket": "import socket\ndef attack():\n    return socket.create_connection(('127.0.0.1', PORT), 2)",
    "network_urllib": (
        "import urllib.request\ndef attack():\n"
        "    return urllib.request.urlopen('http://127.0.0.1:PORT/', timeout=2).status == 200"
    ),
    "network_ctypes": (
        "import ctypes, struct\ndef attack():\n    libc = ctypes.CDLL(None)\n    s = libc.socket(2, 1, 0)\n"
        "    where = struct.pack('=H', 2) + struct.pack('>H4B', PORT, 127, 0, 0, 1) + bytes(8)\n"
        "    return libc.connect(s, where, 16) == 0"
    ),
    "network_unix": (
        "import socket\ndef attack():\n    s = socket.socket(socket.AF_UNIX)\n"
        "    s.connect('OUTSIDE/server')\n    return True"
    ),
    "read_home": "def attack():\n    return open('HOME/secret').read() == 'secret'",
    "read_home_by_ctypes": (
        "import ctypes\ndef attack():\n    libc = ctypes.CDLL(None)\n    return libc.open(b'HOME/secret', 0) >= 0"
    ),
    "read_passwd": "def attack():\n    return 'root' in open('/etc/passwd').read()",
    "read_parent_environment": (
        "def attack():\n    return b'hostile-secret' in open('/proc/PID/environ', 'rb').read()"
    ),
    "read_parent_memory_map": "def attack():\n    return open('/proc/PID/maps').read()",
    "list_root": "import os\ndef attack():\n    return os.listdir('/')",
    "write_outside": "def attack():\n    return open('OUTSIDE/made', 'w').write('x')",
    "write_through_link": (
        "import os\ndef attack():\n    os.symlink('OUTSIDE/made2', 'link')\n    return open('link', 'w').write('x')"
    ),
    "change_mode_outside": "import os\ndef attack():\n    os.chmod('OUTSIDE/canary', 0o600)\n    return True",
    "set_time_outside": "import os\ndef attack():\n    os.utime('OUTSIDE/canary', (1, 1))\n    return True",
    "cut_outside": "import os\ndef attack():\n    os.truncate('OUTSIDE/canary', 1)\n    return True",
    "rename_outside": "import os\ndef attack():\n    os.rename('OUTSIDE/moves', 'OUTSIDE/moved')\n    return True",
    "delete_outside": "import os\ndef attack():\n    os.unlink('OUTSIDE/goes')\n    return True",
    "subprocess": (
        "import subprocess\ndef attack():\n    return subprocess.run(['/bin/echo', 'x'], capture_output=True).stdout"
    ),
    "shell": "import os\ndef attack():\n    return os.system('true') == 0",
    "fork": (
        "import os\ndef attack():\n    pid = os.fork()\n    if not pid:\n        os._exit(0)\n"
        "    os.waitpid(pid, 0)\n    return True"
    ),
    "signal_parent": "import os\ndef attack():\n    os.kill(PID, 0)\n    return True",
    "new_session_in_a_child": (
        "import os, time\ndef attack():\n    if os.fork() == 0:\n        os.setsid()\n        if os.fork() == 0:\n"
        "            for _ in range(3000):\n                with open('OUTSIDE/beat', 'a') as f:\n"
        "                    f.write('x')\n                time.sleep(0.02)\n        os._exit(0)\n"
        "    time.sleep(0.3)\n    return os.path.getsize('OUTSIDE/beat') > 0"
    ),
}
ATTACKS = {
    **PROVABLE,
    "network_udp": (
        "import socket\ndef attack():\n    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "    return s.sendto(b'x', ('127.0.0.1', PORT))"
    ),
    "fork_bomb": "import os\ndef attack():\n    while True:\n        os.fork()",
    "thread_bomb": (
        "import threading, time\ndef attack():\n    for _ in range(5000):\n"
        "        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n    return True"
    ),
    "kill_parent": "import os\ndef attack():\n    os.kill(PID, 9)\n    return True",
    "kill_everything": "import os\ndef attack():\n    os.kill(-1, 9)\n    return True",
    "kill_keeper": "import os\ndef attack():\n    os.kill(os.getppid(), 9)\n    return True",
    "memory_3_gb": "def attack():\n    return bytearray(3 << 30)",
    "memory_list": "def attack():\n    x = [1]\n    while True:\n        x += x",
    "file_100_mb": "def attack():\n    return open('big', 'wb').write(bytes(100 << 20)) == 100 << 20",
    "output_endless": "def attack():\n    while True:\n        print('x' * 1000)",
    "report_flooded": "import os\ndef attack():\n    while True:\n        os.write(3, b'x' * 1000)",
    "sleeps": "import time\ndef attack():\n    time.sleep(60)\n    return True",
    "raises_its_limits": (
        "import resource\ndef attack():\n    top = resource.RLIM_INFINITY\n"
        "    resource.setrlimit(resource.RLIMIT_AS, (top, top))\n    return True"
    ),
    "exits_by_os": "import os\nos._exit(0)\ndef attack():\n    return True",
    "exits_by_os_in_the_call": "import os\ndef attack():\n    os._exit(0)",
    "exits_by_sys": "import sys\nsys.exit(0)\ndef attack():\n    return True",
    "exits_by_sys_in_the_call": "import sys\ndef attack():\n    sys.exit(0)",
    "interrupts": "def attack():\n    raise KeyboardInterrupt",
    "crashes": "import ctypes\ndef attack():\n    ctypes.string_at(0)",
    "new_user_namespace": "import ctypes\ndef attack():\n    return ctypes.CDLL(None).unshare(0x10000000) == 0",
    "traces_parent": "import ctypes\ndef attack():\n    return ctypes.CDLL(None).ptrace(16, PID, 0, 0) == 0",
}
if sys.platform == "linux":
    ATTACKS["disk_full"] = (
        "def attack():\n    for n in range(100):\n        open(f'f{n}', 'wb').write(bytes(900_000))\n    return True"
    )


def world() -> tuple[Path, Path, int, threading.Event]:
    """A home with a secret, a folder to attack, and a server that notes whether anyone connects."""
    home = Path(tempfile.mkdtemp(prefix="hostile-home-"))
    outside = Path(tempfile.mkdtemp(prefix="hostile-out-"))
    (home / "secret").write_text("secret")
    for name in ("canary", "moves", "goes"):
        (outside / name).write_text("canary")
    reached = threading.Event()

    def serve(server: socket.socket) -> None:
        while True:
            connection = server.accept()[0]
            reached.set()
            with connection:
                connection.settimeout(0.2)
                try:
                    connection.recv(1000)
                    connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
                except OSError:
                    continue

    tcp, unix = socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_UNIX)
    unix.bind(str(outside / "server"))
    unix.listen(4)
    for server in (tcp, unix):
        threading.Thread(target=serve, args=(server,), daemon=True).start()
    return home, outside, tcp.getsockname()[1], reached


def main(arguments: list[str]) -> dict:
    level = sandbox.probe()
    attacks = ATTACKS
    if arguments:
        layers = tuple(layer for layer in arguments[0].split(",") if layer != "none")
        level = sandbox.Level("asked", layers, arguments[1] if len(arguments) > 1 else "")
        if not layers and not level.wrapper:
            attacks = PROVABLE
    home, outside, port, reached = world()
    values = {"HOME": str(home), "OUTSIDE": str(outside), "PORT": str(port), "PID": str(os.getpid())}
    try:

        def run(program: str) -> dict:
            for word, value in values.items():
                program = program.replace(word, value)
            outcome = sandbox._run(level, [program], "assert attack()", "attack", LIMITS, "", "")
            return dataclasses.asdict(outcome)

        with ThreadPoolExecutor(4) as pool:
            found = dict(zip(attacks, pool.map(run, attacks.values()), strict=True))
        beat = outside / "beat"
        before = beat.stat().st_size if beat.exists() else 0
        time.sleep(0.3)
        after = beat.stat().st_size if beat.exists() else 0
        left = sorted(path.name for path in outside.iterdir())
        canary = outside / "canary"
        touched = canary.read_text() != "canary" or canary.stat().st_mtime < 10
        return {
            "level": str(level),
            "fence": level.fence,
            "outcomes": found,
            "daemon_lives": after > before,
            "reached": reached.is_set(),
            "outside": left,
            "touched": touched,
            "uid": os.getuid(),
        }
    finally:
        shutil.rmtree(home, ignore_errors=True)
        shutil.rmtree(outside, ignore_errors=True)


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
