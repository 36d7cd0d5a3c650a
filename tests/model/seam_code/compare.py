#!/usr/bin/env python3
"""Compares the machine code of the same functions in two object files.

    compare.py OBJDUMP same A.o B.o     0 if every function has equal instructions in both
    compare.py OBJDUMP apart A.o B.o    0 if every one of PROTOCOL differs

Addresses are taken relative to the function; what an instruction refers to elsewhere is told by its
relocation. A function that is missing or has no instructions is a failure in either mode.
"""
import re
import subprocess
import sys

PROTOCOL = [
    "smarm::detail::unpark_code(",
    "smarm::detail::mpmc_ring::push(",
    "smarm::detail::mpmc_ring::pop(",
    "smarm::detail::locked_ring::push_all(",
    "smarm::detail::locked_ring::pop_some(",
    "smarm::detail::local_push_code(",
    "smarm::detail::local_pop_code(",
]
# These choose one of the queues; a compiler may put nothing into them but the jump there.
CHOICE = [
    "smarm::detail::run_queue::push_shared(",
    "smarm::detail::run_queue::pop_shared(",
    "smarm::detail::run_queue::pop_striped(",
]

HEADER = re.compile(r"^[0-9a-f]+ <(.*)>:$")
INSTRUCTION = re.compile(r"^\s*[0-9a-f]+:\t(.*)$")
TARGET = re.compile(r"\b[0-9a-f]+ <(.*)>")


def instruction(text, function):
    """The instruction without its address and without the comment that repeats an operand."""
    text = " ".join(text.split("#")[0].split())
    found = TARGET.search(text)
    if not found:
        return text
    inside = found[1].startswith(function + "+0x") or found[1] == function
    place = "here" + found[1][len(function):] if inside else "elsewhere"
    return text[:found.start()] + place + text[found.end():]


def relocation(symbol):
    """What is referred to; an offset into a section says only what else the file holds."""
    return "to " + (re.split("[+-]0x", symbol)[0] if symbol.startswith(".") else symbol)


def functions(objdump, path):
    """The instructions of each function of the file, by its demangled name."""
    command = [objdump, "-d", "-r", "-C", "-w", "--no-show-raw-insn", path]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found, name = {}, None
    for line in text.splitlines():
        if header := HEADER.match(line):
            name = header[1]
            found[name] = []
        elif name and (code := INSTRUCTION.match(line)):
            # With -w a relocation stands behind its instruction.
            operation, *behind = code[1].split("\t")
            found[name].append(instruction(operation, name))
            for part in behind:
                kind = re.match(r"[0-9a-f]+: (R_\w+)", part)
                found[name].append(kind[1] if kind else relocation(part))
    return found


def code_of(found, function):
    """The function with the parts that the compiler has put elsewhere, in a fixed order."""
    return {name: code for name, code in sorted(found.items()) if code and name.startswith(function)}


def main(arguments):
    objdump, mode, one, other = arguments
    first, second = functions(objdump, one), functions(objdump, other)
    bad = 0
    for function in PROTOCOL + (CHOICE if mode == "same" else []):
        a, b = code_of(first, function), code_of(second, function)
        if not a or not b:
            # Only what may be inlined everywhere may be missing, and then from both.
            if function in PROTOCOL or a or b:
                print(f"{function}...): not in both files")
                bad += 1
            continue
        count = sum(len(code) for code in a.values())
        equal = a == b
        print(f"{function}...): {count} lines, {'equal' if equal else 'different'}")
        if equal == (mode == "same"):
            continue
        bad += 1
        for name in a:
            for left, right in zip(a[name], b.get(name, [])):
                if left != right:
                    print(f"    {left}    |    {right}")
                    break
    print(f"{'failed' if bad else 'passed'}: {bad} functions are not as they should be")
    return 1 if bad else 0


sys.exit(main(sys.argv[1:]))
