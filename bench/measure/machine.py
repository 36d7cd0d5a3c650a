"""Reading what other processes cost, and keeping the machine's habits out of the numbers."""
import os
import pathlib
import re
import resource
import socket
import time


def warm_cpus(seconds=0.25):
    """Keeps every CPU busy for a moment with pinned spinners.

    A virtual machine that packs light loads onto one CPU may otherwise run a two-thread process on
    one CPU for its whole life, and the same program has two modes: cheap switches on one CPU or
    expensive wake-ups across two.
    """
    children = []
    for cpu in sorted(os.sched_getaffinity(0)):
        pid = os.fork()
        if pid == 0:
            os.sched_setaffinity(0, {cpu})
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                pass
            os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)


def cpu_seconds(pid):
    """CPU time of another process, all threads, in nanosecond resolution."""
    return time.clock_gettime((~pid << 3) | 2)


def switches(pid):
    """(voluntary, involuntary) context switches of all threads of a process."""
    voluntary = involuntary = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            text = (task / "status").read_text()
        except OSError:
            continue
        voluntary += int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", text, re.M)[1])
        involuntary += int(re.search(r"^nonvoluntary_ctxt_switches:\s*(\d+)", text, re.M)[1])
    return voluntary, involuntary


def thread_count(pid):
    return len(list(pathlib.Path(f"/proc/{pid}/task").iterdir()))


def resident_bytes(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^VmRSS:\s*(\d+) kB", text, re.M)[1]) * 1024


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_port(port, process, seconds=10):
    """Waits until somebody listens; RuntimeError where the server ends first or never does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with status {process.returncode}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError("the server does not listen")


def raise_fd_limit():
    """Raises the soft limit of open files to the hard one and returns it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
