#!/usr/bin/env python3
"""Sends the same commands to a Redis server and to sider and compares the replies byte for byte.

usage: differential.py [--redis PROGRAM] [--seed N] [--rounds N] SIDER

Both servers are started on free loopback ports and ended afterwards. First come scripted commands,
which visit every option and every error; then seeded random ones over few keys, so that types
clash, lists empty and keys expire. What may differ is told apart by the command: the order of KEYS,
SCAN and RANDOMKEY, and time to live by a few milliseconds. Needs redis-server 7.0; exits with 77
(skipped) where there is none, 1 at the first differences, 0 if there are none.
"""
import argparse
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time

SCRIPT = r"""
SET s abc | GET s | SET s 1 NX | SET n 1 NX | SET s 2 XX | SET x 1 XX | SET s 3 GET | SET l2 1 XX GET
SET s 4 NX GET | SET new 4 NX GET | SET s v EX 100 | TTL s | SET s v KEEPTTL | TTL s | SET s v | TTL s
SET s v PX 100000 | PTTL s | SET s v EXAT 99999999999 | EXPIRETIME s | SET s v PXAT 99999999999999
PEXPIRETIME s | SET s v EX 0 | SET s v EX -1 | SET s v EX x | SET s v PX 9223372036854775807
SET s v EX 9223372036854775807 | SET s v EX | SET s v EX 10 PX 10 | SET s v NX XX | SET s v KEEPTTL EX 1
SET s v EX 1 EX 2 | SET s v foo | SET s | SET | SET s v EXAT 1 | GET s | SET s v GET GET | SET s v PERSIST
SETNX s 1 | SETNX nx 1 | SETEX e 100 v | TTL e | SETEX e 0 v | SETEX e x v | PSETEX e 100000 v | PSETEX e -1 v
GETSET s new | GETSET fresh v | GETDEL fresh | GETDEL fresh | GETEX s EX 100 | TTL s | GETEX s PERSIST | TTL s
GETEX s EX 0 | GETEX none EX 0 | GETEX s EX 10 PERSIST | GETEX s PXAT 1 | EXISTS s | GETEX s KEEPTTL | GETEX s NX
SET s hello | APPEND s " world" | APPEND ap x | STRLEN s | STRLEN none | GETRANGE s 0 4 | GETRANGE s -5 -1
GETRANGE s 3 1 | GETRANGE s -1 -5 | GETRANGE none 0 -1 | GETRANGE s 0 x | SUBSTR s 0 2 | SETRANGE s 6 redis
SETRANGE pad 3 x | GET pad | SETRANGE s -1 x | SETRANGE none 5 "" | SETRANGE s 536870912 x | SETRANGE s 0 ""
GETRANGE s 9223372036854775807 9223372036854775807 | GETRANGE s -9223372036854775808 -9223372036854775808
INCR i | INCR i | DECR i | INCRBY i 10 | DECRBY i 3 | INCRBY i x | INCRBY i 9223372036854775807
SET i 9223372036854775807 | INCR i | DECRBY i -1 | DECRBY i -9223372036854775808 | SET i 01 | INCR i
SET i " 1" | INCR i | SET i -0 | INCR i | SET i 1.5 | INCR i | SET i "" | INCR i | SET i -9223372036854775808 | DECR i
SET f 10.5 | INCRBYFLOAT f 0.1 | INCRBYFLOAT f -5 | SET f 5.0e3 | INCRBYFLOAT f 2.0e2 | INCRBYFLOAT f x
INCRBYFLOAT f nan | INCRBYFLOAT f inf | INCRBYFLOAT fx 3.0 | SET f abc | INCRBYFLOAT f 1 | INCRBYFLOAT f2 1e-18
INCRBYFLOAT f3 1e300 | INCRBYFLOAT f3 -1e300 | INCRBYFLOAT f4 -0 | INCRBYFLOAT f5 " 1" | INCRBYFLOAT f5 0x10
SET f6 1e4000 | INCRBYFLOAT f6 1e4000 | INCRBYFLOAT f6 1e5000 | INCRBYFLOAT f7 3.123456789012345678
MSET a 1 b 2 c 3 | MGET a b none c | MSET a | MSET a 1 b | MGET | DEL a b none | UNLINK c none | EXISTS a a s s
EXISTS | TOUCH s none s | TYPE s | TYPE none | RPUSH l a b c | TYPE l | GET l | INCR l | APPEND l x | STRLEN l
GETRANGE l 0 1 | SETRANGE l 0 x | GETSET l x | GETDEL l | GETEX l | SET l x GET | MGET l s | INCRBYFLOAT l 1
LPUSH s x | LPOP s | LLEN s | LRANGE s 0 1 | LINDEX s 0 | LSET s 0 x | LREM s 0 x | LTRIM s 0 1 | LINSERT s BEFORE a b
LPUSHX s x | RPUSHX none x | LPUSHX none x | LPUSHX l z y | RPUSHX l d | LRANGE l 0 -1 | LLEN l | LINDEX l 0
LINDEX l -1 | LINDEX l 99 | LINDEX l x | LINDEX none x | LRANGE l 1 2 | LRANGE l -100 100 | LRANGE l 5 1 | LRANGE l x 1
LRANGE l 0 x | LRANGE none 0 1 | LSET l 0 first | LSET l -1 last | LSET l 99 x | LSET l x x | LSET none 0 x
LINSERT l BEFORE b bb | LINSERT l AFTER b ba | LINSERT l AFTER none x | LINSERT none BEFORE a b | LINSERT l x b c
LRANGE l 0 -1 | RPUSH r a b a b a b a | LREM r 2 a | LRANGE r 0 -1 | LREM r -1 b | LRANGE r 0 -1 | LREM r 0 a
LRANGE r 0 -1 | LREM r x a | LREM none 0 a | LREM r -9223372036854775808 b | EXISTS r | RPUSH t 1 2 3 4 5 | LTRIM t 1 3
LRANGE t 0 -1 | LTRIM t 5 10 | EXISTS t | LTRIM none 0 1 | LTRIM t x 1 | LPOP l | RPOP l | LPOP l 2 | RPOP l 0
LPOP l -1 | LPOP l x | LPOP none | LPOP none 1 | LPOP none 0 | LPOP l 1 2 | RPOP l 100 | EXISTS l | LPOP l 9223372036854775808
RPUSH l 1 2 3 | LPOP l 0 | RPOP l 2 | LPUSH l | RPUSH | LRANGE l 0 | LINSERT l BEFORE a
SET k v | EXPIRE k 100 | TTL k | EXPIRE k 200 NX | EXPIRE k 200 XX | EXPIRE k 100 GT | EXPIRE k 300 GT | EXPIRE k 400 LT
EXPIRE k 50 LT | TTL k | EXPIRE k 10 NX XX | EXPIRE k 10 NX GT | EXPIRE k 10 GT LT | EXPIRE k 10 foo | EXPIRE k 10 XX LT
EXPIRE k x | EXPIRE none x | EXPIRE none 10 | EXPIRE k x foo | PEXPIRE k 100000 | PTTL k | EXPIREAT k 99999999999
EXPIRETIME k | PEXPIREAT k 99999999999999 | PEXPIRETIME k | PERSIST k | PERSIST k | PERSIST none | TTL k | TTL none
PTTL none | PTTL k | EXPIRETIME k | EXPIRETIME none | EXPIRE k 9223372036854775807 | EXPIRE k -9223372036854775808
PEXPIRE k 9223372036854775807 | EXPIRE k 10 GT | EXPIRE k 10 LT | EXPIRE k -1 | EXISTS k | SET k v | EXPIREAT k 1 | EXISTS k
SET k v | PEXPIRE k 0 | EXISTS k | EXPIRE k | TTL | SET k v EX 100 | GETSET k w | TTL k | SET k v EX 100 | APPEND k x | TTL k
SET k 1 EX 100 | INCR k | TTL k | INCRBYFLOAT k 1 | TTL k | MSET k 1 | TTL k | SETRANGE k 0 x | EXPIRE l 100 | RPUSH l z | TTL l
RENAME k k2 | GET k2 | RENAME none x | RENAME k2 k2 | RENAMENX k2 s | RENAMENX k2 k3 | RENAMENX k3 k3 | RENAMENX none x
SET ra 1 EX 100 | RENAME ra rb | TTL rb | SET rc 1 | RENAME rc rb | TTL rb | RENAME l rb | TYPE rb | RENAME rb | KEYS *
KEYS r* | KEYS [a-c]* | KEYS ?? | KEYS | DBSIZE | DBSIZE x | FLUSHDB x | FLUSHALL x y | RANDOMKEY x
SCAN x | SCAN 0 COUNT 0 | SCAN 0 COUNT x | SCAN 0 COUNT | SCAN 0 FOO 1 | SCAN 0 MATCH | SCAN
PING | PING x | PING x y | ECHO x | ECHO | SELECT 0 | SELECT 99 | SELECT x | SELECT | nonsense | nonsense a b c
"non\r\nsense" "a\r\nb" | CLIENT | CLIENT foo | CLIENT SETNAME | CLIENT GETNAME | CLIENT SETNAME me | CLIENT GETNAME
CLIENT SETNAME "a b" | CLIENT SETNAME "" | CLIENT GETNAME | CLIENT ID x | CLIENT KILL 1.2.3.4:5 | CLIENT KILL ID 99999
CLIENT KILL ID x | CLIENT KILL ID 0 | CLIENT KILL foo bar | CLIENT KILL TYPE foo | CLIENT LIST TYPE foo | CLIENT LIST foo
CLIENT LIST TYPE replica | CLIENT LIST ID x | CLIENT LIST ID 99999 | CLIENT NO-EVICT on | CLIENT NO-EVICT x | CLIENT GETREDIR
CLIENT SETNAME a b | CLIENT INFO x | CLIENT KILL | CONFIG | CONFIG GET | CONFIG GET nothing | CONFIG GET save | CONFIG GET appendonly
CONFIG GET proto-max-bulk-len | CONFIG SET nothing 1 | CONFIG SET | CONFIG SET a | CONFIG SET timeout abc | CONFIG SET timeout 0
CONFIG SET timeout 7 nothing 1 | CONFIG GET timeout | CONFIG SET client-output-buffer-limit "x 1 1 1"
CONFIG SET databases 4 | CONFIG foo | CONFIG RESETSTAT | COMMAND foo | COMMAND INFO nothing | COMMAND DOCS nothing
HELLO 3x | HELLO 4 | HELLO 2 SETNAME | HELLO 2 foo | TIME x | DEBUG | BLPOP k x | BLPOP k -1 | BLPOP k
SET str v | BLPOP str 1 | BLPOP none str 1 | RPUSH bl a b | BLPOP bl 1 | BRPOP none bl 1 | BLPOP none 0.01 | BRPOP none 0.01
PUBLISH ch x | PUBSUB CHANNELS | PUBSUB NUMSUB a b | PUBSUB NUMSUB | PUBSUB NUMPAT | UNSUBSCRIBE | UNSUBSCRIBE a | PUNSUBSCRIBE
SHUTDOWN foo | SHUTDOWN NOSAVE SAVE | SHUTDOWN ABORT | SHUTDOWN ABORT NOW
RESET | GET | get s | gEt s | MSET x 1 x 2 | GET x | EXPIRE | PUBLISH a | SUBSCRIBE | FLUSHALL ASYNC | DBSIZE | RANDOMKEY
"""

