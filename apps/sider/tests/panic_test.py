#!/usr/bin/env python3
"""Crashes actors of sider and checks from outside who feels it, and that nobody else does.

usage: panic_test.py SIDER [TEST...]

A shard that crashes loses its keys and answers what it was doing with an error; no client is dropped
and no reply is lost, doubled or another's. A connection or a pusher that crashes takes its client along.
Others are started again, and nobody notices. A kill costs what a crash costs. Every
test ends its server by SIGTERM, which must end with status 0. The chaos test runs for a few seconds,
and for a minute where SMARM_SOAK is set.
"""
import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
import traceback

sys.dont_write_bytecode = True
from harness import ReplyError, Server, encode, error_of, eventually, eventually_open  # noqa: E402

SHARDS = 3
WATCHDOG_S = 180
STOP_S = 25  # ten for who does not read, five more to close, and as many for everybody else; a loaded machine
CHAOS_S = 60 if os.environ.get("SMARM_SOAK") else 3
LOST = "ERR a shard has crashed and lost its keys; the command was not completed"


def is_lost(reply):
    return isinstance(reply, ReplyError) and str(reply) == LOST


def panic(client, shard):
    assert client("DEBUG", "PANIC", "SHARD", shard) == "OK"


def keys_by_shard(client, count=8, prefix="key"):
    """For each shard some names that fall to it: whose keys go when it crashes."""
    names = ["%s%d" % (prefix, i) for i in range(count * SHARDS * 3)]
    found = []
    for shard in range(SHARDS):
        for name in names:
            assert client("SET", name, "x") == "OK"
        panic(client, shard)
        found.append([name for name in names if client("EXISTS", name) == 0])
        assert len(found[-1]) >= count, found
    for name in names:
        client("DEL", name)
    assert sum(map(len, found)) == len(names)
    return [names[:count] for names in found]


class Worker(threading.Thread):
    """Runs `step(client)` over and over with a client of its own; join() raises what it raised."""

    def __init__(self, server, step):
        super().__init__()
        self.client, self.step = server.client(), step
        self.ending, self.steps, self.failure = threading.Event(), 0, None
        self.start()

    def run(self):
        try:
            while not self.ending.is_set():
                self.step(self.client)
                self.steps += 1
        except Exception as failure:  # for join()
            self.failure = failure

    def end(self):
        self.ending.set()
        self.join()
        if self.failure:
            raise self.failure

    def advance(self, count=20):
        """Waits until it has made so many more steps."""
        wanted = self.steps + count
        eventually(lambda: self.steps >= wanted or self.failure, "a worker goes on")
        if self.failure:
            raise self.failure


# --- tests; each takes a running server with three shards ------------------------------------------

def test_a_shard_that_crashes_is_empty_and_works(server):
    c = server.client()
    keys = keys_by_shard(c)
    for names in keys:
        for name in names:
            assert c("SET", name, "v") == "OK"
    panic(c, 1)
    assert c("DBSIZE") == 2 * len(keys[0])
    shown = [line for line in c("DEBUG", "TREE").decode().splitlines() if "'shard 1'" in line]
    assert len(shown) == 1 and "2 restarts, last end: failed: DEBUG PANIC" in shown[0], shown
    for shard, names in enumerate(keys):
        for name in names:
            assert c("GET", name) == (None if shard == 1 else b"v"), (shard, name)
    for name in keys[1]:
        assert c("INCR", name) == 1
    assert c("SET", keys[1][0], "v", "PX", "50") == "OK"
    eventually(lambda: c("EXISTS", keys[1][0]) == 0, "keys of the new shard expire")
    for wrong in (["SHARD"], ["SHARD", "3"], ["SHARD", "x"], ["SHARD", "-1"], ["NOBODY"], []):
        assert error_of(c("DEBUG", "PANIC", *wrong)), wrong
    assert c("PING") == "PONG"


