#!/usr/bin/env python3
"""Kills a random actor of sider's tree again and again, under load, and checks that nobody else feels it.

usage: chaos_test.py SIDER [--seconds N] [--kills-per-second N] [--seed N] [--schedulers N]

The load: pipelines that count, echo and pop, keys that expire, publishers and subscribers, clients that do
nothing, newcomers, and redis-benchmark where there is one. Half of the kills fall on any actor but the
supervisors, half on each kind in turn; DEBUG KILL says whom it killed. It must hold that

  - no client is dropped but those whose own actor or pusher was killed, and those are;
  - every reply is right, or the error of a shard that is lost;
  - a subscriber misses no message and gets none twice;
  - at the end the tree is whole, no actor or subscription is left of those that went, and keys expire.

A few seconds of it run in the suite; where SMARM_SOAK is set, a minute of one kill a second. The seed
decides who is killed, as far as the tree is the same; it is printed.
"""
import argparse
import collections
import itertools
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
from harness import Client, ReplyError, Server, encode, eventually  # noqa: E402

SHARDS = 3
KINDS = ["SHARD", "CLIENT", "PUSHER", "EXPIRY", "LISTENER", "GATE", "FAREWELL"]
SINGLES = ["gate", "expiry", "farewell", "listener tcp", "listener unix"]
LOST = "ERR a shard has crashed and lost its keys; the command was not completed"
IDLE_CLIENTS = 20
GONE = (EOFError, ConnectionError)


def is_lost(reply):
    return isinstance(reply, ReplyError) and str(reply) == LOST


class Ledger:
    """Who was killed, as DEBUG KILL tells; and who was dropped, as the clients find out."""

    def __init__(self):
        self.changed = threading.Condition()
        self.killed, self.known = set(), set()
        self.strangers = 0  # dropped before they knew their own number

    def kill(self, name):
        with self.changed:
            kind, _, number = name.partition(" ")
            if kind in ("client", "pusher"):
                self.killed.add(int(number))
            self.changed.notify_all()

    def meet(self, number):
        with self.changed:
            self.known.add(number)

    def dropped(self, number):
        """Called with the number of a client that found its connection closed: somebody killed it."""
        with self.changed:
            told = self.changed.wait_for(lambda: number in self.killed, timeout=30)
            assert told, "client %d was dropped, and nobody had killed its actors" % number

    def settle(self):
        with self.changed:
            others = len(self.killed - self.known)
            assert self.strangers <= others, "%d dropped, %d killed" % (self.strangers, others)


class Worker(threading.Thread):
    """Connects and repeats what `begin(client)` returns. If its actor is killed it connects anew."""

    def __init__(self, address, ledger, begin, lasts=True):
        super().__init__(daemon=True)
        self.address, self.ledger, self.begin, self.lasts = address, ledger, begin, lasts
        self.ending, self.steps, self.connections, self.failure = threading.Event(), 0, 0, None
        self.client = self.number = None
        self.start()

    def run(self):
        try:
            while not self.ending.is_set():
                self.live()
        except Exception as failure:  # for end()
            self.failure = failure

    def live(self):
        self.client, self.number = Client(self.address), None
        self.connections += 1
        try:
            self.number = self.client("CLIENT", "ID")
            self.ledger.meet(self.number)
            step = self.begin(self.client)
            while not self.ending.is_set():
                step()
                self.steps += 1
                if not self.lasts:
                    break
        except GONE:
            if self.number is None:
                with self.ledger.changed:
                    self.ledger.strangers += 1
            else:
                self.ledger.dropped(self.number)
        if not self.ending.is_set():
            self.client.close()

    def check(self):
        if self.failure:
            raise self.failure


# --- the load ----------------------------------------------------------------------------------------------

numbers = itertools.count()


def counting(client):
    """INCRs on keys that nobody else has: each answer is one more, or 1 after a loss of keys."""
    names = ["count:%d:%d" % (next(numbers), i) for i in range(30)]
    last = dict.fromkeys(names, 0)

    def step():
        chosen = random.choices(names, k=random.randint(1, 40))
        client.raw(b"".join(encode("INCR", name) for name in chosen))
        for name in chosen:
            reply = client.read()
            assert is_lost(reply) or reply in (1, last[name] + 1), (reply, last[name])
            last[name] = 0 if is_lost(reply) else reply
    return step