# Streams that break the protocol; each gets a connection of its own, which must end alike.
MALFORMED = [b"*x\r\n", b"*-5\r\nPING\r\n", b"*1\r\n$x\r\n", b"*1\r\n$-1\r\n", b"*1\r\n+PING\r\n", b"*2\r\n*1\r\n",
             b'set k "v\r\n', b'set "a"b c\r\n', b"\r\nPING\r\n", b"PING\n", b"*0\r\nPING\r\n", b"$4\r\nPING\r\n",
             b"*1\r\n$700000000\r\n", b"x" * 70000, b"*" + b"1" * 70000, b"*1\r\n$" + b"1" * 70000,
             b"*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPING\r\n", b"ECHO 'a\\'b'\r\n", b'ECHO "\\x41\\n\\q"\r\n',
             b"POST / HTTP/1.1\r\nHost: x\r\n\r\nPING\r\n", b"Host: x\r\nPING\r\n", b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$-2\r\n",
             b"\xff\xfe\r\n", b"*1\r\n\r\n", b"*01\r\n$4\r\nPING\r\n", b"*+1\r\n$4\r\nPING\r\n", b"*1\r\n$+4\r\nPING\r\n"]

UNORDERED = {"KEYS"}
ABOUT_TIME = {"PTTL", "TTL"}