def test_other_shards_and_all_clients_go_on(server):
    c = server.client()
    keys = keys_by_shard(c)

    def on_untouched_shards(names):
        expected = itertools.count(1)

        def step(client):
            client.raw(b"".join(encode("INCR", name) for name in names))
            now = next(expected)
            for name in names:
                assert client.read() == now, "a shard that did not crash lost something"
        return step

    def on_the_shard_that_crashes(names):
        counts = dict.fromkeys(names, 0)

        def step(client):
            client.raw(b"".join(encode("INCR", name) for name in names))
            for name in names:
                reply = client.read()
                assert is_lost(reply) or reply in (1, counts[name] + 1), (reply, counts[name])
                counts[name] = 0 if is_lost(reply) else reply
        return step

    lasting = [Worker(server, on_untouched_shards(keys[shard])) for shard in (0, 2)]
    shaken = Worker(server, on_the_shard_that_crashes(keys[1]))
    for _ in range(10):
        panic(c, 1)
        for each in lasting + [shaken]:
            each.advance()
    for each in lasting + [shaken]:
        each.end()


def test_commands_in_flight_get_the_error(server):
    c = server.client()
    keys = keys_by_shard(c)
    for _ in range(10):
        assert c("SET", keys[1][0], "v") == "OK"
        assert c("DEBUG", "PANIC", "SHARD", 1, "NEXT") == "OK"
        # One batch: all of it that falls to the shard is lost, the rest is done and in its place.
        c.raw(encode("SET", keys[0][0], "v") + encode("RPUSH", keys[1][1], "x") * 20 + encode("GET", keys[0][0])
              + encode("MGET", keys[0][0], keys[1][0]) + encode("ECHO", "e") + encode("MGET", keys[0][0]))
        assert c.read() == "OK"
        assert all([is_lost(c.read()) for _ in range(20)])
        assert c.read() == b"v" and is_lost(c.read()) and c.read() == b"e" and c.read() == [b"v"]
        assert c("LLEN", keys[1][1]) == 0 and c("GET", keys[1][0]) is None


def test_commands_over_several_shards_end_with_one_error(server):
    c, other = server.client(), server.client()
    keys = keys_by_shard(c)
    mixed = [names[0] for names in keys]
    commands = [("MSET", mixed[0], "v", mixed[1], "v"), ("MGET", *mixed), ("DEL", *mixed), ("EXISTS", *mixed),
                ("TOUCH", *mixed), ("DBSIZE",), ("KEYS", "*"), ("RANDOMKEY",), ("FLUSHALL",), ("SCAN", "1"),
                ("INFO", "keyspace"), ("BLPOP", mixed[1], "0"), ("BRPOP", *mixed, "0"),
                ("RENAME", mixed[0], mixed[1]), ("RENAMENX", mixed[0], mixed[1]), ("RENAME", mixed[1], mixed[2])]
    for words in commands:
        assert c("SET", mixed[0], "v") == "OK"
        assert c("SET", mixed[1], "v") == "OK"
        if words[0] in ("BLPOP", "BRPOP"):
            assert c("DEL", *mixed) == 2
        assert c("DEBUG", "PANIC", "SHARD", 1, "NEXT") == "OK"
        c.raw(encode(*words) + encode("PING"))
        assert is_lost(c.read()) and c.read() == "PONG", words
        if words[:2] in (("RENAME", mixed[0]), ("RENAMENX", mixed[0])):
            assert c("GET", mixed[0]) == b"v", "a key that could not be moved is gone"
        assert other("EXISTS", mixed[1]) == 0
    # Nobody is left waiting by a pop that has failed.
    assert c("DEL", mixed[0]) in (0, 1)
    assert c("RPUSH", mixed[0], "x") == 1 and c("LLEN", mixed[0]) == 1