def echoing(client):
    """Pipelines of different commands: each reply stands where it belongs."""
    def step():
        mark = "mark%d" % next(numbers)
        client.raw(encode("ECHO", mark) + encode("SET", mark, mark) + encode("MGET", mark, "a", "b", "c", "d")
                   + encode("GET", mark) + encode("DEL", mark) + encode("ECHO", mark + "!"))
        before, was_set, many, got, deleted, after = (client.read() for _ in range(6))
        assert before == mark.encode() and after == (mark + "!").encode()
        assert was_set == "OK" or is_lost(was_set), was_set
        assert is_lost(many) or (len(many) == 5 and many[0] in (mark.encode(), None)), many
        assert got in (mark.encode(), None) or is_lost(got), got
        assert deleted in (0, 1) or is_lost(deleted), deleted
    return step


def popping(client):
    def step():
        name = "list%d" % next(numbers)
        client.raw(encode("RPUSH", name, "x") + encode("BLPOP", name, "0.01") + encode("BLPOP", name, "0.01"))
        pushed, got, nothing = (client.read() for _ in range(3))
        assert is_lost(pushed) or pushed == 1, pushed
        assert is_lost(got) or got in ([name.encode(), b"x"], None), got
        assert is_lost(nothing) or nothing is None, nothing
    return step


def expiring(client):
    def step():
        names = ["brief%d" % next(numbers) for _ in range(100)]
        client.raw(b"".join(encode("SET", name, "v", "PX", random.randint(1, 30)) for name in names))
        for _ in names:
            reply = client.read()
            assert reply == "OK" or is_lost(reply), reply
        time.sleep(0.04)
        for name in random.sample(names, 10):
            reply = client("GET", name)
            assert reply is None or is_lost(reply), reply
    return step


def publishing(client):
    """Messages of one publisher are numbered, and it has a name that nobody had before."""
    name, count = "publisher%d" % next(numbers), itertools.count()

    def step():
        client.raw(b"".join(encode("PUBLISH", "news", "%s %d" % (name, next(count))) for _ in range(5)))
        for _ in range(5):
            reached = client.read()
            assert isinstance(reached, int), reached
        time.sleep(0.002)
    return step


def subscribing(client):
    next_of = {}
    client.send("SUBSCRIBE", "news")
    assert client.read() == [b"subscribe", b"news", 1]

    def step():
        kind, channel, message = client.read()
        assert (kind, channel) == (b"message", b"news")
        name, number = message.split()
        assert next_of.get(name, int(number)) == int(number), "a message is missing, or comes twice"
        next_of[name] = int(number) + 1
    return step


def arriving(client):
    """A newcomer: it is accepted and served whatever becomes of who accepts."""
    def step():
        assert client("PING") == "PONG" and client("QUIT") == "OK" and client.at_end()
    return step


