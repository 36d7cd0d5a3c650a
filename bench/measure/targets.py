"""What the figures are to reach, in one place; the tables say ok or missed.

A ratio is our median divided by the best peer's at the same number of threads: below 1 we are ahead. A
workload without a line of its own is to be no slower than the best peer.
"""
from . import figures

RATIO = {"chained_spawn": 0.45, "spawn_storm": 0.6, "yield_many": 0.45, "ping_pong": 0.6,
         "ping_pong_oneshot": 0.6, "ring": 0.6, "uncontended_channel": 0.35, "mpsc_contention": 0.6,
         "skynet": 0.65, "skynet_1m": 0.65, "many_timers": 0.9, "mutex_contention": 1.0, "call_reply": 0.9,
         "panic_isolation": 1.0, "server_call": 0.5,
         # Everybody divides the same numbers, and no runtime helps: level is what there is.
         "fan_out_compute": 1.05}
RATIO_ELSE = 1.0

# Who counts where not everybody does: a panic of Go's unwinds no C++ frames.
# A server that is watched for its death while it is called is what Erlang and CAF have; the others'
# call_reply, beside which ours of channels is measured, is a message and a place for its answer.
AGAINST = {"panic_isolation": tuple(peer for peer in figures.RIVALS if peer != "go"),
           "server_call": ("erlang", "caf"), "supervised_restart": ("erlang",)}

# Ours against another workload of ours: a call to a server costs little more than two messages.
OWN = {"server_call": ("ping_pong", 1.3)}

# CPU time: (against whom, ratio).
CPU_RATIO = {"many_timers": (("go",), 1.0)}

# 8 schedulers against our own 2, every workload.
HERD = 1.15

# TCP echo, each against the best peer, and our CPU time against bare epoll's.
TCP = {"server_cpu_ns_per_op": 1.0, "p99_us": 1.0, "p999_us": 1.0}
TCP_CPU_OF_EPOLL = 1.1

# A million parked actors with default stacks: bytes each, and mappings in all.
MEMORY = {"idle_memory_1m": (4.6 * 1024, 99)}

# sider's requests a second against redis-server's: level without pipelining, ahead with it.
REDIS = {"p1": 0.95, "p16": 1.0}


def ratio_limit(bench):
    return RATIO.get(bench, RATIO_ELSE)


def rivals(bench):
    return AGAINST.get(bench, figures.RIVALS)


def at_most(value, limit, places=2):
    """`0.50 ok`, or `0.70 > 0.6 missed`."""
    shown = f"{value:,.{places}f}"
    return f"{shown} ok" if value <= limit else f"{shown} > {limit:g} missed"


def at_least(value, limit, places=2):
    shown = f"{value:,.{places}f}"
    return f"{shown} ok" if value >= limit else f"{shown} < {limit:g} missed"
