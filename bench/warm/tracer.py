"""Finds out which functions of a program are entered while it runs (Linux on x86-64).

Each function begins with a breakpoint that is taken away when it is met, so that the program soon runs at its own speed.
"""

import ctypes
import os
import signal
import subprocess
import threading

TRACEME, CONT, GETREGS, SETREGS, SETOPTIONS, DETACH = 0, 7, 12, 13, 0x4200, 17
FORK, VFORK, CLONE, EXEC, EXITKILL = 1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 20
EXEC_EVENT = 4
REGISTERS, RIP = 27, 16
BREAKPOINT = b"\xcc"

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request, pid, data=None):
    # A thread may be gone by the time it is told something.
    return libc.ptrace(request, pid, None, data)


def functions(binary):
    """The functions of a program: where each begins, how large it is, its name."""
    listed = subprocess.run(["nm", "-S", "--defined-only", binary], check=True, capture_output=True, text=True)
    found = {}
    for line in listed.stdout.splitlines():
        parts = line.split(None, 3)
        if len(parts) == 4 and parts[2] in "tTwW":
            found.setdefault(int(parts[0], 16), (int(parts[1], 16), parts[3]))
    return found


class Traced:
    """A program that runs under the eyes of a thread. `entered` grows while it does."""

    def __init__(self, binary, arguments, folder, known):
        self.binary = os.path.realpath(binary)
        self.arguments = arguments
        self.folder = folder
        self.known = known
        self.entered = []
        self.pid = None
        self.begun = threading.Event()
        self.thread = threading.Thread(target=self._follow)
        self.thread.start()
        self.begun.wait()

    def stop(self):
        if self.thread.is_alive():
            os.kill(self.pid, signal.SIGTERM)
        self.thread.join()

    def _spawn(self):
        pid = os.fork()
        if pid:
            return pid
        os.chdir(self.folder)
        said = os.open("said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(said, 1)
        os.dup2(said, 2)
        ptrace(TRACEME, 0)
        os.execv(self.binary, [self.binary, *self.arguments])

    def _follow(self):
        # Whoever begins to trace is the only thread that may go on with it.
        self.pid = self._spawn()
        os.waitpid(self.pid, 0)
        ptrace(SETOPTIONS, self.pid, FORK | VFORK | CLONE | EXEC | EXITKILL)
        base = self._base()
        before = self._set_breakpoints(base)
        ptrace(CONT, self.pid)
        self.begun.set()
        met = set()
        while True:
            pid, status = os.waitpid(-1, 0x40000000)
            if not os.WIFSTOPPED(status):
                if pid == self.pid:
                    return
                continue
            told = os.WSTOPSIG(status)
            if told == signal.SIGTRAP and status >> 16 == EXEC_EVENT:
                # A child that is another program by now.
                ptrace(DETACH, pid)
                continue
            if told == signal.SIGTRAP and status >> 16 == 0:
                self._meet(pid, base, before, met)
            passed_on = 0 if told in (signal.SIGTRAP, signal.SIGSTOP) else told
            ptrace(CONT, pid, passed_on)

    def _base(self):
        with open(f"/proc/{self.pid}/maps") as maps:
            return next(int(line.split("-")[0], 16) for line in maps if line.rstrip().endswith(self.binary))

    def _set_breakpoints(self, base):
        before = {}
        with open(f"/proc/{self.pid}/mem", "r+b", buffering=0) as memory:
            for at in self.known:
                memory.seek(base + at)
                before[at] = memory.read(1)
                memory.seek(base + at)
                memory.write(BREAKPOINT)
        return before

    def _meet(self, pid, base, before, met):
        registers = (ctypes.c_ulonglong * REGISTERS)()
        ptrace(GETREGS, pid, registers)
        at = registers[RIP] - 1 - base
        if at not in before:
            return
        with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
            memory.seek(base + at)
            memory.write(before[at])
        if at not in met:
            met.add(at)
            self.entered.append(at)
        registers[RIP] -= 1
        ptrace(SETREGS, pid, registers)
