// Runs a fuzz target over its corpus and a few thousand mutations of it: the same mutations every
// time, or those of a seed. Replaces libFuzzer, which g++ lacks, but without coverage feedback;
// tests/fuzz/run has it. This one program contains all targets; the generated targets.inc lists
// them.
#include <algorithm>
#include <array>
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
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/time.h>
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
constexpr std::uint64_t kFixedSeed = 20260101;
constexpr std::size_t kMostBytes = 64u << 10;
constexpr int kMostSeconds = 30;  // of processor time for one input

Target target = nullptr;
// Data for the signal handler, which must not allocate: the current input, and the path where it is
// kept when it fails.
const std::string* running = nullptr;
std::array<char, 4096> kept_path{};
std::size_t kept_prefix = 0;

/// FNV-1a, 64 bits.
std::uint64_t HashOf(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

void WriteText(int fd, std::string_view text) {
  [[maybe_unused]] const ssize_t written = ::write(fd, text.data(), text.size());
}

/// Stores the failed input, prints how to reproduce the failure, and lets the signal end the
/// process.
void KeepInput(int signal) {
  std::uint64_t hash = HashOf(*running);
  for (std::size_t i = 0; i < 16; ++i, hash <<= 4)
    kept_path[kept_prefix + i] = "0123456789abcdef"[hash >> 60];
  const std::string_view path(kept_path.data(), kept_prefix + 16);
  const int fd = ::open(kept_path.data(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd >= 0) WriteText(fd, *running);
  WriteText(STDERR_FILENO, signal == SIGPROF ? "an input takes too long" : "an input failed");
  WriteText(STDERR_FILENO, fd >= 0 ? "; run the same command with this file for the corpus: "
                                   : "; it cannot be kept as ");
  WriteText(STDERR_FILENO, path);
  WriteText(STDERR_FILENO, "\n");
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

/// The folder of this program, in the build folder.
std::filesystem::path OwnFolder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

/// Prepares the folder beside this program for inputs that fail. Each file name is the target's
/// name and the input's hash.
void PrepareKeeping(const std::string& name) {
  const std::filesystem::path folder = OwnFolder() / "fuzz-findings";
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  const std::string prefix = folder / (name + "-");
  if (prefix.size() + 17 > kept_path.size()) std::abort();
  kept_prefix = prefix.copy(kept_path.data(), prefix.size());
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGPROF})
    ::signal(signal, KeepInput);
}

void RunTarget(const std::string& input) {
  running = &input;
  const itimerval limit{.it_interval = {}, .it_value = {.tv_sec = kMostSeconds, .tv_usec = 0}};
  ::setitimer(ITIMER_PROF, &limit, nullptr);
  target(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

/// Some targets write a tree of files for each input, which takes ten times as long on a disk.
void UseMemoryForFiles() {
  constexpr const char* kMemory = "/dev/shm";
  if (::access(kMemory, W_OK | X_OK) == 0) ::setenv("TEST_TMPDIR", kMemory, 0);
}

/// The hash of the commit as the seed, so that each commit is tested with other inputs; a constant
/// where git does not know it.
std::string CommitHash() {
  const std::string command = "git -C '" + OwnFolder().string() + "' rev-parse HEAD 2>/dev/null";
  std::string hash(64, '\0');
  std::FILE* const output = ::popen(command.c_str(), "re");
  if (output == nullptr) return "none";
  hash.resize(std::fread(hash.data(), 1, hash.size(), output));
  ::pclose(output);
  hash.resize(std::min(hash.size(), hash.find('\n')));
  return hash.empty() ? "none" : hash;
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> ReadCorpus(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> corpus;
  for (const auto& path : paths) corpus.push_back(ReadFile(path));
  return corpus;
}

class Mutator {
 public:
  Mutator(const std::vector<std::string>& corpus, std::uint64_t seed)
      : corpus_(corpus), random_(static_cast<std::uint32_t>(seed)) {}

  std::string Next() {
    std::string input = Pick(corpus_);
    for (std::size_t left = 1 + Below(5); left > 0; --left) Mutate(input);
    if (input.size() > kMostBytes) input.resize(kMostBytes);
    return input;
  }

 private:
  std::size_t Below(std::size_t bound) {
    return bound == 0 ? 0 : static_cast<std::size_t>(random_()) % bound;
  }
  const std::string& Pick(const std::vector<std::string>& strings) {
    return strings[Below(strings.size())];
  }

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
  std::mt19937 random_;
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  constexpr std::string_view kSeed = "--seed=";
  std::string seed;
  if (words.size() == 3 && words[1].starts_with(kSeed)) {
    seed = words[1].substr(kSeed.size());
    if (seed == "commit") seed = CommitHash();
    words.erase(words.begin() + 1);
  }
  const auto chosen = words.size() == 2 ? kTargets.find(words[0]) : kTargets.end();
  if (chosen == kTargets.end()) {
    std::fprintf(
        stderr,
        "usage: %s TARGET [--seed=commit|--seed=TEXT] CORPUS-FOLDER|FILE\nTargets:", argv[0]);
    for (const auto& [name, function] : kTargets) std::fprintf(stderr, " %s", name.c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  target = chosen->second;
  PrepareKeeping(words[0]);
  UseMemoryForFiles();
  const std::filesystem::path from = words[1];
  if (std::filesystem::is_regular_file(from)) {
    RunTarget(ReadFile(from));
    return 0;
  }
  const std::vector<std::string> corpus = ReadCorpus(from);
  if (corpus.empty()) {
    std::fprintf(stderr, "%s: no corpus\n", from.c_str());
    return 1;
  }
  if (!seed.empty())
    std::printf("the same run again: %s %s --seed=%s %s\n", argv[0], words[0].c_str(), seed.c_str(),
                from.c_str());
  std::fflush(stdout);
  RunTarget("");
  for (const std::string& input : corpus) RunTarget(input);
  Mutator mutator(corpus, seed.empty() ? kFixedSeed : HashOf(seed));
  for (int i = 0; i < kMutations; ++i) RunTarget(mutator.Next());
  std::printf("%zu files and %d mutations\n", corpus.size(), kMutations);
  return 0;
}
