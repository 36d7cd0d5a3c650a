// Goal: the quota of a control group is found in either version, at any level, as a host and as a
// container show it, and whatever cannot be understood is no limit. Method: trees of files as the
// kernel writes them, in a directory that stands for the root; and, where this process may make
// one, a real group.
#include "base/cpu_limit.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace smarm::detail {
namespace {

namespace fs = std::filesystem;

class cpu_limit_test : public ::testing::Test {
 protected:
  cpu_limit_test() { fs::create_directories(root_); }
  ~cpu_limit_test() override { fs::remove_all(root_); }

  void write(const std::string& path, std::string_view text) {
    const fs::path where = root_ / path;
    fs::create_directories(where.parent_path());
    std::ofstream(where) << text;
  }
  void version_two(std::string_view group, std::string_view mounted = "/") {
    write("proc/self/cgroup", "0::" + std::string(group) + "\n");
    write("proc/self/mountinfo", "22 1 0:20 / / rw - ext4 /dev/vda rw\n30 22 0:26 " +
                                     std::string(mounted) +
                                     " /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n");
  }
  [[nodiscard]] std::optional<double> found() const { return cgroup_cpus(root_); }

 private:
  fs::path root_ = fs::temp_directory_path() / ("smarm_cpu_limit_" + std::to_string(getpid()));
};

TEST_F(cpu_limit_test, nothing_to_read_is_no_limit) { EXPECT_EQ(found(), std::nullopt); }

TEST_F(cpu_limit_test, max_is_no_limit) {
  version_two("/app");
  write("sys/fs/cgroup/app/cpu.max", "max 100000\n");
  EXPECT_EQ(found(), std::nullopt);
}

TEST_F(cpu_limit_test, a_quota_is_so_many_cpus) {
  version_two("/app");
  write("sys/fs/cgroup/app/cpu.max", "150000 100000\n");
  EXPECT_EQ(found(), 1.5);
}

TEST_F(cpu_limit_test, the_least_of_all_levels_counts) {
  version_two("/pod/app");
  write("sys/fs/cgroup/cpu.max", "800000 100000\n");
  write("sys/fs/cgroup/pod/cpu.max", "200000 100000\n");
  write("sys/fs/cgroup/pod/app/cpu.max", "400000 100000\n");
  EXPECT_EQ(found(), 2.0);
}

TEST_F(cpu_limit_test, a_container_that_sees_its_own_group_as_the_top_finds_it_there) {
  version_two("/pod/app", "/pod/app");
  write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(found(), 0.5);
}

TEST_F(cpu_limit_test, the_first_version_has_two_files) {
  write("proc/self/cgroup", "9:cpuset:/\n4:cpu,cpuacct:/app\n0::/elsewhere\n");
  write("proc/self/mountinfo",
        "33 22 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
        "34 22 0:30 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n");
  write("sys/fs/cgroup/cpu/app/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/app/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(found(), std::nullopt);
  write("sys/fs/cgroup/cpu/app/cpu.cfs_quota_us", "300000\n");
  EXPECT_EQ(found(), 3.0);
}

TEST_F(cpu_limit_test, what_cannot_be_understood_is_no_limit) {
  version_two("/app");
  for (const std::string_view text : {"", "x", "100000", "0 100000", "100000 0", "-5 100000"}) {
    write("sys/fs/cgroup/app/cpu.max", text);
    EXPECT_EQ(found(), std::nullopt) << text;
  }
  write("proc/self/mountinfo", "- - -\n\n1 2 3\n");
  EXPECT_EQ(found(), std::nullopt);
  write("proc/self/cgroup", "0\n0:\n::\n");
  EXPECT_EQ(found(), std::nullopt);
}

// A control group of half a CPU, of whichever version this machine has.
class group_of_half_a_cpu {
 public:
  group_of_half_a_cpu() {
    const std::string name = "smarm_cpu_limit_" + std::to_string(getpid());
    for (const char* top : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu",
                            "/sys/fs/cgroup/cpu,cpuacct"}) {
      const fs::path group = fs::path(top) / name;
      std::error_code none;
      if (!fs::exists(fs::path(top) / "cgroup.procs", none) || !fs::create_directory(group, none)) {
        continue;
      }
      if (write(group / "cpu.max", "50000 100000") || write(group / "cpu.cfs_quota_us", "50000")) {
        where_ = group;
        return;
      }
      fs::remove(group, none);
    }
  }
  group_of_half_a_cpu(const group_of_half_a_cpu&) = delete;
  group_of_half_a_cpu& operator=(const group_of_half_a_cpu&) = delete;
  ~group_of_half_a_cpu() {
    std::error_code none;  // empty: its one process has been waited for
    if (where_) fs::remove(*where_, none);
  }

  [[nodiscard]] bool is_made() const noexcept { return where_.has_value(); }
  // enter moves the calling process in; false: it may not.
  [[nodiscard]] bool enter() const { return write(*where_ / "cgroup.procs", "0"); }

 private:
  // Only into what the kernel has put there.
  static bool write(const fs::path& file, std::string_view text) {
    if (std::error_code none; !fs::exists(file, none)) return false;
    std::ofstream out(file);
    out << text;
    return static_cast<bool>(out.flush());
  }

  std::optional<fs::path> where_;
};

TEST(cpu_limit_of_the_kernel, a_real_group_of_half_a_cpu_leaves_one_scheduler) {
  const group_of_half_a_cpu group;
  if (!group.is_made()) GTEST_SKIP() << "no control group with a CPU quota can be made here";
  enum : int { as_it_should, not_entered, other_quota, other_number };
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!group.enter()) _exit(not_entered);
    if (cgroup_cpus() != 0.5) _exit(other_quota);
    _exit(default_schedulers() == 1 ? as_it_should : other_number);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == not_entered) GTEST_SKIP() << "no process may enter that group";
  EXPECT_EQ(WEXITSTATUS(status), as_it_should);
}

TEST(default_schedulers, are_no_more_than_the_affinity_mask_leaves) {
  std::thread([] {
    cpu_set_t before;
    ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    int first = 0;
    while (CPU_ISSET(first, &before) == 0) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(usable_cpus(), 1U);
    EXPECT_EQ(default_schedulers(), 1U);
  }).join();
  EXPECT_GE(default_schedulers(), 1U);
  EXPECT_LE(default_schedulers(), usable_cpus());
}

}  // namespace
}  // namespace smarm::detail
