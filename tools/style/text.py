"""How a file reads: its size, its opening words, and the names that only some files may say."""
import re

from .source import Finding

HEADER_LINES = 300
SOURCE_LINES = 700
FUNCTION_LINES = 70
COLUMNS = 100

SCRIPTS = (".py", ".sh", ".cmake")


def is_script(source):
    return source.path.endswith(SCRIPTS) or source.text.startswith("#!")


def file_length(tree):
    """A header has at most 300 lines, a source or script at most 700."""
    for source in tree:
        if not source.is_cpp and not is_script(source):
            continue
        limit = HEADER_LINES if source.is_header else SOURCE_LINES
        if len(source.lines) > limit:
            yield Finding(source.path, limit + 1, f"{len(source.lines)} lines; split it, the limit is {limit}")


def line_length(tree):
    """A line has at most 100 columns, no tab and no blank at its end."""
    for source in tree.cpp():
        for number, line in enumerate(source.lines, 1):
            if len(line) > COLUMNS and "http" not in line and "R\"" not in line:
                yield Finding(source.path, number, f"{len(line)} columns; the limit is {COLUMNS}")
            if line != line.rstrip():
                yield Finding(source.path, number, "blank at the end of the line")
            if "\t" in line and not source.path.endswith(".S"):
                yield Finding(source.path, number, "tab; write spaces, and \\t in a literal")


def functions(source):
    """Yields (first line, last line, heading) of each function at namespace or class scope.

    A heuristic that knows braces and no grammar: what stands between the last `;`, `{` or `}` and a
    `{` decides what the brace opens.
    """
    scopes = []
    heading, heading_line = "", 1
    for number, line in enumerate(source.code, 1):
        if line.lstrip().startswith("#"):
            continue
        for char in line + "\n":
            if char == "{":
                kind = "block" if any(s[0] == "function" for s in scopes) else brace_kind(heading)
                scopes.append((kind, heading, heading_line))
                if kind != "initializer":
                    heading = ""
            elif char == "}":
                if not scopes:
                    continue
                kind, opened_by, opened_at = scopes.pop()
                if kind == "initializer":
                    heading = opened_by + "{}"
                    continue
                if kind == "function":
                    yield opened_at, number, " ".join(opened_by.split())
                heading = ""
            elif char == ";" and not (scopes and scopes[-1][0] == "initializer"):
                heading = ""
            else:
                if not heading.strip():
                    heading, heading_line = "", number
                heading += char


def brace_kind(heading):
    text = re.sub(r"\[\[.*?\]\]|alignas\s*\([^)]*\)", " ", heading)
    text = re.sub(r"^\s*template\s*<[^{;]*?>\s*(?=[\w\[:])", " ", text).strip()
    if re.match(r"(inline\s+)?namespace\b|extern\s+\"\"\s*$", text):
        return "namespace"
    if re.match(r"(export\s+|typedef\s+)?(class|struct|union|enum)\b", text) and not text.endswith(")"):
        return "type"
    if re.search(r"\)\s*(noexcept\s*(\([^)]*\))?\s*)?:\s*(?!:)", text) and not re.search(r"[)}]\s*$", text):
        return "initializer"  # a member in a constructor's list: the body's brace is still to come
    if "(" in text and not re.search(r"=\s*$", text):
        return "function"
    return "initializer"


def function_length(tree):
    """A function has at most 70 lines."""
    for source in tree.cpp():
        if source.path.endswith(".S"):
            continue
        for first, last, heading in functions(source):
            if last - first + 1 > FUNCTION_LINES:
                name = re.sub(r"\(.*", "", heading)[-50:]
                yield Finding(source.path, first, f"{name} has {last - first + 1} lines; the limit is "
                              f"{FUNCTION_LINES}")


def file_prose(tree):
    """Each C++ file starts with prose that says what it is."""
    for source in tree.cpp():
        opening = []
        for line in source.lines:
            if not line.startswith(("//", "/*", " *", "#!")) and not (opening and not line):
                break
            if not line:
                break
            opening.append(line.strip("/* "))
        if len(" ".join(opening)) < 20:
            yield Finding(source.path, 1, "the file starts without prose: say what it is, its invariants, "
                          "who may call, and why it is made this way")
        if source.is_header and "#pragma once" not in source.text:
            yield Finding(source.path, 1, "a header needs #pragma once")


def anywhere(_):
    return False


def only(*prefixes):
    return lambda source: source.path.startswith(prefixes)


