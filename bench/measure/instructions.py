#!/usr/bin/env python3
"""Counts the instructions of the hot paths and compares them with what was recorded.

usage: instructions.py PROGRAM [--record]

PROGRAM is hot_paths of a Release build by g++. The count of a path is the difference between a run of
many turns and one of half as many, by the half: start and end cancel out, and what is left is the same
on every machine and under every load. bench/instructions.json holds the recorded counts; --record
writes it. A path that needs over a tenth more than recorded fails, and so does one that needs over a
tenth less, so that a gain is recorded before it can be lost. Ends with 77 where valgrind is missing.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys

RECORDED = pathlib.Path(__file__).resolve().parent.parent / "instructions.json"
PATHS = ("spawn_join", "yield", "message", "round_trip", "deadline", "server_call")
TURNS = 4000
LIMIT = 0.10


def instructions(program, path, turns):
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, path,
                           str(turns)], capture_output=True, text=True, check=False)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not found:
        raise SystemExit(f"{path}: valgrind ended with {done.returncode}\n{done.stderr[-2000:]}")
    return int(found[1])


def count(program, path):
    return (instructions(program, path, 2 * TURNS) - instructions(program, path, TURNS)) / TURNS


def main():
    parser = argparse.ArgumentParser(prog="instructions.py")
    parser.add_argument("program")
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("valgrind is not installed")
        return 77
    counts = {path: round(count(given.program, path)) for path in PATHS}
    if given.record:
        RECORDED.write_text(json.dumps(counts, indent=2) + "\n")
    recorded = json.loads(RECORDED.read_text())
    bad = 0
    for path in PATHS:
        change = counts[path] / recorded[path] - 1
        good = abs(change) <= LIMIT
        bad += not good
        print(f"{path:12} {counts[path]:6} instructions, recorded {recorded[path]:6} "
              f"({change:+.1%}) {'ok' if good else 'beyond a tenth: mend it, or record it'}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
