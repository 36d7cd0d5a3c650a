// cpu_limit is how much processor time this process may use: the CPUs it may run on, and what the
// control groups it is in allow.
//
// Threads: any. Reads files, so not for hot paths.
// Source: sched_getaffinity(2); cgroups(7); the kernel's Documentation/admin-guide/cgroup-v2.rst
// (cpu.max) and cgroup-v1's sched-bwc (cpu.cfs_quota_us, cpu.cfs_period_us).
#pragma once

#include <filesystem>
#include <optional>

namespace smarm::detail {

// usable_cpus is how many CPUs the affinity mask of the calling thread leaves; at least 1.
[[nodiscard]] unsigned usable_cpus() noexcept;

// cgroup_cpus is the least quota of the process's control group and of those above it, in CPUs;
// nothing where none is set, or where the files cannot be read or understood. `root` stands before
// the paths of /proc and of the mount points.
[[nodiscard]] std::optional<double> cgroup_cpus(const std::filesystem::path& root = "/") noexcept;

// default_schedulers is how many threads can be kept busy: the CPUs, or the quota, rounded up,
// where that is less. At least 1.
[[nodiscard]] unsigned default_schedulers() noexcept;

}  // namespace smarm::detail
