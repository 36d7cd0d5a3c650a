#!/usr/bin/env python3
"""Writes litmus.txt and random.txt, the programs that the checker is measured by, from an oracle.

usage: make_corpus.py ORACLE_FOLDER litmus
       make_corpus.py ORACLE_FOLDER random SEED COUNT

The oracle is a brute-force enumerator of executions: it has nothing in common with the checker. Its
folder has rc11_enum.py, litmus_dsl.py, litmus_public.py and fuzz_programs.py.
"""
import random
import sys


def show(number, name, threads, finals, init, result):
    """Prints one program with what has to come out of it."""
    print(f"program {number} {name}")
    for thread in threads:
        print("thread", thread)
    for location, value in sorted((init or {}).items()):
        print("init", location, value)
    if finals:
        print("finals", *finals)
    print("executions", result.n_exec)
    print("race" if result.races else "clean")
    for outcome in sorted(result.outcomes):
        print("outcome", *outcome)
    print()


def main(folder, what, *numbers):
    sys.path.insert(0, folder)
    sys.setrecursionlimit(20000)
    import rc11_enum
    rc11_enum.SCMODE = "cxx20"
    import litmus_dsl
    if what == "litmus":
        import litmus_public
        for test in litmus_public.T:
            result, _ = litmus_dsl.run(test["threads"], test["finals"], test["init"])
            show(test["id"], test["name"], test["threads"], test["finals"], test["init"], result)
        return
    import fuzz_programs
    seed, count = map(int, numbers)
    rng = random.Random(seed)
    for number in range(count):
        threads, finals = fuzz_programs.prog(rng)
        result, _ = litmus_dsl.run(threads, finals)
        if not result.capped:
            show(f"R{number:05}", f"seed-{seed}", threads, finals, None, result)


if __name__ == "__main__":
    main(*sys.argv[1:])
