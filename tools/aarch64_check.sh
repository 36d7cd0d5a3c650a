#!/usr/bin/env bash
# Builds the two lowest layers for aarch64 and runs their self test under qemu's user emulation: the
# switch there is hand-written assembly that the tests on x86-64 never enter.
# Exit status: 0 all passed, 1 something failed, 77 the cross compiler or qemu is not installed
# (Debian: g++-aarch64-linux-gnu, qemu-user).
set -uo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." || exit 1

readonly SYSROOT=/usr/aarch64-linux-gnu
for tool in aarch64-linux-gnu-g++ qemu-aarch64; do
  command -v "$tool" >/dev/null || { echo "aarch64 check skipped: no $tool" >&2; exit 77; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mapfile -t sources < <(find src/base src/fiber -maxdepth 1 \( -name '*.cpp' -o -name '*.S' \) |
  grep -vE '_(test|bench|model|fuzz)\.cpp$' | sort)

failed=0
passed=0
for flags in "-O2 -mbranch-protection=standard" "-O1 -DSMARM_DEBUG=1"; do
  # shellcheck disable=SC2086
  if aarch64-linux-gnu-g++ -std=c++23 $flags -g -Wall -Wextra -Wpedantic -Werror \
      -fno-omit-frame-pointer -Iinclude -Isrc "${sources[@]}" src/fiber/self_test/fiber_self_test.cpp \
      -o "$work/self_test" -pthread && qemu-aarch64 -L "$SYSROOT" "$work/self_test"; then
    passed=$((passed + 1))
  else
    echo "aarch64: failed with $flags" >&2
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed"
((failed == 0))
