// Runs one update at a time; changes during an update cause another one after it.
#include "node/cdi/spec_writer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "api/cdi/transform.h"
#include "base/core/strings.h"
#include "base/lifetime.h"
#include "base/log.h"
#include "node/cdi/modes.h"
#include "os/core/file.h"
#include "os/device_file.h"
#include "os/watch/watch.h"

namespace penstock::node::cdi {
namespace {

/// The installation of a driver changes many files: waits this long after the first change before
/// it updates the specifications.
constexpr base::Duration kGather = std::chrono::milliseconds(100);
/// Folders such as /dev also change for unrelated reasons.
constexpr base::Duration kRest = std::chrono::milliseconds(500);
constexpr base::Duration kRetry = std::chrono::seconds(10);

/// The inputs of an update; owns what it points at.
struct Subject {
  const device::Dialect* dialect = nullptr;
  std::shared_ptr<const device::Driver> driver;
  std::shared_ptr<const inventory::DriverLocation> place;  ///< null: as configured
  std::vector<std::shared_ptr<const device::Facts>> devices;

  Places PlacesFrom(Places configured) const {
    if (place == nullptr) return configured;
    configured.driver_root = place->driver_root;
    configured.host_driver_root = place->host_driver_root;
    configured.dev_root = place->dev_root;
    configured.host_dev_root = place->host_dev_root;
    return configured;
  }

  Input input() const {
    Input input{dialect, driver.get(), {}};
    for (const auto& facts : devices) input.devices.push_back(facts.get());
    return input;
  }
};

/// The specifications of a vendor, and what they were made from.
struct Made {
  std::shared_ptr<const inventory::DriverLocation> place;
  std::vector<api::cdi::Spec> specs;
  std::map<std::string, std::string> ids;  ///< by the names of their devices
  std::set<std::string> folders;
  std::vector<std::string> remarks;
};
using MadeByVendor = std::map<std::string, std::shared_ptr<const Made>, std::less<>>;

/// What an update found and did.
struct Outcome {
  Written written;
  MadeByVendor made;
  std::set<std::string> watched;  ///< folders that the specifications were made from
  std::string roots;              ///< instances of the drivers' roots that these are in
  bool retry = false;
};

/// Collects what an update finds.
class SpecFinder {
 public:
  SpecFinder(const CdiSpecWriter::Settings& settings, const MadeByVendor& before, Outcome& outcome)
      : settings_(settings), options_(settings.options), before_(before), outcome_(outcome) {
    options_.additional_gids = true;  // each specification then loses those that it may not have
  }

  void Add(const Subject& subject) {
    const Input input = subject.input();
    const Places places = subject.PlacesFrom(settings_.places);
    auto made = std::make_shared<Made>(Made{.place = subject.place});
    for (const device::CdiClass& one : subject.dialect->CdiClasses())
      WatchNodes(one, places, *made);
    auto generated = Generate(input, places, options_);
    if (!generated.ok()) {
      outcome_.retry = true;
      if (auto last = LastOfRootThatIsAway(subject)) return Take(subject, std::move(last));
      outcome_.written.problems.push_back(generated.error().message());
      if (generated.error().code() == base::Code::kFailedPrecondition)
        outcome_.written.mismatched[std::string(subject.dialect->vendor())] =
            generated.error().message();
      outcome_.watched.merge(made->folders);
      return;
    }
    if (generated->narrow) made->specs.push_back(std::move(*generated->narrow));
    for (const auto& facts : subject.devices)
      made->ids.emplace(api::cdi::DeviceNameOf(facts->id), facts->id);
    Add(
        *generated,
        [&made](const api::cdi::Device& device) { return made->ids.contains(device.name); }, *made);
    for (const device::CdiClass& one : subject.dialect->CdiClasses()) {
      auto auxiliary = GenerateClass(one, input, places, options_);
      // Classes with the driver's files are for programs that manage the node's devices; the
      // kubelet allocates them no devices.
      if (auxiliary.ok())
        Add(
            *auxiliary, [&one](const api::cdi::Device&) { return !one.with_driver; }, *made);
      if (!auxiliary.ok() && auxiliary.error().code() != base::Code::kNotFound)
        outcome_.written.problems.push_back(auxiliary.error().message());
    }
    Take(subject, std::move(made));
  }

