"""The layers around one program, as Linux calls through ctypes: namespaces, capabilities, Landlock, limits,
seccomp.

Runs in the child process only, before any foreign code, and imports nothing heavy (this start-up is paid per
program). Every function raises OSError where the kernel refuses: the probe asks once which layers work, and a
run in which a layer fails that the probe had promised ends without running the program.

What each layer stops (each alone leaves a hole that another one closes):
  namespaces   network, other processes, System V memory; everything left over dies with process 1; 16 MB disk
  landlock     every file but Python's own, the system libraries and the run's folder; signals to the outside
  seccomp      sockets, fork, exec, kill, ptrace, chmod, mounts … answer EPERM
  limits       memory, processor time, file size, open files
"""

from __future__ import annotations

import ctypes
import os
import resource
import struct
import sys

LAYERS = ("namespaces", "landlock", "seccomp")

_libc = ctypes.CDLL(None, use_errno=True)

# <linux/sched.h>, <linux/prctl.h>, <sys/mount.h>
_NEWNS, _NEWUTS, _NEWIPC = 0x00020000, 0x04000000, 0x08000000
_NEWUSER, _NEWPID, _NEWNET = 0x10000000, 0x20000000, 0x40000000
_CLONE_THREAD = 0x00010000
_PDEATHSIG, _SET_SECCOMP, _SUBREAPER, _NO_NEW_PRIVS = 1, 22, 36, 38
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 2, 4, 8, 0x4000, 1 << 18
SIGKILL = 9