def test_pops_that_wait_for_the_shard_get_the_error(server):
    c = server.client()
    keys = keys_by_shard(c)

    def waiting(count):
        eventually(lambda: c("CLIENT", "LIST").count(b"flags=b") == count, "%d wait" % count)

    one, several, untouched = server.client(), server.client(), server.client()
    one.raw(encode("BLPOP", keys[1][0], "0") + encode("PING"))
    several.send("BRPOP", keys[0][0], keys[1][1], keys[2][0], "0")
    untouched.send("BLPOP", keys[0][1], keys[2][1], "0")
    waiting(3)
    panic(c, 1)
    assert is_lost(one.read()) and one.read() == "PONG"
    assert is_lost(several.read())
    waiting(1)
    # Nobody waits any more where the pop was registered besides; and who was not touched is served.
    assert c("RPUSH", keys[0][0], "x") == 1 and c("LLEN", keys[0][0]) == 1
    assert c("RPUSH", keys[2][1], "x") == 1
    assert untouched.read() == [keys[2][1].encode(), b"x"]
    one.send("BLPOP", keys[1][0], "0")
    waiting(1)
    assert c("RPUSH", keys[1][0], "y") == 1
    assert one.read() == [keys[1][0].encode(), b"y"]


def test_a_connection_that_crashes_takes_its_client_only(server):
    c, victim, subscribed, waiting = (server.client() for _ in range(4))
    for each in (c, victim, subscribed, waiting):
        assert each("PING") == "PONG"
    subscribed.send("SUBSCRIBE", "channel")
    assert subscribed.read() == [b"subscribe", b"channel", 1]
    waiting.send("BLPOP", "list", "0")
    eventually(lambda: b"flags=b" in c("CLIENT", "LIST"), "it waits")
    descriptors = server.descriptors()
    victim.send("DEBUG", "PANIC", "CONNECTION")
    assert victim.at_end()
    eventually(lambda: c("CLIENT", "LIST").count(b"\n") == 3, "it is registered no more")
    eventually_open(server, descriptors, "its descriptor is closed", closed=1)
    assert c("PUBLISH", "channel", "hello") == 1
    assert subscribed.read() == [b"message", b"channel", b"hello"]
    assert c("RPUSH", "list", "x") == 1 and waiting.read() == [b"list", b"x"]
    assert server.client()("PING") == "PONG"


def test_clients_that_crash_by_the_hundred_harm_nobody(server):
    c = server.client()
    assert c("PING") == "PONG"
    descriptors = server.descriptors()
    for _ in range(300):
        victim = server.client()
        victim.raw(encode("SET", "k", "v") + encode("DEBUG", "PANIC", "CONNECTION"))
        while not victim.at_end():  # the reply to the first may have left
            pass
    assert c("GET", "k") == b"v"
    eventually_open(server, descriptors, "all descriptors are closed", closed=0)


def test_expiry_that_crashes_is_started_again_and_goes_on(server):
    c, other = server.client(), server.client()
    assert other("SET", "lasting", "v") == "OK"
    for _ in range(5):
        c.raw(b"".join(encode("SET", "k%d" % i, "v", "PX", 1 + i % 50) for i in range(1000)))
        for way in (["PANIC", "EXPIRY"], ["KILL", "0", "EXPIRY"]):
            assert c_after(c, 1000 if way[0] == "PANIC" else 0, "DEBUG", *way) in ("OK", b"expiry")
        eventually(lambda: c("DBSIZE") == 1, "keys expire that nobody asks for")
    assert c("SET", "k", "v", "PX", "1") == "OK"
    eventually(lambda: c("DBSIZE") == 1, "the last one is at work")
    (shown,) = [line for line in c("DEBUG", "TREE").decode().splitlines() if "expiry <" in line]
    assert "10 restarts, last end: killed" in shown, shown
    assert other("GET", "lasting") == b"v", "somebody else has crashed"


def c_after(client, replies, *words):
    """The reply to a command that is sent while `replies` others are on their way; all of them OK."""
    client.send(*words)
    for _ in range(replies):
        assert client.read() == "OK"
    return client.read()


def subscriber(server, verb="SUBSCRIBE", name="news"):
    client = server.client()
    number = client("CLIENT", "ID")
    client.send(verb, name)
    assert client.read() == [verb.lower().encode(), name.encode(), 1]
    return client, number


def pushers(client):
    below = client("DEBUG", "TREE").decode().partition('"pubsub"')[2].partition("supervisor <")[0]
    return sum(line.startswith(" " * 6) for line in below.splitlines())