  /// Those that are to be written.
  std::vector<api::cdi::Spec> specs() const {
    std::vector<api::cdi::Spec> specs = specs_;
    if (!settings_.for_kubelet)
      std::erase_if(specs, [](const api::cdi::Spec& spec) { return IsKubeletKind(spec.kind); });
    return specs;
  }

  /// Sets what may be passed to the kubelet: devices of the kinds that are written.
  void Notify(const FolderState& state) {
    std::string texts;
    for (const api::cdi::Spec& spec : specs_) {
      if (!IsKubeletKind(spec.kind)) continue;
      if (settings_.for_kubelet ? !std::ranges::binary_search(state.kinds, spec.kind) : state.retry)
        continue;
      texts += api::cdi::ToJson(spec);
      for (const api::cdi::Device& device : spec.devices) {
        if (const auto id = ids_.find(device.name); id != ids_.end()) {
          outcome_.written.devices.insert(id->second);
        } else {
          outcome_.written.others.insert(spec.kind + "=" + device.name);
        }
      }
    }
    outcome_.written.text = std::hash<std::string>()(texts);
  }

 private:
  /// While a driver's root is being replaced, its module stays loaded and its devices stay with the
  /// kubelet; the inventory says when they go. Null: the subject's root is there, or nothing was
  /// made from it yet.
  std::shared_ptr<const Made> LastOfRootThatIsAway(const Subject& subject) const {
    const auto last = before_.find(subject.dialect->vendor());
    if (last == before_.end() || subject.place == nullptr || *last->second->place != *subject.place)
      return nullptr;
    return os::HasDeviceFiles(subject.place->driver_root) ? nullptr : last->second;
  }

  void Take(const Subject& subject, std::shared_ptr<const Made> made) {
    specs_.insert(specs_.end(), made->specs.begin(), made->specs.end());
    ids_.insert(made->ids.begin(), made->ids.end());
    outcome_.watched.insert(made->folders.begin(), made->folders.end());
    // Several specifications may lack the same file.
    auto& all = outcome_.written.remarks;
    for (const std::string& remark : made->remarks)
      if (std::ranges::find(all, remark) == all.end()) all.push_back(remark);
    if (subject.place != nullptr && subject.place->container)
      outcome_.made[std::string(subject.dialect->vendor())] = std::move(made);
  }

  /// Adds the specification for users unchanged, and for the kubelet with only the devices that it
  /// names.
  void Add(Generated& generated, const std::function<bool(const api::cdi::Device&)>& for_kubelet,
           Made& made) const {
    made.remarks.insert(made.remarks.end(), generated.remarks.begin(), generated.remarks.end());
    made.folders.insert(generated.folders.begin(), generated.folders.end());
    api::cdi::Spec kubelets = generated.spec;
    kubelets.kind = KubeletKind(kubelets.kind);
    std::erase_if(kubelets.devices,
                  [&](const api::cdi::Device& device) { return !for_kubelet(device); });
    LimitGroups(generated.spec, kubelets, made);
    for (api::cdi::Spec* spec : {&generated.spec, &kubelets})
      if (!spec->devices.empty()) made.specs.push_back(std::move(*spec));
  }

  void LimitGroups(api::cdi::Spec& users, api::cdi::Spec& kubelets, Made& made) const {
    const Groups& groups = settings_.groups;
    if (!groups.for_users) api::cdi::TakeGroups(users);
    if (groups.for_kubelet) return;
    const auto taken = api::cdi::TakeGroups(kubelets);
    if (taken.empty() || groups.why_not.empty()) return;
    std::vector<std::string> ids;
    for (const std::uint32_t id : taken) ids.push_back(std::to_string(id));
    made.remarks.push_back(
        "containers of pods that do not run as root do not get the device files' groups " +
        base::Join(ids, ", ") + ": " + groups.why_not);
  }

