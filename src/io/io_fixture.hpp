// What the tests of src/io share: pipes, a look at the kernel's registrations, and waiting for an
// event by looking for it.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <smarm/fd.hpp>
#include <smarm/this_actor.hpp>

namespace smarm::test {

// eventually yields until the condition holds; the watchdog ends it where it never does.
template <class Condition>
void eventually(Condition condition) {
  while (!condition()) yield();
}

// A pipe in non-blocking mode.
struct pipe_ends {
  unique_fd reading;
  unique_fd writing;

  pipe_ends() {
    int ends[2];
    if (::pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) std::abort();
    reading.reset(ends[0]);
    writing.reset(ends[1]);
  }

  void put() const {
    if (::write(writing.get(), "x", 1) != 1) std::abort();
  }
  [[nodiscard]] bool take() const {
    char byte = 0;
    return ::read(reading.get(), &byte, 1) == 1;
  }
};

// names_in lists a directory.
inline std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> names;
  DIR* const directory = ::opendir(path.c_str());
  while (const dirent* entry = directory == nullptr ? nullptr : ::readdir(directory)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  if (directory != nullptr) ::closedir(directory);
  return names;
}

// is_registered tells whether any epoll set of this process watches the descriptor.
inline bool is_registered(int fd) {
  const std::string wanted = std::to_string(fd);
  for (const std::string& name : names_in("/proc/self/fdinfo")) {
    std::ifstream info("/proc/self/fdinfo/" + name);
    std::string word;
    while (info >> word) {
      if (word == "tfd:" && info >> word && word == wanted) return true;
    }
  }
  return false;
}

// threads_named counts the threads of this process with that name.
inline std::size_t threads_named(std::string_view wanted) {
  std::size_t count = 0;
  for (const std::string& id : names_in("/proc/self/task")) {
    std::ifstream in("/proc/self/task/" + id + "/comm");
    std::string name;
    if (std::getline(in, name) && name == wanted) ++count;
  }
  return count;
}

// cpu_time is what this process has used of the processors so far.
inline std::chrono::microseconds cpu_time() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return std::chrono::seconds(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         std::chrono::microseconds(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

// is_error tells whether a result is that error.
template <class Result>
bool is_error(const Result& result, std::errc error) {
  return !result.has_value() && result.error() == error;
}

}  // namespace smarm::test