def _check(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def _prctl(option: int, *values: int) -> None:
    words = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    _check(_libc.prctl(option, *words), f"prctl {option}")


def die_with_parent() -> None:
    """The kernel kills this process when its parent ends (set again after every change of credentials)."""
    if sys.platform == "linux":
        _prctl(_PDEATHSIG, SIGKILL)


def adopt_orphans() -> None:
    """Processes that lose their parent below this one become its children, so that it can find and end
    them.
    """
    if sys.platform == "linux":
        _prctl(_SUBREAPER, 1)


def enter_namespaces(folder: str, disk_bytes: int) -> None:
    """New user, process, network, IPC, host name and mount namespaces; `folder` becomes a small memory disk.

    The caller must fork: its next child is process 1 of the new process namespace.
    """
    uid, gid = os.getuid(), os.getgid()
    flags = _NEWUSER | _NEWPID | _NEWNET | _NEWIPC | _NEWUTS | _NEWNS
    _check(_libc.unshare(flags), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    _check(_libc.mount(b"none", b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None), "mount private")
    options = f"size={disk_bytes},nr_inodes=1024,mode=700".encode()
    flags = ctypes.c_ulong(_MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    _check(_libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", flags, options), "mount tmpfs")
    os.chdir(folder)


def drop_capabilities() -> None:
    """No capability is left, in the new user namespace or (without one) of a real root."""
    header = struct.pack("Ii", 0x20080522, 0)
    _check(_libc.capset(header, bytes(24)), "capset")


# --- Landlock (https://docs.kernel.org/userspace-api/landlock.html) -----------------------------------------
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_REG, _MAKE_SYM = 1 << 4, 1 << 5, 1 << 7, 1 << 8, 1 << 12
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_OWN_FOLDER = (
    _WRITE_FILE | _READ_FILE | _READ_DIR | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _MAKE_SYM
)
# file rights that a kernel knows, by ABI version
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}


def landlock_abi() -> int:
    return _check(_libc.syscall(_CREATE_RULESET, None, 0, 1), "landlock")


def enter_landlock(read: list[str], folder: str) -> None:
    """From here on only `read` can be read and only `folder` written; TCP and signals to the outside are
    off.
    """
    abi = landlock_abi()
    handled = (1 << _FILE_RIGHTS[min(abi, 5)]) - 1
    attributes = struct.pack("QQQ", handled, 3 if abi >= 4 else 0, 3 if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    rules = _check(_libc.syscall(_CREATE_RULESET, attributes, size, 0), "landlock ruleset")
    for path in read:
        _allow(rules, path, _READ_FILE | (_READ_DIR if os.path.isdir(path) else 0))  # noqa: PTH112
    _allow(rules, os.devnull, _READ_FILE | _WRITE_FILE)
    _allow(rules, folder, (_OWN_FOLDER | _REFER | _TRUNCATE) & handled)
    _prctl(_NO_NEW_PRIVS, 1)
    _check(_libc.syscall(_RESTRICT_SELF, rules, 0), "landlock restrict")
    os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    _check(_libc.syscall(_ADD_RULE, rules, 1, struct.pack("=Qi", rights, place), 0), f"landlock {path}")
    os.close(place)


# --- limits -------------------------------------------------------------------------------------------------
def set_limits(cpu_seconds: int, memory_bytes: int, file_bytes: int, processes: int | None) -> None:
    """Hard limits of this process. `processes` only inside a user namespace: else the user's others count
    too.
    """
    limits = {
        "RLIMIT_CPU": (cpu_seconds, cpu_seconds + 1),
        "RLIMIT_AS": (memory_bytes, memory_bytes),
        "RLIMIT_FSIZE": (file_bytes, file_bytes),
        "RLIMIT_CORE": (0, 0),
        "RLIMIT_NOFILE": (64, 64),
    }
    if processes is not None:
        limits["RLIMIT_NPROC"] = (processes, processes)
    for name, (soft, hard) in limits.items():
        number = getattr(resource, name, None)
        if number is None:
            continue
        ceiling = resource.getrlimit(number)[1]
        if ceiling != resource.RLIM_INFINITY:
            soft, hard = min(soft, ceiling), min(hard, ceiling)
        try:
            resource.setrlimit(number, (soft, hard))
        except (OSError, ValueError):
            if sys.platform == "linux":  # macOS knows RLIMIT_AS by name only
                raise


# --- seccomp ------------------------------------------------------------------------------------------------
# name: number on x86_64, on aarch64 (-1: that call does not exist there)
_DENIED = {
    "socket": (41, 198), "connect": (42, 203), "accept": (43, 202), "accept4": (288, 242), "bind": (49, 200),
    "listen": (50, 201), "fork": (57, -1), "vfork": (58, -1), "execve": (59, 221), "execveat": (322, 281),
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_send_signal": (424, 424), "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438), "setsid": (112, 157), "setpgid": (109, 154), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "process_madvise": (440, 440),
    "kcmp": (312, 272), "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39),
    "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429),
    "fsopen": (430, 430), "fsmount": (432, 432), "mount_setattr": (442, 442), "chmod": (90, -1),
    "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, -1), "lchown": (94, -1),
    "fchown": (93, 55), "fchownat": (260, 54),
    "utime": (132, -1), "utimes": (235, -1),
    "futimesat": (261, -1),
    "utimensat": (280, 88), "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16), "mknod": (133, -1),
    "mknodat": (259, 33), "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "io_setup": (206, 0), "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "memfd_create": (319, 279), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    "setpriority": (141, 140), "sched_setscheduler": (144, 119), "sched_setattr": (314, 274),
    "sched_setaffinity": (203, 122), "ioprio_set": (251, 30), "fanotify_init": (300, 262),
    "inotify_add_watch": (254, 27), "mq_open": (240, 180), "shmget": (29, 194), "semget": (64, 190),
    "msgget": (68, 186), "init_module": (175, 105), "finit_module": (313, 273), "kexec_load": (246, 104),
    "reboot": (169, 142), "swapon": (167, 224), "truncate": (76, 45),
    "acct": (163, 89), "syslog": (103, 116), "quotactl": (179, 60),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "sethostname": (170, 161),
}  # fmt: skip
_CLONE, _SOCKETPAIR, _PRLIMIT = (56, 220), (53, 199), (302, 261)
_CLONE3, _OPENAT2, _OPEN, _OPENAT = (435, 435), (437, 437), (2, -1), (257, 56)
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_ALLOW, _KILL, _EPERM, _ENOSYS = 0x7FFF0000, 0x80000000, 0x00050000 | 1, 0x00050000 | 38
# classic BPF: load word, jump if equal / greater or equal / any bit set, and, return
_LOAD, _JEQ, _JGE, _JSET, _AND, _RET = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _ARCH, _ARG0, _ARG1, _ARG2 = 0, 4, 16, 24, 32


def seccomp_program(machine: str) -> list[tuple[int, int, int, int]]:
    """The filter as (code, jump if true, jump if false, k); OSError on a machine whose call numbers are
    unknown.
    """
    if machine not in _ARCHITECTURES:
        raise OSError(38, f"no system call table for {machine}")
    column, audit = _ARCHITECTURES[machine]
    steps = [(_LOAD, 0, 0, _ARCH), (_JEQ, 1, 0, audit), (_RET, 0, 0, _KILL), (_LOAD, 0, 0, _NUMBER)]
    if machine == "x86_64":
        steps += [(_JGE, 0, 1, 0x40000000), (_RET, 0, 0, _EPERM)]  # the x32 numbers
    for numbers in _DENIED.values():
        if numbers[column] >= 0:
            steps += [(_JEQ, 0, 1, numbers[column]), (_RET, 0, 0, _EPERM)]
    # both hide their flags behind a pointer, and without them libc falls back to the older call
    for numbers in (_CLONE3, _OPENAT2):
        steps += [(_JEQ, 0, 1, numbers[column]), (_RET, 0, 0, _ENOSYS)]
    # opening to read and cutting at once: Landlock before its third version does not see that as writing
    for numbers, flags in ((_OPEN, _ARG1), (_OPENAT, _ARG2)):
        if numbers[column] >= 0:
            steps += [(_JEQ, 0, 5, numbers[column]), (_LOAD, 0, 0, flags), (_AND, 0, 0, os.O_TRUNC | 3)]
            steps += [(_JEQ, 1, 0, os.O_TRUNC), (_RET, 0, 0, _ALLOW), (_RET, 0, 0, _EPERM)]
    # threads only
    steps += [(_JEQ, 0, 4, _CLONE[column]), (_LOAD, 0, 0, _ARG0), (_JSET, 0, 1, _CLONE_THREAD)]
    steps += [(_RET, 0, 0, _ALLOW), (_RET, 0, 0, _EPERM)]
    # a connected pair of streams reaches nobody else, and asyncio needs one; limits only of the process
    # itself
    steps += [(_JEQ, 0, 5, _SOCKETPAIR[column]), (_LOAD, 0, 0, _ARG1), (_AND, 0, 0, 0xF), (_JEQ, 0, 1, 1)]
    steps += [(_RET, 0, 0, _ALLOW), (_RET, 0, 0, _EPERM)]
    steps += [(_JEQ, 0, 3, _PRLIMIT[column]), (_LOAD, 0, 0, _ARG0), (_JEQ, 1, 0, 0), (_RET, 0, 0, _EPERM)]
    return [*steps, (_RET, 0, 0, _ALLOW)]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def enter_seccomp() -> None:
    steps = seccomp_program(platform_machine())
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = _Program(len(steps), ctypes.cast(code, ctypes.c_void_p))
    _prctl(_NO_NEW_PRIVS, 1)
    _prctl(_SET_SECCOMP, 2, ctypes.addressof(program))


def platform_machine() -> str:
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        return "32 bit"
    return os.uname().machine