  static void WatchNodes(const device::CdiClass& one, const Places& places, Made& made) {
    for (const std::string& node : one.nodes)
      if (const std::string folder = places.dev_root + base::FolderOf(node); os::Exists(folder))
        made.folders.insert(folder);
  }

  const CdiSpecWriter::Settings& settings_;
  Options options_;
  const MadeByVendor& before_;
  Outcome& outcome_;
  std::vector<api::cdi::Spec> specs_;
  std::map<std::string, std::string> ids_;  // by the names of their devices
};

Outcome UpdateSpecs(const CdiSpecWriter::Settings& settings, const MadeByVendor& before,
                    const std::vector<Subject>& subjects, const std::set<std::string>& kinds) {
  Outcome outcome;
  outcome.watched.insert(settings.folder);
  SpecFinder finder(settings, before, outcome);
  for (const Subject& subject : subjects) {
    finder.Add(subject);
    if (subject.place != nullptr) outcome.roots += subject.place->instance + " ";
  }
  FolderState state = Write(settings.folder, finder.specs(), kinds);
  finder.Notify(state);
  outcome.written.kinds = std::move(state.kinds);
  auto& problems = outcome.written.problems;
  problems.insert(problems.end(), state.problems.begin(), state.problems.end());
  outcome.retry = outcome.retry || state.retry;
  return outcome;
}

}  // namespace

struct CdiSpecWriter::State : std::enable_shared_from_this<State> {
  State(os::Loop& c, base::Executor& i, inventory::Inventory& inv, device::DialectOf d, Settings s)
      : control(c), io(i), inventory(inv), dialect_of(std::move(d)), settings(std::move(s)) {}

  void Begin() {
    begun = true;
    (void)Changed(*inventory.published().Get());
    Update();
  }

  void DevicesChanged() {
    if (begun && Changed(*inventory.published().Get())) Update();
  }

  /// Also compares which devices are gone, because a device that disappears and returns unchanged
  /// changes no fact.
  bool Changed(const inventory::Snapshot& snapshot) {
    std::set<std::string> now_gone;
    for (const auto& entry : snapshot.devices)
      if (entry.health.state == device::HealthState::kGone) now_gone.insert(entry.facts->id);
    const bool other_facts =
        std::exchange(generation, snapshot.facts_generation) != snapshot.facts_generation;
    return std::exchange(gone, now_gone) != now_gone || other_facts;
  }

  /// Vendors that have a driver, with their present devices; and the kinds of all vendors for which
  /// the kubelet's files are the agent's.
  std::vector<Subject> Subjects(std::set<std::string>& kinds) const {
    const auto snapshot = inventory.published().Get();
    std::vector<Subject> subjects;
    for (const auto& vendor : snapshot->vendors) {
      Subject subject{dialect_of(vendor.vendor), vendor.driver, vendor.place, {}};
      if (subject.dialect == nullptr) continue;
      if (settings.for_kubelet) kinds.merge(KindsOf(*subject.dialect));
      if (subject.driver == nullptr) continue;
      for (const auto& entry : snapshot->devices)
        if (entry.facts->vendor == vendor.vendor &&
            entry.health.state != device::HealthState::kGone)
          subject.devices.push_back(entry.facts);
      if (!subject.devices.empty()) subjects.push_back(std::move(subject));
    }
    return subjects;
  }

