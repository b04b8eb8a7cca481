// Runs one write at a time; lines that arrive meanwhile are part of the next one.
#include "node/usage/recorder.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>

#include "base/lifetime.h"
#include "base/log.h"
#include "os/core/file.h"

namespace penstock::node::usage {
namespace {

constexpr base::Duration kRest = std::chrono::seconds(2);
// With so many bytes of lines pending, the next write starts at once.
constexpr std::size_t kMuch = 256u << 10;
constexpr base::Duration kRestMost = std::chrono::minutes(1);

struct Line {
  std::string text;
  std::uint64_t number = 0;
  bool is_checkpoint = false;
};

std::vector<std::string> Texts(const std::deque<Line>& lines, std::uint64_t after) {
  std::vector<std::string> texts;
  for (const Line& line : lines)
    if (line.number > after) texts.push_back(line.text);
  return texts;
}

}  // namespace

struct Recorder::Shared : std::enable_shared_from_this<Shared> {
  Shared(base::Executor& c, base::Executor& i, Options o, std::function<State()> s,
         std::function<void()> ch)
      : control(c),
        io(i),
        options(std::move(o)),
        state(std::move(s)),
        changed(std::move(ch)),
        files(options.folder) {}

  void Touch(base::Duration delay) {
    again = true;
    const bool at_once = bytes >= kMuch && counts.problem.empty();
    if (writes || (timer != 0 && (immediate || !at_once))) return;
    immediate = at_once;
    control.Cancel(timer);
    timer = control.PostAfter(at_once ? base::Duration::zero() : delay,
                              base::IfAlive(this, &Shared::Write));
  }

  void Write() {
    timer = 0;
    writes = true;
    again = false;
    State kept = state();
    kept.pending = Texts(lines, 0);
    const std::uint64_t last = lines.empty() ? 0 : lines.back().number;
    io.Post([self = shared_from_this(), kept = std::move(kept), last, limits = options.limits] {
      const std::lock_guard lock(self->writing);
      if (self->ended) return;
      const base::Status done = self->WriteNow(kept, limits);
      if (done.ok() && last > 0) self->written_to = last;
      self->control.Post([self, done, last] { self->Written(done, last); });
    });
  }

  base::Status WriteNow(const State& kept, const RecordFiles::Limits& limits) const {
    TRY(os::WriteFileAtomically(options.state_path, EncodeState(kept), 0600));
    return files.Append(kept.pending, limits);
  }

  void Written(const base::Status& done, std::uint64_t last) {
    writes = false;
    if (!done.ok()) return Failed(done.error());
    if (!counts.problem.empty())
      base::Log(base::kInfo, "usage records can be written again", {{"waited", counts.pending}});
    counts.problem.clear();
    rest = kRest;
    for (; !lines.empty() && lines.front().number <= last; lines.pop_front()) {
      bytes -= lines.front().text.size();
      ++counts.written;
    }
    Count();
    if (again || !lines.empty()) Touch(kRest);
  }

  void Failed(const base::Error& error) {
    ++counts.failures;
    if (counts.problem.empty())
      base::Log(base::kError, "cannot write usage records; keeping them in memory and retrying",
                {{"folder", options.folder}, {"why", error.message()}});
    counts.problem = error.message();
    Count();
    rest = std::min(rest * 2, kRestMost);
    Touch(rest);
  }

  void Count() {
    counts.pending = lines.size();
    changed();
  }

  /// A later line repeats all that a checkpoint says, so checkpoints are dropped first; an end line
  /// is the last one of its holder.
  void Bound() {
    const std::size_t most = counts.problem.empty() ? kMaxBurstBytes : kMaxPendingBytes;
    while (bytes > most && !lines.empty()) {
      auto victim =
          std::ranges::find_if(lines, [](const Line& line) { return line.is_checkpoint; });
      if (victim == lines.end()) victim = lines.begin();
      bytes -= victim->text.size();
      lines.erase(victim);
      ++counts.lost;
    }
  }

  base::Executor& control;
  base::Executor& io;
  Options options;
  const std::function<State()> state;
  const std::function<void()> changed;
  const RecordFiles files;
  std::deque<Line> lines;
  std::size_t bytes = 0;
  std::uint64_t next = 1;
  bool writes = false, again = false;
  base::TimerId timer = 0;  // of the next write
  bool immediate = false;   // the next write is at once
  base::Duration rest = kRest;
  RecordCounts counts;

  std::mutex writing;            // held while files are written
  bool ended = false;            // protected by `writing`
  std::uint64_t written_to = 0;  // number of the last line in the files; protected by `writing`
};

Recorder::Recorder(base::Executor& control, base::Executor& io, Options options,
                   std::function<State()> state, std::function<void()> changed)
    : shared_(std::make_shared<Shared>(control, io, std::move(options), std::move(state),
                                       std::move(changed))) {}

Recorder::~Recorder() {
  if (!shared_->ended) (void)End();
}

base::Result<std::string> Recorder::End() {
  shared_->control.Cancel(shared_->timer);
  const std::lock_guard lock(shared_->writing);
  shared_->ended = true;
  State kept = shared_->state();
  kept.pending = Texts(shared_->lines, shared_->written_to);
  const std::string text = EncodeState(kept);
  const base::Status written = os::WriteFileAtomically(shared_->options.state_path, text, 0600);
  if (written.ok()) return text;
  base::Log(base::kError, "cannot save the usage state for the next agent",
            {{"why", written.error().message()}});
  return written.error();
}

void Recorder::SetLimits(RecordFiles::Limits limits) { shared_->options.limits = limits; }

void Recorder::Recover(const std::vector<std::string>& lines) {
  for (std::string& line : shared_->files.Missing(lines)) Add(std::move(line), false);
}

void Recorder::Add(std::string line, bool is_checkpoint) {
  shared_->bytes += line.size();
  shared_->lines.push_back({std::move(line), shared_->next++, is_checkpoint});
  shared_->Bound();
  shared_->Count();
  Touch();
}

void Recorder::Touch() { shared_->Touch(kRest); }

const RecordCounts& Recorder::counts() const { return shared_->counts; }

void Recorder::Read(
    std::function<void(LineReader files, std::vector<std::string> pending)> function) const {
  shared_->io.Post([self = shared_, lines = shared_->lines, function = std::move(function)] {
    const std::lock_guard lock(self->writing);
    if (!self->ended) function(LineReader(self->files.List()), Texts(lines, self->written_to));
  });
}

}  // namespace penstock::node::usage