def encode(words):
    out = b"*%d\r\n" % len(words)
    for word in words:
        word = word if isinstance(word, bytes) else word.encode()
        out += b"$%d\r\n%s\r\n" % (len(word), word)
    return out


class Client:
    """A connection that reads replies as the raw bytes they are."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.buffer = b""

    def line(self):
        while b"\r\n" not in self.buffer:
            self.more()
        line, _, self.buffer = self.buffer.partition(b"\r\n")
        return line

    def more(self):
        data = self.socket.recv(1 << 16)
        if not data:
            raise EOFError("connection closed")
        self.buffer += data

    def reply(self):
        """Returns (raw bytes, list of the elements' raw bytes if it is an array)."""
        line = self.line()
        raw = line + b"\r\n"
        if line[:1] == b"$" and line != b"$-1":
            size = int(line[1:]) + 2
            while len(self.buffer) < size:
                self.more()
            raw += self.buffer[:size]
            self.buffer = self.buffer[size:]
        elements = None
        if line[:1] == b"*" and line != b"*-1":
            elements = [self.reply()[0] for _ in range(int(line[1:]))]
            raw += b"".join(elements)
        return raw, elements

    def ask(self, words):
        self.socket.sendall(encode(words))
        return self.reply()


def same(words, left, right):
    """Compares two replies to one command, with the differences that are allowed."""
    name = str(words[0]).upper()
    if left[0] == right[0]:
        return True
    if name in UNORDERED and left[1] is not None and right[1] is not None:
        return sorted(left[1]) == sorted(right[1])
    if name == "RANDOMKEY":
        return left[0][:1] == right[0][:1] == b"$"
    if name in ABOUT_TIME and left[0][:1] == right[0][:1] == b":":
        return abs(int(left[0][1:]) - int(right[0][1:])) < 200 and int(left[0][1:]) > 0
    return False


def words_of(text):
    """Splits a command of SCRIPT: blanks separate, "..." quotes with C escapes."""
    words, at = [], 0
    while at < len(text):
        if text[at] == " ":
            at += 1
        elif text[at] == '"':
            end = text.index('"', at + 1)
            words.append(text[at + 1:end].encode().decode("unicode_escape"))
            at = end + 1
        else:
            end = (text + " ").index(" ", at)
            words.append(text[at:end])
            at = end
    return words


def scripted():
    for line in SCRIPT.strip().splitlines():
        for text in line.split(" | "):
            yield words_of(text.strip())


def number(rng):
    return rng.choice(["0", "1", "-1", "2", "-2", "3", "10", "-100", "x", "01", "9223372036854775807"])


def random_command(rng):
    def key():
        return "k%d" % rng.randrange(12)

    def value():
        return rng.choice(["", "a", "b", "10", "-3", "3.5", "hello world", "x" * 100, "\r\n", "9223372036854775800"])

    def some(make, most=4):
        return [make() for _ in range(rng.randint(1, most))]

    def expiry():
        return rng.choice([["EX", "100"], ["PX", "100000"], ["PX", "1"], ["EX", "0"], ["KEEPTTL"], ["NX"], ["XX"],
                           ["GET"], ["PXAT", "99999999999999"], ["XX", "GET"], []])

    pairs = [w for _ in range(rng.randint(1, 4)) for w in (key(), value())]
    return rng.choice([
        lambda: ["SET", key(), value()] + expiry(), lambda: ["GET", key()], lambda: ["GETSET", key(), value()],
        lambda: ["GETDEL", key()], lambda: ["GETEX", key()] + rng.choice([[], ["PERSIST"], ["EX", "100"]]),
        lambda: ["SETNX", key(), value()], lambda: ["APPEND", key(), value()], lambda: ["STRLEN", key()],
        lambda: ["GETRANGE", key(), number(rng), number(rng)],
        lambda: ["SETRANGE", key(), rng.choice(["0", "1", "5", "-1", "x"]), value()],
        lambda: ["INCR", key()], lambda: ["DECR", key()], lambda: ["INCRBY", key(), number(rng)],
        lambda: ["DECRBY", key(), number(rng)], lambda: ["INCRBYFLOAT", key(), rng.choice(["0.1", "-2.5", "1e3", "x"])],
        lambda: ["MSET"] + pairs, lambda: ["MGET"] + some(key), lambda: ["DEL"] + some(key, 2),
        lambda: ["EXISTS"] + some(key), lambda: ["TYPE", key()], lambda: ["TTL", key()], lambda: ["PERSIST", key()],
        lambda: ["EXPIRE", key(), rng.choice([str(rng.randint(100, 99999)), "-1", "x"])]
        + rng.choice([[], ["NX"], ["XX"], ["GT"], ["LT"]]),
        lambda: ["PEXPIREAT", key(), "99999999999999"], lambda: ["RENAME", key(), key()],
        lambda: ["RENAMENX", key(), key()], lambda: ["KEYS", rng.choice(["*", "k[0-5]", "k?", "*1*", "[^k]*"])],
        lambda: ["DBSIZE"] if rng.random() < 0.9 else ["FLUSHALL"],
        lambda: [rng.choice(["LPUSH", "RPUSH", "LPUSHX", "RPUSHX"]), key()] + some(value),
        lambda: [rng.choice(["LPUSH", "RPUSH"]), key()] + some(value),
        lambda: [rng.choice(["LPOP", "RPOP"]), key()] + rng.choice([[], [number(rng)]]),
        lambda: ["LRANGE", key(), number(rng), number(rng)], lambda: ["LLEN", key()],
        lambda: ["LINDEX", key(), number(rng)], lambda: ["LREM", key(), number(rng), value()],
        lambda: ["LTRIM", key(), rng.choice(["0", "1", "-5"]), rng.choice(["-1", "3", "-2"])],
        lambda: ["LSET", key(), number(rng), value()],
        lambda: ["LINSERT", key(), rng.choice(["BEFORE", "AFTER", "x"]), value(), value()],
        lambda: [rng.choice(["BLPOP", "BRPOP"])] + some(key, 3) + ["0.01"],
        lambda: [rng.choice(["GET", "LPUSH", "SET", "EXPIRE"])] + some(key, 3),
    ])()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port, process):
    until = time.monotonic() + 20
    while time.monotonic() < until and process.poll() is None:
        try:
            return Client(port)
        except OSError:
            time.sleep(0.02)
    sys.exit("a server did not start")


