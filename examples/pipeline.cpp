// pipeline: three stages joined by bounded channels. A slow stage slows the ones before it, because
// a send to a full channel parks; nothing piles up and nobody is told to wait.
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <smarm/smarm.hpp>

namespace {

struct page {
  int number;
  std::string text;
};

struct word_count {
  int number;
  std::size_t words;
};

std::size_t count_words(const std::string& text) {
  std::size_t words = 0;
  bool inside = false;
  for (const char c : text) {
    const bool is_space = c == ' ';
    if (!is_space && !inside) ++words;
    inside = !is_space;
  }
  return words;
}

// Makes pages until the reader has gone or all are made.
void write_pages(const smarm::sender<page>& out) {
  for (int number = 1; number <= 1000; ++number) {
    std::string text;
    for (int i = 0; i < number % 10; ++i) text += "word ";
    if (!out.send({number, std::move(text)})) return;
  }
}

}  // namespace

int main() {
  smarm::run([] {
    auto [pages_in, pages] = smarm::channel<page>(16);
    auto [counts_in, counts] = smarm::channel<word_count>(16);

    smarm::spawn({.name = "writer"}, [out = std::move(pages_in)] { write_pages(out); });

    // A receiver belongs to one actor; this one deals the pages out to four counters.
    smarm::spawn({.name = "dealer"}, [in = std::move(pages), out = std::move(counts_in)]() mutable {
      std::vector<smarm::sender<page>> counters;
      for (int i = 0; i < 4; ++i) {
        auto [tx, rx] = smarm::channel<page>(4);
        counters.push_back(std::move(tx));
        smarm::spawn([rx = std::move(rx), out]() mutable {
          for (const page& one : rx) (void)out.send({one.number, count_words(one.text)});
        });
      }
      std::size_t next = 0;
      for (page one : in) (void)counters[next++ % counters.size()].send(std::move(one));
    });

    // Ends when the last sender of counts is gone: the dealer's and each counter's.
    std::size_t pages_seen = 0;
    std::size_t words = 0;
    for (const word_count one : counts) {
      ++pages_seen;
      words += one.words;
    }
    std::printf("%zu pages, %zu words\n", pages_seen, words);
  });
}
