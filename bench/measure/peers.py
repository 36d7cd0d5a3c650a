"""The programs that are compared: how each is built, and how each is called."""
import os
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SOURCE = ROOT / "bench" / "peers"
BIN = ROOT / "build" / "peers"
OURS = ROOT / "build" / "release" / "bench" / "smarm_peer"

PEERS = ["tokio", "tokio_ct", "go", "erlang", "boost_fiber", "boost_fiber_shared", "caf", "std_thread"]
TCP_PEERS = ["epoll_raw", "tokio", "tokio_ct", "go", "erlang", "caf", "std_thread"]
IDLE_PEERS = ["tokio", "tokio_ct", "go", "erlang", "boost_fiber", "caf"]

# Workloads for which OS threads are a sensible answer.
STD_THREAD = {"chained_spawn", "ping_pong", "mpsc_contention", "uncontended_channel",
              "fan_out_compute", "mutex_contention", "fork_join_throughput", "counting", "tcp_server"}
# Erlang and CAF have neither a bounded mailbox nor a mutex.
NO_MAILBOX_ONLY = {"mpsc_contention_b1024", "uncontended_channel_b1024", "mutex_contention"}
def cxx(source, output, *libraries):
    return ["g++", "-std=c++17", "-O2", "-DNDEBUG", f"-I{ROOT}", str(source), "-o",
            str(BIN / output), *libraries, "-pthread"]


# program: (tool it needs, how it is built, folder to build in)
BUILDS = {
    "tokio_peer": ("cargo", ["cargo", "build", "--offline", "--release", "--quiet", "--target-dir",
                             str(BIN / "cargo")], SOURCE / "tokio"),
    "go_peer": ("go", ["go", "build", "-o", str(BIN / "go_peer"), "."], SOURCE / "go"),
    "erl_peer.beam": ("erlc", ["erlc", "-o", str(BIN), "erl_peer.erl", "erl_savina.erl"], SOURCE / "erlang"),
    "boost_fiber_peer": ("g++", cxx("boost_fiber_peer.cpp", "boost_fiber_peer", "-lboost_fiber",
                                    "-lboost_context"), SOURCE / "cpp"),
    "caf_peer": ("g++", cxx("caf_peer.cpp", "caf_peer", "-lcaf_io", "-lcaf_core"), SOURCE / "cpp"),
    "std_thread_peer": ("g++", cxx("std_thread_peer.cpp", "std_thread_peer"), SOURCE / "cpp"),
    "epoll_raw_peer": ("g++", cxx("epoll_raw_peer.cpp", "epoll_raw_peer"), SOURCE / "cpp"),
    "echo_client": ("g++", cxx("echo_client.cpp", "echo_client"), SOURCE / "tools"),
    "probe": ("g++", cxx("probe.cpp", "probe"), SOURCE / "tools"),
}


def up_to_date(program, folder):
    built = BIN / program
    sources = [path for path in folder.rglob("*") if path.is_file()]
    sources.append(ROOT / "bench" / "harness.hpp")
    return built.exists() and all(path.stat().st_mtime <= built.stat().st_mtime for path in sources)


def build(program):
    """Builds one program where it is not there yet; returns why it cannot be had, or None."""
    tool, command, folder = BUILDS[program]
    if up_to_date(program, folder):
        return None
    if shutil.which(tool) is None:
        return f"{tool} is not installed"
    BIN.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600,
                              check=False)
    except subprocess.TimeoutExpired:
        return "its build did not end within 10 minutes"
    if done.returncode != 0:
        reason = (done.stderr or done.stdout).strip().splitlines()
        return "it does not build: " + (reason[0] if reason else f"status {done.returncode}")
    if program == "tokio_peer":
        shutil.copy(BIN / "cargo" / "release" / "tokio_peer", BIN / "tokio_peer")
    (BIN / program).touch()
    return None


def program_of(peer):
    return {"tokio_ct": "tokio_peer", "erlang": "erl_peer.beam",
            "boost_fiber_shared": "boost_fiber_peer"}.get(peer, peer + "_peer")


def boost_fiber(peer, bench, threads, plain):
    """work_stealing spins while it is idle: more of its threads than CPUs keep each other from running.
    shared_work sleeps, and hardly ever uses a second thread; with one thread both are round_robin."""
    cpus = len(os.sched_getaffinity(0))
    if bench == "tcp_server" or (threads > cpus if peer == "boost_fiber" else threads <= 1):
        return None
    algorithm = "ws" if peer == "boost_fiber" else "shared_suspend"
    return [str(BIN / "boost_fiber_peer"), *plain], {"BF_ALGO": algorithm}


def available(peers, say):
    """Those of the peers that can be built here; says of each other one why it is left out."""
    verdicts = {}
    for peer in peers:
        program = program_of(peer)
        if program not in verdicts:
            verdicts[program] = build(program)
            if verdicts[program]:
                say(f"without {peer}: {verdicts[program]}")
    return [peer for peer in peers if verdicts[program_of(peer)] is None]


def command(peer, bench, threads, argument=None):
    """(argv, extra environment), or None where the peer has no such workload."""
    extra = [] if argument is None else [str(argument)]
    plain = [bench, str(threads), *extra]
    if peer == "smarm":
        return [str(OURS), *plain], {}
    if peer == "tokio_ct":
        return ([str(BIN / "tokio_peer"), bench, "ct", *extra], {}) if threads in (0, 1) else None
    if peer == "erlang":
        if bench in NO_MAILBOX_ONLY:
            return None
        schedulers = ["+S", f"{threads}:{threads}"] if threads else []
        limit = ["+P", "2000000"] if bench.endswith("_1m") else []  # 262,144 processes otherwise
        return ["erl", "-noshell", *schedulers, *limit, "-pa", str(BIN), "-run", "erl_peer", "main",
                *plain], {}
    if peer == "caf" and bench in NO_MAILBOX_ONLY:
        return None
    if peer == "caf" and bench == "idle_memory_1m":
        return None  # one actor that spawns them all takes minutes where two workers steal from it
    if peer == "caf" and bench == "philosophers" and threads == 1:
        # A lone worker runs the newest job first: the arbitrator and one that it denies send each
        # other messages for ever, and the one that holds the fork never runs.
        return None
    if peer in ("boost_fiber", "boost_fiber_shared"):
        return boost_fiber(peer, bench, threads, plain)
    if peer == "std_thread" and (bench not in STD_THREAD or threads > 2 and bench != "tcp_server"):
        return None
    if peer == "epoll_raw" and bench != "tcp_server":
        return None
    return [str(BIN / program_of(peer)), *plain], {}


def environment(extra, runs_budget_s):
    return {**os.environ, "PEERS_BUDGET_S": str(runs_budget_s), **extra}