def compare_streams(redis_port, sider_port):
    """Feeds the malformed streams to both; returns the number of differences."""
    differences = 0
    for stream in MALFORMED:
        answers = []
        for port in (redis_port, sider_port):
            client = Client(port)
            try:
                client.socket.sendall(stream)
                client.socket.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            answer = b""
            try:
                while data := client.socket.recv(65536):
                    answer += data
            except ConnectionResetError:
                pass  # what was not read any more; the reply itself was
            answers.append(answer)
            client.socket.close()
        if answers[0] != answers[1]:
            differences += 1
            print("stream %r\n  redis %r\n  sider %r" % (stream[:60], answers[0][:200], answers[1][:200]))
    return differences


def scan_all(client, *options):
    seen, cursor = [], b"0"
    while True:
        _, elements = client.ask(["SCAN", cursor, *options])
        cursor = elements[0].split(b"\r\n")[1]
        seen += elements[1].split(b"\r\n")[2::2]
        if cursor == b"0":
            return sorted(set(seen) - {b""})


def run(redis_port, sider_port, redis, sider, seed, rounds):
    differences = compare_streams(redis_port, sider_port)
    rng = random.Random(seed)
    commands = 0

    def compare(words):
        nonlocal differences, commands
        left, right = redis.ask(words), sider.ask(words)
        commands += 1
        if not same(words, left, right):
            differences += 1
            if differences <= 40:
                print("%r\n  redis %r\n  sider %r" % (words, left[0][:300], right[0][:300]))

    for words in scripted():
        compare(words)
    for count in range(rounds):
        words = random_command(rng)
        compare(words)
        if words[-2:] == ["PX", "1"]:  # let it expire in both before anything looks
            time.sleep(0.004)
            compare(["EXISTS", words[1]])
        if count % 500 == 499 and scan_all(redis) != scan_all(sider, "COUNT", "3"):
            differences += 1
            print("SCAN finds other keys after %d commands" % commands)
    # The same again in pipelines: order and splitting over shards must not show.
    for _ in range(rounds // 50):
        batch = [random_command(rng) for _ in range(rng.randint(2, 60))]
        batch = [words for words in batch if "PX" not in words]
        for client in (redis, sider):
            client.socket.sendall(b"".join(encode(words) for words in batch))
        for words in batch:
            left, right = redis.reply(), sider.reply()
            commands += 1
            if not same(words, left, right):
                differences += 1
                print("pipelined %r\n  redis %r\n  sider %r" % (words, left[0][:300], right[0][:300]))
    print("differential: %d commands and %d streams, %d differences (seed %d)"
          % (commands, len(MALFORMED), differences, seed))
    return differences


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sider")
    parser.add_argument("--redis", default="redis-server")
    parser.add_argument("--seed", type=int, default=20261129)
    parser.add_argument("--rounds", type=int, default=5000)
    options = parser.parse_args()
    if shutil.which(options.redis) is None:
        print("differential: no redis-server here, skipped")
        return 77
    redis_port, sider_port = free_port(), free_port()
    with tempfile.TemporaryDirectory() as folder:
        servers = [
            subprocess.Popen([options.redis, "--port", str(redis_port), "--bind", "127.0.0.1", "--save", "",
                              "--dir", folder], stdout=subprocess.DEVNULL),
            subprocess.Popen([options.sider, "--port", str(sider_port), "--shards", "4"], stdout=subprocess.DEVNULL)]
        try:
            redis, sider = wait_for(redis_port, servers[0]), wait_for(sider_port, servers[1])
            return 1 if run(redis_port, sider_port, redis, sider, options.seed, options.rounds) else 0
        finally:
            for server in servers:
                server.terminate()
            for server in servers:
                server.wait(timeout=20)


if __name__ == "__main__":
    sys.exit(main())
