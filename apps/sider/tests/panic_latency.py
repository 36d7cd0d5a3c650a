#!/usr/bin/env python3
"""Measures what the clients of other shards notice while one shard crashes again and again.

usage: panic_latency.py SIDER [--rounds N] [--phase SECONDS] [--rate N] [--keys N] [--pipeline N]
                        [--schedulers N] [--ratio-max X] [--slack-ms X]

One client makes round trips, GETs and SETs of keys that lie on the other shards, in phases by turns: quiet
ones, and ones in which the middle shard is crashed `rate` times a second. A process of its own crashes it; it
fills that shard with `keys` keys before each crash, and in the quiet phases does the same without the crash.
The phases are short and many, so that what else the machine does falls on both kinds. Prints the medians over
the phases, and the ratio of those of the p99. Ends with 1 if that of the phases with crashes exceeds ratio-max
times that of the quiet ones plus slack-ms.
"""
import argparse
import os
import socket
import statistics
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
from harness import Client, Server, encode  # noqa: E402
from panic_test import SHARDS, keys_by_shard  # noqa: E402

VICTIM = 1


def disturb(port, rate, names):
    """The process that crashes the shard: told by lines on standard input when to begin and to leave off."""
    client, crashing = Client(port), threading.Event()

    def listen():
        for line in sys.stdin:
            crashing.set() if line == "crash\n" else crashing.clear()
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    fill = b"".join(encode("SET", name, "v") for name in names)
    due = time.monotonic()
    while True:
        client.raw(fill)
        for _ in names:
            client.read()
        due = max(due + 1 / rate, time.monotonic())
        time.sleep(max(0, due - time.monotonic()))
        assert client(*(["DEBUG", "PANIC", "SHARD", VICTIM] if crashing.is_set() else ["PING"])) in ("OK", "PONG")


def measure(port, names, pipeline, seconds):
    """Milliseconds of each round trip, sorted."""
    requests = [b"".join(encode("GET", names[(i + j) % len(names)]) for j in range(pipeline - 1))
                + encode("SET", names[i], "value") for i in range(len(names))]
    end = b"+OK\r\n"
    took = []
    with socket.create_connection(("127.0.0.1", port)) as link:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        until, i = time.perf_counter_ns() + int(seconds * 1e9), 0
        now = time.perf_counter_ns()
        while now < until:
            link.sendall(requests[i % len(requests)])
            got = link.recv(65536)
            while not got.endswith(end):
                more = link.recv(65536)
                assert more, "dropped"
                got += more
            assert b"-ERR" not in got, got
            after = time.perf_counter_ns()
            took.append((after - now) / 1e6)
            now, i = after, i + 1
    return sorted(took)


def main():
    parser = argparse.ArgumentParser(prog="panic_latency.py")
    parser.add_argument("sider")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--phase", type=float, default=0.3)
    parser.add_argument("--rate", type=float, default=10)
    parser.add_argument("--keys", type=int, default=100)
    parser.add_argument("--pipeline", type=int, default=1)
    parser.add_argument("--schedulers", default="2")
    parser.add_argument("--ratio-max", type=float, default=2)
    parser.add_argument("--slack-ms", type=float, default=0)
    given = parser.parse_args()
    with Server(os.path.abspath(given.sider), "--schedulers", given.schedulers, "--shards", str(SHARDS)) as server:
        # Read as it comes, for the server waits for who reads it.
        reader = threading.Thread(target=lambda: [None for _ in server.process.stderr])
        reader.start()
        keys = keys_by_shard(server.client(), count=max(given.keys, 50))
        others = [name for shard in range(SHARDS) if shard != VICTIM for name in keys[shard][:50]]
        port = str(server.port)
        disturber = subprocess.Popen(
            [sys.executable, __file__, "--disturb", port, str(given.rate), *keys[VICTIM][:given.keys]],
            stdin=subprocess.PIPE, text=True)
        found = {"quiet": [], "crash": []}
        measure(server.port, others, given.pipeline, given.phase)  # to warm up
        for _ in range(given.rounds):
            for kind in found:
                disturber.stdin.write(kind + "\n")
                disturber.stdin.flush()
                took = measure(server.port, others, given.pipeline, given.phase)
                found[kind].append((took[len(took) // 2], took[len(took) * 99 // 100], took[-1], len(took)))
        disturber.stdin.close()
        ended = disturber.wait()
        server.end()
        reader.join()
    print("phases    p50 ms   p99 ms   max ms   round trips   (medians of %d)" % given.rounds)
    for kind, phases in found.items():
        print("%-7s %8.3f %8.3f %8.3f %13d" % (kind, *(statistics.median(column) for column in zip(*phases))))
    quiet, crash = (statistics.median(phase[1] for phase in found[kind]) for kind in found)
    print("p99 with %g crashes a second: %.2f times the quiet one" % (given.rate, crash / quiet), flush=True)
    assert ended == 0, "who was to crash the shard has failed"
    return 0 if crash <= given.ratio_max * quiet + given.slack_ms else 1


if __name__ == "__main__":
    if sys.argv[1] == "--disturb":
        disturb(int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:])
    sys.exit(main())
