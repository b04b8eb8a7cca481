// Does one write at a time; a change during a write is written after it.
#include "adapter/cluster/features_file.h"

#include <utility>

#include "base/backoff.h"
#include "base/core/strings.h"
#include "base/log.h"
#include "node/label/features_file.h"
#include "os/core/file.h"
#include "os/marker_files.h"

namespace penstock::adapter::cluster {
namespace {

/// NFD's worker reads the file and may run as another user.
constexpr unsigned kMode = 0644;

base::Status Update(const std::string& path, const std::string& text) {
  const auto there = os::ReadFile(path);
  if (there.ok() && *there == text) return {};
  TRY(os::MakeDirectories(base::FolderOf(path)));
  return os::WriteFileAtomically(path, text, kMode);
}

}  // namespace

struct FeaturesFile::State : std::enable_shared_from_this<State> {
  State(base::Executor& c, base::Executor& i, std::string p)
      : control(c), io(i), path(std::move(p)) {}

  void Show(const node::label::LabelSet& labels) {
    text = node::label::FeaturesText(labels);
    wanted = true;
    control.Cancel(std::exchange(timer, 0));
    Write();
  }

  void Write() {
    if (busy || !wanted || ended) return;
    busy = true;
    wanted = false;
    io.Post([self = shared_from_this(), now = text] {
      const base::Status written = Update(self->path, now);
      self->control.Post([self, written] { self->Written(written); });
    });
  }

  void Written(const base::Status& written) {
    busy = false;
    if (ended) return;
    if (written.ok()) {
      problem.clear();
      backoff.Reset();
      return Write();
    }
    problem = written.error().message();
    base::Log(base::kWarn, "cannot write the labels file for NFD",
              {{"path", path}, {"why", problem}});
    wanted = true;
    timer = control.PostAfter(backoff.Next(), [self = shared_from_this()] { self->Write(); });
  }

  base::Executor& control;
  base::Executor& io;
  const std::string path;
  std::string text, problem;
  bool wanted = false, busy = false, ended = false;
  base::TimerId timer = 0;
  base::Backoff backoff{std::chrono::seconds(1), std::chrono::minutes(1)};
  base::Subscription on_labels;
};

FeaturesFile::FeaturesFile(base::Executor& control, base::Executor& io, node::label::Labels& labels,
                           std::string path)
    : state_(std::make_shared<State>(control, io, std::move(path))) {
  state_->on_labels =
      labels.published().Subscribe([state = state_.get()](const auto& set) { state->Show(*set); });
  if (labels.begun()) state_->Show(*labels.published().Get());
}

FeaturesFile::~FeaturesFile() {
  state_->ended = true;
  state_->on_labels.Reset();
  state_->control.Cancel(state_->timer);
}

const std::string& FeaturesFile::problem() const { return state_->problem; }

void RemoveFeaturesFile(base::Executor& io, std::string path, std::string now) {
  io.Post([path = std::move(path), now = std::move(now)] {
    if (!os::Exists(path) || os::IsSame(path, now)) return;
    const base::Status removed = os::UpdateMarkers(base::FolderOf(path), {}, {base::LeafOf(path)});
    if (removed.ok())
      base::Log(base::kInfo, "former labels file for NFD removed", {{"path", path}});
    else
      base::Log(base::kWarn, "cannot remove the former labels file for NFD",
                {{"path", path}, {"why", removed.error().message()}});
  });
}

}  // namespace penstock::adapter::cluster
