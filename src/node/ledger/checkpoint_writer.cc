#include "node/ledger/checkpoint_writer.h"

#include <utility>

#include "base/log.h"
#include "node/ledger/checkpoint.h"
#include "os/core/file.h"
#include "os/kept_file.h"

namespace penstock::node::ledger {

namespace {

constexpr base::Duration kRest =
    std::chrono::milliseconds(20);  // between two writes, because each waits for the disk twice

}  // namespace

struct LedgerCheckpointWriter::State : std::enable_shared_from_this<State> {
  State(base::Executor& c, base::Executor& i, Ledger& l, std::string p, std::string b)
      : control(c), io(i), ledger(l), path(std::move(p)), boot_id(std::move(b)) {}

  void Changed() {
    dirty = true;
    if (writing || ended) return;
    writing = true;
    control.Post([self = shared_from_this()] { self->Write(); });
  }

  void Write() {
    if (ended) return;
    dirty = false;
    io.Post([self = shared_from_this(), snapshot = ledger.Get()] {
      const base::Status written =
          os::WriteFileAtomically(self->path, EncodeCheckpoint(*snapshot, self->boot_id), 0600);
      self->control.Post([self, written] { self->Written(written); });
    });
  }

  void Written(const base::Status& written) {
    if (!written.ok()) {
      base::Log(base::kError,
                "cannot write the ledger's checkpoint; after a restart, leases are recovered only "
                "from cgroups and the kubelet",
                {{"path", path}, {"why", written.error().message()}});
      control.PostAfter(std::chrono::seconds(10), [self = shared_from_this()] { self->Write(); });
      return;
    }
    control.PostAfter(kRest, [self = shared_from_this()] { self->Rested(); });
  }

  void Rested() {
    writing = false;
    if (dirty) Changed();
  }

  base::Executor& control;
  base::Executor& io;
  Ledger& ledger;
  const std::string path, boot_id;
  bool dirty = false, writing = false, ended = false;
  base::Subscription on_ledger;
};

LedgerCheckpointWriter::LedgerCheckpointWriter(base::Executor& control, base::Executor& io,
                                               Ledger& ledger, std::string path,
                                               std::string boot_id)
    : state_(std::make_shared<State>(control, io, ledger, std::move(path), std::move(boot_id))) {
  state_->on_ledger = ledger.published().Subscribe(
      [state = state_.get(),
       last = std::make_shared<const Snapshot>()](const auto& snapshot) mutable {
        const auto before = std::exchange(last, snapshot);
        if (snapshot->leases == before->leases)
          return;  // outside processes are not written: they are found again
        state->Changed();
      });
}

LedgerCheckpointWriter::~LedgerCheckpointWriter() {
  state_->ended = true;
  state_->on_ledger.Reset();
}

base::Result<std::vector<Lease>> LedgerCheckpointWriter::Load(const std::string& path,
                                                              const std::string& boot_id) {
  return os::LoadKept<std::vector<Lease>>(
      path, "the ledger's checkpoint",
      [&](const std::string& text) { return DecodeCheckpoint(text, boot_id, path); },
      kMostCheckpointBytes);
}

}  // namespace penstock::node::ledger
