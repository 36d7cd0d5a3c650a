// Gives a fuzzer's code every file of its corpus, and every beginning of the small ones: so what
// was found once is tried in each build, by any compiler.   usage: x_corpus FOLDER
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

// A file up to this size is also tried cut off at each of its bytes.
constexpr std::size_t cut_max = 512;

// feed passes memory that ends with the input, so that a sanitizer sees who reads beyond it.
void feed(const std::string& text, std::size_t size) {
  const auto exact = std::make_unique_for_overwrite<std::uint8_t[]>(size);
  std::copy_n(text.begin(), size, exact.get());
  (void)LLVMFuzzerTestOneInput(exact.get(), size);
}

std::size_t run(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.push_back(entry.path());
  }
  std::ranges::sort(files);
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    // Said before, because a failure aborts.
    std::printf("%s\n", file.filename().c_str());
    std::fflush(stdout);
    for (std::size_t cut = text.size() <= cut_max ? 0 : text.size(); cut <= text.size(); ++cut) {
      feed(text, cut);
    }
  }
  return files.size();
}

}  // namespace

int main(int count, char** words) {
  try {
    const std::size_t files = count == 2 ? run(words[1]) : 0;
    std::printf("%zu files\n", files);
    return files == 0 ? 1 : 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "corpus: %s\n", error.what());
    return 2;
  }
}
