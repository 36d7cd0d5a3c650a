"""What tests of sider from outside need: a client that speaks RESP, and a server as a process."""
import os
import resource
import signal
import socket
import subprocess
import time


def encode(*words):
    out = [b"*%d\r\n" % len(words)]
    for word in words:
        word = word if isinstance(word, bytes) else str(word).encode()
        out.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(out)


class ReplyError(Exception):
    pass


class Client:
    def __init__(self, address):
        if isinstance(address, str):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(60)
            self.socket.connect(address)
        else:
            self.socket = socket.create_connection(("127.0.0.1", address), timeout=60)
        self.file = self.socket.makefile("rb")

    def send(self, *words):
        self.socket.sendall(encode(*words))

    def raw(self, data):
        self.socket.sendall(data)

    def read(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise EOFError
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            return ReplyError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            if rest == b"-1":
                return None
            text = self.file.read(int(rest) + 2)
            if len(text) < int(rest) + 2:
                raise EOFError
            return text[:-2]
        assert kind == b"*", line
        return None if rest == b"-1" else [self.read() for _ in range(int(rest))]

    def __call__(self, *words):
        self.send(*words)
        return self.read()

    def at_end(self):
        """Waits for the end of the connection; true if nothing but the end came."""
        try:
            return self.file.read(1) == b""
        except ConnectionResetError:
            return True

    def reset(self):
        """Ends the connection by RST instead of FIN."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.file.close()
        self.socket.close()

    def close(self):
        self.file.close()
        self.socket.close()


class Server:
    def __init__(self, program, *options, limit=None, environment=None):
        """`limit` is a resource and the most the server may have of it; `environment` is added to ours."""
        def set_limit():
            resource.setrlimit(limit[0], (limit[1], limit[1]))

        self.process = subprocess.Popen([program, "--port", "0", *options], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, **(environment or {})},
                                        preexec_fn=set_limit if limit else None)
        ready = self.process.stdout.readline()
        assert ready.startswith("sider: ready on 127.0.0.1:"), (ready, self.process.stderr.read())
        self.port = int(ready.split(":")[2].split(",")[0].split(" ")[0])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Ends it if the test has not, and tells what it had to complain of."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        errors = self.process.stderr.read()
        if errors:
            print("stderr of the server:\n" + errors, flush=True)

    def client(self):
        return Client(self.port)

    def resident_mb(self):
        with open("/proc/%d/status" % self.process.pid) as status:
            for line in status:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) / 1024

    def descriptors(self):
        """What it has open: (number, what it is) of each. A socket or a pipe is another one each time.

        A momentary look: the server's runtime opens files while it names the functions of a stack, and a
        sanitizer's opens a pipe to see whether it may read somewhere. So numbers of two looks say nothing;
        eventually_open compares.
        """
        folder = "/proc/%d/fd" % self.process.pid
        found = set()
        for number in os.listdir(folder):
            try:
                found.add((int(number), os.readlink(folder + "/" + number)))
            except FileNotFoundError:
                pass  # closed meanwhile
        return found

    def cpu_s(self):
        with open("/proc/%d/stat" % self.process.pid) as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def switches(self):
        """How often its threads have gone to sleep."""
        count = 0
        for task in os.listdir("/proc/%d/task" % self.process.pid):
            with open("/proc/%d/task/%s/status" % (self.process.pid, task)) as status:
                count += sum(int(line.split()[1]) for line in status
                             if line.startswith("voluntary_ctxt_switches"))
        return count

    def end(self, timeout=120):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=timeout)


def eventually(check, what, timeout=120):
    until = time.monotonic() + timeout
    while not check():
        assert time.monotonic() < until, "never happened: " + what
        time.sleep(0.01)


def eventually_open(server, before, what, closed=None):
    """Waits until the server has nothing open that it had not `before`, a former server.descriptors().

    That one may have held what was about to close, so what is there no more is no matter; but where `closed`
    is given, it is the number of sockets of then that are to be gone: all others must last.
    """
    def differences():
        now = server.descriptors()
        gone = {each for each in before - now if each[1].startswith("socket:")}
        return now - before, gone

    def has_come():
        opened, gone = differences()
        return not opened and closed in (None, len(gone))

    try:
        eventually(has_come, what)
    except AssertionError as failure:
        raise AssertionError("%s; opened since: %s; sockets closed since: %s"
                             % (failure, *map(sorted, differences()))) from None


def error_of(reply):
    assert isinstance(reply, ReplyError), reply
    return str(reply)
