// Runs a fuzz target over its corpus and a few thousand mutations of it, the same ones every time. Stands in for libFuzzer, which g++
// lacks. All targets are in this one program; targets.inc is generated and names them.
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

using Target = int (*)(const std::uint8_t* data, std::size_t size);

#define FUZZ_TARGET(name) extern "C" int Fuzz_##name(const std::uint8_t* data, std::size_t size);
#include "targets.inc"
#undef FUZZ_TARGET

namespace {

const std::map<std::string, Target> kTargets = {
#define FUZZ_TARGET(name) {#name, &Fuzz_##name},
#include "targets.inc"
#undef FUZZ_TARGET
};

constexpr int kMutations = 4000;
constexpr std::size_t kMostBytes = 64u << 10;

Target target = nullptr;
// What the target works on, for the signal handler.
const std::string* running = nullptr;

void KeepInput(int signal) {
  const int fd = ::open("crash-input", O_WRONLY | O_CREAT | O_TRUNC, 0644);
  [[maybe_unused]] const ssize_t written = ::write(fd, running->data(), running->size());
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void RunTarget(const std::string& input) {
  running = &input;
  target(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

std::vector<std::string> ReadCorpus(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

class Mutator {
 public:
  explicit Mutator(const std::vector<std::string>& corpus) : corpus_(corpus) {}

  std::string Next() {
    std::string input = Pick(corpus_);
    for (std::size_t left = 1 + Below(5); left > 0; --left) Mutate(input);
    if (input.size() > kMostBytes) input.resize(kMostBytes);
    return input;
  }

 private:
  std::size_t Below(std::size_t bound) { return bound == 0 ? 0 : static_cast<std::size_t>(random_()) % bound; }
  const std::string& Pick(const std::vector<std::string>& strings) { return strings[Below(strings.size())]; }

  void Mutate(std::string& input) {
    const std::size_t at = Below(input.size() + 1);
    const std::size_t length = Below(std::min<std::size_t>(input.size() - at, 32) + 1);
    switch (Below(7)) {
      case 0: input.insert(at, 1, static_cast<char>(Below(256))); break;
      case 1: input.erase(at, length); break;
      case 2: input.insert(at, input.substr(at, length)); break;
      case 3: input.replace(at, length, Pick(kTroublemakers)); break;
      case 4: input.resize(at); break;
      case 5: {
        const std::string& other = Pick(corpus_);
        input = input.substr(0, at) + other.substr(Below(other.size() + 1));
        break;
      }
      default:
        if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << Below(8)));
    }
  }

  static const inline std::vector<std::string> kTroublemakers = {"-1",
                                                                 "0",
                                                                 "18446744073709551616",
                                                                 "9223372036854775808",
                                                                 "1e999",
                                                                 "0x",
                                                                 std::string(1, '\0'),
                                                                 "\n",
                                                                 "\r\n",
                                                                 "\xff\xfe",
                                                                 "\xed\xa0\x80",
                                                                 "\xef\xbb\xbf",
                                                                 "\\u0000",
                                                                 "\\ud800",
                                                                 ",,,,",
                                                                 ";;;;",
                                                                 "::::",
                                                                 "((((",
                                                                 "))))",
                                                                 "[[[[[[[[",
                                                                 "{{{{{{{{",
                                                                 "]]]]",
                                                                 "}}}}",
                                                                 "\"",
                                                                 "'",
                                                                 "&a *a",
                                                                 "!!",
                                                                 "---\n",
                                                                 "? ",
                                                                 "- - - -",
                                                                 std::string(300, 'x'),
                                                                 std::string(9000, '9'),
                                                                 std::string(200, '[')};

  const std::vector<std::string>& corpus_;
  std::mt19937 random_{20260101};
};

}  // namespace

int main(int argc, char** argv) {
  const auto chosen = argc == 3 ? kTargets.find(argv[1]) : kTargets.end();
  if (chosen == kTargets.end()) {
    std::fprintf(stderr, "usage: %s TARGET CORPUS-FOLDER|FILE\nTargets:", argv[0]);
    for (const auto& [name, function] : kTargets) std::fprintf(stderr, " %s", name.c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  target = chosen->second;
  const std::filesystem::path from = argv[2];
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE}) ::signal(signal, KeepInput);
  if (std::filesystem::is_regular_file(from)) {
    std::ifstream file(from, std::ios::binary);
    RunTarget(std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()));
    return 0;
  }
  const std::vector<std::string> corpus = ReadCorpus(from);
  if (corpus.empty()) {
    std::fprintf(stderr, "%s: no corpus\n", from.c_str());
    return 1;
  }
  RunTarget("");
  for (const std::string& input : corpus) RunTarget(input);
  Mutator mutator(corpus);
  for (int i = 0; i < kMutations; ++i) RunTarget(mutator.Next());
  std::printf("%zu files and %d mutations\n", corpus.size(), kMutations);
  return 0;
}