  void Update() {
    if (!begun) return;
    if (std::exchange(updating, true)) {
      again = true;
      return;
    }
    std::set<std::string> kinds;
    auto subjects = Subjects(kinds);
    io.Post([self = shared_from_this(), settings = settings, made = made,
             subjects = std::move(subjects), kinds = std::move(kinds)] {
      auto outcome = UpdateSpecs(settings, made, subjects, kinds);
      self->control.Post(
          [self, outcome = std::move(outcome)]() mutable { self->Updated(std::move(outcome)); });
    });
  }

  void Updated(Outcome outcome) {
    updating = false;
    if (ended) return;
    made = std::move(outcome.made);
    // The watches are of what was at their paths when they began, which another root has covered.
    if (std::exchange(roots, outcome.roots) != outcome.roots) {
      watches.clear();
      again = true;  // for what changed before the new ones begin
    }
    Watch(outcome.watched);
    Notify(outcome.written);
    if (outcome.retry) UpdateAfter(kRetry);
    if (*published.Get() != outcome.written) published.Set(std::move(outcome.written));
    if (std::exchange(again, false)) Update();
  }

  void Notify(const Written& now) const {
    const auto before = published.Get();
    if (before->kinds != now.kinds)
      base::Log(base::kInfo, "CDI specifications updated",
                {{"folder", settings.folder}, {"kinds", base::Join(now.kinds, ", ")}});
    for (const std::string& problem : now.problems)
      if (std::ranges::find(before->problems, problem) == before->problems.end())
        base::Log(base::kWarn, "CDI specification not written", {{"why", problem}});
  }

  void Watch(const std::set<std::string>& folders) {
    std::erase_if(watches, [&](const auto& watch) { return !folders.contains(watch.first); });
    for (const std::string& folder : folders)
      if (!watches.contains(folder))
        watches.emplace(
            folder, std::make_unique<os::PathWatch>(control, folder, [this] { FilesChanged(); }));
  }

  /// Updates soon after a quiet period, so that a new driver is noticed soon, and at most twice a
  /// second.
  void FilesChanged() {
    if (std::exchange(due, true)) return;
    const auto rested = control.clock().Now() - last_files;
    control.PostAfter(std::max(kGather, kRest - rested), base::IfAlive(this, [](State& self) {
                        if (self.ended) return;
                        self.due = false;
                        self.last_files = self.control.clock().Now();
                        self.Update();
                      }));
  }

  void UpdateAfter(base::Duration time) {
    if (std::exchange(retrying, true)) return;
    control.PostAfter(time, base::IfAlive(this, [](State& self) {
                        if (self.ended) return;
                        self.retrying = false;
                        self.Update();
                      }));
  }

  os::Loop& control;
  base::Executor& io;
  inventory::Inventory& inventory;
  const device::DialectOf dialect_of;
  Settings settings;
  base::Published<Written> published;
  bool begun = false, updating = false, again = false, due = false, retrying = false, ended = false;
  std::uint64_t generation = 0;
  std::set<std::string> gone;  // of the devices known at the last change
  base::TimePoint last_files{};
  MadeByVendor made;  // of drivers' roots that containers put there
  std::string roots;  // in which the watches are
  std::map<std::string, std::unique_ptr<os::PathWatch>> watches;
};

CdiSpecWriter::CdiSpecWriter(os::Loop& control, base::Executor& io, inventory::Inventory& inventory,
                             device::DialectOf dialect_of, Settings settings)
    : state_(std::make_shared<State>(control, io, inventory, std::move(dialect_of),
                                     std::move(settings))) {}

CdiSpecWriter::~CdiSpecWriter() {
  state_->ended = true;
  state_->watches.clear();
}

void CdiSpecWriter::Begin() { state_->Begin(); }

void CdiSpecWriter::DevicesChanged() { state_->DevicesChanged(); }

void CdiSpecWriter::Configure(Options options, Groups groups) {
  state_->settings.options = std::move(options);
  state_->settings.groups = std::move(groups);
  state_->Update();
}

base::Published<Written>& CdiSpecWriter::published() { return state_->published; }

}  // namespace penstock::node::cdi