def test_a_pusher_that_crashes_takes_its_client_only(server):
    c = server.client()
    for how in ("PANIC", "KILL"):
        (victim, number), (other, _), (by_pattern, _) = (
            subscriber(server), subscriber(server), subscriber(server, "PSUBSCRIBE", "n*"))
        assert c("PUBLISH", "news", "one") == 3 and pushers(c) == 3
        assert victim.read() == [b"message", b"news", b"one"]
        if how == "PANIC":
            assert c("DEBUG", "PANIC", "PUBSUB", number) == "OK"
        else:
            assert c("DEBUG", "KILL", "0", "PUSHER") == b"pusher %d" % number
        assert victim.at_end()
        eventually(lambda: c("PUBSUB", "NUMSUB", "news") == [b"news", 1] and pushers(c) == 2, "it is unsubscribed")
        assert error_of(c("DEBUG", "PANIC", "PUBSUB", number))
        assert c("PUBLISH", "news", "two") == 2
        for each, kind in ((other, b"message"), (by_pattern, b"pmessage")):
            assert [each.read()[-1], each.read()[-1]] == [b"one", b"two"], kind
            each.close()
        eventually(lambda: pushers(c) == 0 and c("PUBSUB", "NUMPAT") == 0, "the others leave")


def test_a_subscriber_that_reads_nothing_goes_at_once_when_it_is_killed(server):
    c = server.client()
    deaf, number = subscriber(server)
    for _ in range(3):  # more than the sockets hold, so its pusher waits for room
        assert c("PUBLISH", "news", b"m" * 8000000) == 1
    begin = time.monotonic()
    assert c("DEBUG", "KILL", "0", "CLIENT") == b"client %d" % number
    assert time.monotonic() - begin < 10 and c("CLIENT", "LIST").count(b"\n") == 1
    eventually(lambda: pushers(c) == 0, "its pusher has gone")
    deaf.close()


def test_whoever_is_killed_only_his_client_goes(server):
    c, idle = server.client(), server.client()
    assert idle("PING") == "PONG"
    descriptors = server.descriptors()
    # Shards after the gate: one whose inbox a gate had closed could not be started again.
    for kind, names in (("GATE", ["gate"]), ("SHARD", ["shard %d" % i for i in range(SHARDS)]), ("EXPIRY", ["expiry"]),
                        ("FAREWELL", ["farewell"]), ("LISTENER", ["listener tcp"])):
        for _ in range(3):
            assert c("DEBUG", "KILL", random.randrange(1000), kind).decode() in names
            with_new = server.client()
            for each in (c, idle, with_new):
                assert all(each("SET", "k%d" % i, "v") == "OK" for i in range(20)), kind
            with_new.close()
    victim = server.client()
    number = victim("CLIENT", "ID")
    eventually(lambda: c("CLIENT", "LIST").count(b"\n") == 3, "the others have left")
    assert c("DEBUG", "KILL", "1", "client") == b"client %d" % number  # 0: the idle one; the caller is left out
    assert victim.at_end() and idle("PING") == c("PING") == "PONG"
    eventually_open(server, descriptors, "its descriptor is closed", closed=0)
    for wrong in (["x"], ["1", "NOBODY"], ["1", "PUSHER"], ["1", "SHARD", "x"]):
        assert error_of(c("DEBUG", "KILL", *wrong)), wrong


def test_who_is_killed_in_the_middle_leaves_nothing_behind(server):
    c = server.client()
    for _ in range(40):
        victims = [server.client() for _ in range(4)]
        for each in victims:
            assert each("PING") == "PONG"
        for number, each in enumerate(victims):
            each.raw([encode("SUBSCRIBE", "news"), encode("BLPOP", "list", "0"), encode("PSUBSCRIBE", "n*"),
                      encode("PUBLISH", "news", "x") * 50][number])
        while str(c("DEBUG", "KILL", "0", "CLIENT")) != "ERR no such actor":
            pass
        for each in victims:
            while not each.at_end():
                pass
    eventually(lambda: pushers(c) == 0 and c("PUBSUB", "NUMPAT") == 0 and c("PUBSUB", "CHANNELS") == [],
               "pushers and subscriptions go with their clients", timeout=20)
    assert c("RPUSH", "list", "x") == 1 and c("LLEN", "list") == 1
    eventually(lambda: c("CLIENT", "LIST").count(b"\n") == 1, "all clients have gone")