class Benchmark:
    """redis-benchmark, again and again. It ends when one of its clients is dropped."""

    def __init__(self, server, ledger):
        self.server, self.ledger, self.process, self.ends = server, ledger, None, 0
        self.poll()

    def poll(self):
        if self.process is not None:
            if self.process.poll() is None:
                return
            self.ends += 1
        try:
            self.process = subprocess.Popen(
                ["redis-benchmark", "-p", str(self.server.port), "-t", "ping_mbulk", "-c", "20", "-l", "-q",
                 "-P", "8"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except FileNotFoundError:
            self.process = None

    def end(self):
        if self.process is None:
            return
        ended_before = self.process.poll() is not None
        self.process.kill()
        self.process.wait()
        with self.ledger.changed:
            self.ledger.strangers += self.ends + ended_before


# --- the tree ----------------------------------------------------------------------------------------------

def tree_of(client):
    """By supervisor: the lines of its children."""
    found, path = collections.defaultdict(list), []
    for line in client("DEBUG", "TREE").decode().splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        name = re.search(r'^ *supervisor .*?"(\w+)"', line)
        if name:
            path = path[:depth // 2] + [name.group(1)]
        else:
            found[path[(depth - 1) // 2]].append(line.strip())
    return found


def is_whole(client):
    """Everybody runs; and there are as many connections and pushers as clients that have some."""
    tree = tree_of(client)
    for name in SINGLES + ["shard %d" % i for i in range(SHARDS)]:
        lines = [line for line in tree["sider"] + tree["shards"] if re.match("'?%s'? <" % name, line)]
        if len(lines) != 1 or ", up " not in lines[0]:
            return False
    clients = client("CLIENT", "LIST").decode().splitlines()
    subscribed = sum(" sub=1 " in line for line in clients)
    return (len(tree["connections"]) == len(clients) and len(tree["pubsub"]) == subscribed
            and client("PUBSUB", "NUMSUB", "news")[1] == subscribed)


def kill(client, ledger, rng, kinds):
    by_kind = rng.random() < 0.5
    number = rng.randrange(1_000_000)
    reply = client("DEBUG", "KILL", number, *([next(kinds)] if by_kind else []))
    if isinstance(reply, ReplyError):  # it went before the kill came, or there is none of that kind
        assert "by itself" in str(reply) or "no such actor" in str(reply), reply
        return None
    ledger.kill(reply.decode())
    return reply.decode().split()[0]


def shuffled(kinds, rng):
    while True:
        yield from rng.sample(kinds, len(kinds))


def chaos(server, unix_path, given):
    rng, ledger, killed = random.Random(given.seed), Ledger(), collections.Counter()
    kinds = shuffled(KINDS, rng)
    killer = server.client()
    idle = [server.client() for _ in range(IDLE_CLIENTS)]
    idle = {client("CLIENT", "ID"): client for client in idle}
    ledger.known.update(idle)
    begins = [counting] * 3 + [echoing] * 2 + [popping] * 2 + [expiring, publishing, publishing] + [subscribing] * 4
    workers = [Worker(unix_path if i % 4 == 3 else server.port, ledger, begin) for i, begin in enumerate(begins)]
    workers += [Worker(address, ledger, arriving, lasts=False) for address in (server.port, unix_path)]
    benchmark = Benchmark(server, ledger)
    begin = time.monotonic()
    for n in range(int(given.seconds * given.kills_per_second)):
        time.sleep(max(0, begin + n / given.kills_per_second - time.monotonic()))
        benchmark.poll()
        killed[kill(killer, ledger, rng, kinds)] += 1
        for each in workers:
            each.check()
    # Everybody goes on, those too whose actors were killed last.
    steps = [each.steps for each in workers]
    eventually(lambda: all(each.failure or each.steps > had for each, had in zip(workers, steps)), "they go on")
    for each in workers:
        each.ending.set()
    publish = publishing(killer)  # subscribers end at a message
    eventually(lambda: publish() or not any(each.is_alive() for each in workers), "they end")
    for each in workers:
        each.check()
    benchmark.end()
    ledger.settle()
    alive = [each.client for each in workers if each.lasts and each.number not in ledger.killed]
    for number, client in idle.items():
        if number in ledger.killed:
            assert client.at_end(), "its actor was killed, and it was not dropped"
        else:
            assert client("PING") == "PONG"
            alive.append(client)
    eventually(lambda: is_whole(killer), "the tree is whole", timeout=30)
    assert killer("SET", "lasting", "v") == "OK"
    for i in range(100):
        assert killer("SET", "last%d" % i, "v", "PX", "20") == "OK"
    eventually(lambda: b"expires=0" in killer("INFO", "keyspace"), "keys expire that nobody asks for")
    print("       killed: %s; %d steps on %d connections, redis-benchmark ended %d times"
          % (", ".join("%s %d" % (kind or "nobody", n) for kind, n in sorted(killed.items(), key=str)),
             sum(each.steps for each in workers), sum(each.connections for each in workers), benchmark.ends),
          flush=True)
    missing = {kind.lower() for kind in KINDS} - set(killed)
    assert not missing, "never killed: %s" % missing
    assert alive


def main():
    parser = argparse.ArgumentParser(prog="chaos_test.py")
    parser.add_argument("sider")
    is_long = bool(os.environ.get("SMARM_SOAK"))
    parser.add_argument("--seconds", type=float, default=60 if is_long else 5)
    parser.add_argument("--kills-per-second", type=float, default=1 if is_long else 6)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    parser.add_argument("--schedulers", default=os.environ.get("SIDER_SCHEDULERS", "2"))
    given = parser.parse_args()
    print("chaos_test: --seed %d --schedulers %s" % (given.seed, given.schedulers), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        unix_path = os.path.join(folder, "sider.sock")
        server = Server(os.path.abspath(given.sider), "--schedulers", given.schedulers, "--shards", str(SHARDS),
                        "--unixsocket", unix_path)
        log = []  # read as it comes, for the server waits for who reads it
        reader = threading.Thread(target=lambda: log.extend(server.process.stderr))
        reader.start()
        watchdog = threading.Timer(given.seconds + 240, server.process.kill)
        watchdog.start()
        try:
            chaos(server, unix_path, given)
            status = server.end()
            assert status == 0, "status %d" % status
            print("ok", flush=True)
        except BaseException:
            server.process.kill()
            server.process.wait()
            reader.join()
            print("the server's last words:\n" + "".join(log[-30:]), flush=True)
            # Workers that wait for a reply end with the server.
            raise
        finally:
            watchdog.cancel()
            reader.join()
    return 0


if __name__ == "__main__":
    sys.exit(main())