# pattern, what to do instead, who may say it all the same
WORDS = [
    (r"\bstd::(atomic|memory_order|atomic_\w+)\b|#\s*include\s*<atomic>",
     "go through base/atomic.hpp, so that a model can stand in for it",
     # model/ is the stand-in itself, and a library of its own that knows nothing of smarm.
     lambda s: s.path.startswith(("src/base/atomic", "bench/", "model/")) or s.is_test
     or s.role == "bench"),
    (r"\bthread_local\b|\b__thread\b",
     "ask fiber/current: an actor changes threads, and with them every address of a thread_local",
     lambda s: s.path.startswith("src/fiber/current") or s.is_test),
    (r"\bstd::this_thread::(sleep_for|sleep_until)\b|(?<![\w:.>])(usleep|nanosleep)\s*\(",
     "in an actor smarm::sleep_for; in a test wait for the event itself",
     only("src/io/", "src/base/futex", "model/include/model/real_world")),
    (r"\bstd::this_thread::yield\b", "in an actor smarm::yield",
     lambda s: s.is_test or s.path.startswith(("src/io/", "src/base/", "src/sched/"))),
    (r"\bstd::(recursive_|timed_|shared_)*mutex\b|\bstd::condition_variable(_any)?\b",
     "an actor that holds it blocks its scheduler: smarm::mutex, or base/raw_mutex.hpp in the runtime",
     lambda s: s.is_test or s.role == "bench"
     or s.path.startswith(("src/sched/runtime_core", "src/sched/run_queue", "src/fiber/stack."))),
    (r"(?<!asm )(?<!__asm__ )\bvolatile\b(?!\s+sig_atomic_t|\s+std::sig_atomic_t)",
     "volatile orders nothing between threads: base/atomic.hpp",
     lambda s: s.is_test or s.role == "bench"),
    (r"(?<![\w.])assert\s*\(|#\s*include\s*<cassert>",
     "SMARM_ASSERT: it names the invariant with its values and stays on in release", anywhere),
    (r"\busing\s+namespace\s+(?!std::(\w+_)?literals|std::chrono_literals|smarm::literals)",
     "name what you use", anywhere),
    (r"\bstd::endl\b", "'\\n': endl also flushes", anywhere),
]

COMMENT_WORDS = [
    (r"\b(TODO|FIXME|XXX|HACK)\b", "do it, or say in plain words what is so and why"),
]


def misplaced_word(tree):
    """Some names may be said in one place only; everybody else is told what to say instead."""
    for source in tree.cpp():
        for number, line in enumerate(source.code, 1):
            for pattern, instead, allowed in WORDS:
                match = re.search(pattern, line)
                if match and not allowed(source):
                    yield Finding(source.path, number, f"{match[0].strip()}: {instead}")
        for number, line in enumerate(source.lines, 1):
            for pattern, instead in COMMENT_WORDS:
                match = re.search(pattern, line)
                if match:
                    yield Finding(source.path, number, f"{match[0]}: {instead}")


# Calls that can make an OS thread wait. With `::` in front they are the system's for certain; the
# second list has no namesake of ours, so it is found bare as well.
BLOCKING = (r"(?<![\w:>])::(read|readv|pread|write|writev|pwrite|recv|recvfrom|recvmsg|send|sendto|"
            r"sendmsg|accept|connect|poll|select|open|openat|fsync|fdatasync|flock|pause|wait|sleep)\s*\(")
BLOCKING_BARE = (r"(?<![\w:.>])(?:::)?(accept4|ppoll|pselect|epoll_wait|epoll_pwait2?|waitpid|wait4|"
                 r"waitid|sigwait|sigwaitinfo|sigtimedwait|getaddrinfo|usleep|nanosleep|"
                 r"clock_nanosleep|sem_wait|pthread_cond_wait|pthread_join)\s*\(")


def blocking_call(tree):
    """Only src/io makes system calls that can wait; base/futex is the one exception."""
    for source in tree.cpp():
        if source.is_test or source.role == "bench" or source.layer in ("io", "bench"):
            continue
        # model/real_world defines the system's calls anew, to forbid them in a model.
        if source.path.startswith(("src/base/futex", "model/include/model/real_world")):
            continue
        for number, line in enumerate(source.code, 1):
            match = re.search(BLOCKING, line) or re.search(BLOCKING_BARE, line)
            # The last words of a dying process go straight to its standard error; a poll of no
            # time and a call with MSG_DONTWAIT cannot wait.
            harmless = r"write\s*\(\s*(2|STDERR_FILENO)\b|poll\s*\(.*,\s*0\)|MSG_DONTWAIT"
            if match and not re.search(harmless, line):
                yield Finding(source.path, number, f"{match[0].strip()}...) may wait and hold up a "
                              "scheduler: use src/io, or smarm::blocking")


ATOMIC = re.compile(r"(?:(\w+)\s*)?(?:\.|->)(load|store|exchange|compare_exchange_(?:weak|strong)|"
                    r"fetch_(?:add|sub|or|and|xor))\s*\(")


def atomic_comment(tree):
    """An access to an atomic writes its order out and has a comment near it that gives the reason."""
    atomics = set()
    for source in tree.cpp():
        atomics.update(re.findall(r"\batomic(?:_ref)?<[^;=(]*>&?\s+(\w+)", source.text))
    for source in tree.cpp():
        if source.is_test or source.role == "bench" or source.layer not in (
                "base", "fiber", "sched", "sync", "io", "observe", "actor", "testing", "include"):
            continue
        if source.path.startswith("src/base/atomic"):
            continue
        for number, line in enumerate(source.code, 1):
            match = ATOMIC.search(line)
            if not match or match[1] and match[1] not in atomics:
                continue  # a type of ours may have a load of its own
            if re.match(r"\s*\)", line[match.end():]):
                yield Finding(source.path, number, f"{match[2]} without its memory order")
            near = source.lines[max(0, number - 7):number]
            if not any("//" in text for text in near):
                yield Finding(source.path, number, f"{match[2]} without a comment: name the access it "
                              "pairs with, or why relaxed is enough")


RULES = [file_length, line_length, function_length, file_prose, misplaced_word, blocking_call,
         atomic_comment]