def test_sigterm_stops_in_order_and_in_time(server):
    c, reading, deaf, waiting = (server.client() for _ in range(4))
    value = b"v" * 1000000
    assert c("SET", "k", value) == "OK"
    for each in (reading, deaf, waiting):
        assert each("PING") == "PONG"
    waiting.send("BLPOP", "list", "0")
    eventually(lambda: b"flags=b" in c("CLIENT", "LIST"), "it waits")
    reading.raw(encode("SET", "brief", "v", "PX", "1") + (encode("GET", "k") + encode("INCR", "n")) * 50
                + encode("INFO", "keyspace"))  # long after the first, since all that is between must be read
    deaf.raw(encode("GET", "k") * 100)
    begin = time.monotonic()
    server.process.send_signal(signal.SIGTERM)

    def refuses():
        try:
            server.client().close()
        except ConnectionError:
            return True
        return False

    # First the listener: nobody is accepted while the clients still get their replies.
    eventually(refuses, "nobody is accepted any more")
    # Then the clients, while the shards and the expiry are at work: one in the middle of a pipeline
    # gets all of it, and what it has let expire is erased.
    assert waiting.read() is None and waiting.at_end() and c.at_end()
    assert reading.read() == "OK"
    for i in range(50):
        assert reading.read() == value and reading.read() == i + 1
    assert b"keys=2,expires=0" in reading.read() and reading.at_end()
    assert server.process.poll() is None, "it has not waited for the one that reads nothing"
    # That one is given up in time, and the rest of the tree ends at once.
    assert server.process.wait(timeout=120) == 0
    assert time.monotonic() - begin < STOP_S


def test_sigterm_while_shards_crash_ends_in_order(server):
    c = server.client()
    panics = 100
    workers = [server.client() for _ in range(8)]
    for each in workers:
        assert each("PING") == "PONG"
    for each in workers:
        each.raw(encode("INCR", "n") * 2000)
    c.raw(b"".join(encode("DEBUG", "PANIC", "SHARD", i % SHARDS) for i in range(panics)))
    server.process.send_signal(signal.SIGTERM)
    for each in workers:
        for _ in range(2000):
            reply = each.read()
            assert isinstance(reply, int) or is_lost(reply), reply
        assert each.at_end()
    for _ in range(panics):
        assert c.read() == "OK"
    assert c.at_end()
    assert server.process.wait(timeout=120) == 0


def test_shards_that_cannot_be_kept_up_end_the_server(server):
    c, bystander = server.client(), server.client()
    assert bystander("PING") == "PONG"
    bystander.send("BLPOP", "list", "0")
    try:
        while True:
            panic(c, 0)
    except (EOFError, ConnectionError):
        pass
    reply = bystander.read()
    assert reply is None or is_lost(reply), reply
    assert bystander.at_end()
    assert server.process.wait(timeout=120) == 1


def test_chaos(server):
    c = server.client()
    keys = keys_by_shard(c, count=20)
    mixed = [name for names in keys for name in names]
    counts = itertools.count()
    losses = []

    def counting(number):
        """INCRs on keys that nobody else has: each answer is one more, or 1 after a loss of keys."""
        names = ["%s:%d" % (name, number) for name in mixed]
        last = dict.fromkeys(names, 0)

        def step(client):
            chosen = random.choices(names, k=random.randint(1, 40))
            client.raw(b"".join(encode("INCR", name) for name in chosen))
            for name in chosen:
                reply = client.read()
                assert is_lost(reply) or reply in (1, last[name] + 1), (reply, last[name])
                last[name] = 0 if is_lost(reply) else reply
                losses.append(is_lost(reply))
        return step

    def echoing(client):
        """Pipelines of different commands: each reply stands where it belongs."""
        mark = "mark%d" % next(counts)
        client.raw(encode("ECHO", mark) + encode("SET", mark, mark) + encode("GET", mark) + encode("MGET", mark, *mixed)
                   + encode("DEL", mark) + encode("ECHO", mark + "!"))
        before, was_set, got, many, deleted, after = (client.read() for _ in range(6))
        assert before == mark.encode() and after == (mark + "!").encode()
        assert was_set == "OK" or is_lost(was_set), was_set
        assert got in (mark.encode(), None) or is_lost(got), got
        assert is_lost(many) or (len(many) == len(mixed) + 1 and many[0] in (mark.encode(), None)), many
        assert deleted in (0, 1) or is_lost(deleted), deleted

    def popping(number):
        def step(client):
            name = "%s:list:%d" % (random.choice(mixed), number)
            client.raw(encode("RPUSH", name, "x") + encode("BLPOP", name, "0.01"))
            pushed, got = client.read(), client.read()
            assert is_lost(pushed) or pushed == 1, pushed
            assert is_lost(got) or got in ([name.encode(), b"x"], None), got
        return step

    workers = [Worker(server, counting(i)) for i in range(4)] + [Worker(server, echoing) for _ in range(2)]
    workers += [Worker(server, popping(i)) for i in range(2)]
    benchmark = start_benchmark(server)
    until = time.monotonic() + CHAOS_S
    panics = 0
    while time.monotonic() < until:
        if random.random() < 0.5:
            panic(c, random.randrange(SHARDS))
        else:  # falls on whatever command is next
            assert c("DEBUG", "PANIC", "SHARD", random.randrange(SHARDS), "NEXT") == "OK"
        panics += 1
        time.sleep(random.choice([0, 0.02, 0.2]))
    for each in workers:
        each.advance(1)
        each.end()
    if benchmark:
        benchmark.kill()
        benchmark.wait()
    print("       %d panics, %d steps, %d of %d counts lost"
          % (panics, sum(each.steps for each in workers), sum(losses), len(losses)), flush=True)
    assert any(losses), "no crash has met a command"
    for each in workers:
        assert each.client("PING") == "PONG"


def start_benchmark(server):
    """redis-benchmark as one more load, where there is one. It ends at the first error, so it counts for nothing."""
    try:
        return subprocess.Popen(["redis-benchmark", "-p", str(server.port), "-t", "ping", "-l", "-q", "-P", "8"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except FileNotFoundError:
        return None


def main():
    program = os.path.abspath(sys.argv[1])
    wanted = sys.argv[2:]
    tests = [(name, test) for name, test in globals().items()
             if name.startswith("test_") and (not wanted or any(w in name for w in wanted))]
    failed = 0
    for schedulers in os.environ.get("SIDER_SCHEDULERS", "1,2,8").split(","):
        for name, test in tests:
            server = Server(program, "--schedulers", schedulers, "--shards", str(SHARDS))
            # The watchdog ends a hung server, upon which the test fails by an end of file.
            watchdog = threading.Timer(WATCHDOG_S, lambda hung=server: hung.process.send_signal(signal.SIGABRT))
            watchdog.start()
            log = []  # read as it comes, for the server waits for who reads it
            reader = threading.Thread(target=lambda s=server, into=log: into.extend(s.process.stderr))
            reader.start()
            begin = time.monotonic()
            try:
                test(server)
                status = server.end()
                assert status == (1 if "cannot_be_kept_up" in name else 0), "status %d" % status
                print("ok     %s (schedulers %s, %.2f s)" % (name, schedulers, time.monotonic() - begin), flush=True)
            except Exception:
                failed += 1
                print("FAILED %s (schedulers %s)" % (name, schedulers))
                traceback.print_exc(file=sys.stdout)
            finally:
                watchdog.cancel()
                if server.process.poll() is None:
                    server.process.kill()
                server.process.wait()
                reader.join()
                # What was asked for is no news.
                news = [line for line in log if "DEBUG PANIC" not in line and not line.endswith(": killed\n")]
                if news:
                    print("stderr of the server:\n" + "".join(news), flush=True)
    print("panic_test: %d failed" % failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
