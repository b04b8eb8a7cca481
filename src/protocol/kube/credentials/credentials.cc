#include "protocol/kube/credentials/credentials.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include "base/base64.h"
#include "base/core/strings.h"
#include "base/log.h"
#include "os/core/file.h"
#include "protocol/kube/credentials/exec_credential.h"
#include "protocol/kube/credentials/exec_run.h"

namespace penstock::protocol::kube {
namespace {

constexpr base::Duration kTokenAge = std::chrono::minutes(1);
constexpr base::Duration kBeforeExpiry = std::chrono::seconds(10);
constexpr std::size_t kMaxBytes = 1u << 20;

/// A file's content, or content given inline.
class Source {
 public:
  explicit Source(Material material) : material_(std::move(material)) {}

  bool none() const { return material_.empty(); }
  const std::string& text() const { return text_; }
  void Forget() { read_.reset(); }

  // Whether the content has changed; an error if there is none at all.
  base::Result<bool> Refresh(base::TimePoint now, std::optional<base::Duration> most_age) {
    if (material_.file.empty()) {
      const bool first = !read_;
      read_ = Seen{};
      if (first) text_ = material_.data;
      return first;
    }
    Seen seen = StatFile(material_.file);
    seen.at = now;
    if (read_ && read_->Same(seen) && (!most_age || now - read_->at < *most_age)) return false;
    auto content = os::ReadFile(material_.file, kMaxBytes);
    if (!content.ok() && material_.data.empty() && text_.empty()) return content.error();
    if (!content.ok()) {
      base::Log(base::kWarn, "cannot read a credential file; its last content remains in use",
                {{"file", material_.file}, {"error", content.error().message()}});
      // A token from the file takes precedence over the inline one, which is used until a file was
      // read.
      if (text_.empty()) content = material_.data;
    }
    read_ = seen;
    if (!content.ok() || *content == text_) return false;
    text_ = *std::move(content);
    return true;
  }

 private:
  struct Seen {
    dev_t device = 0;
    ino_t inode = 0;
    off_t size = -1;
    timespec changed{};
    base::TimePoint at{};
    bool Same(const Seen& other) const {
      return device == other.device && inode == other.inode && size == other.size &&
             changed.tv_sec == other.changed.tv_sec && changed.tv_nsec == other.changed.tv_nsec;
    }
  };

  static Seen StatFile(const std::string& file) {
    Seen seen;
    struct stat status {};
    if (::stat(file.c_str(), &status) != 0) return seen;
    seen.device = status.st_dev;
    seen.inode = status.st_ino;
    seen.size = status.st_size;
    seen.changed = status.st_mtim;
    return seen;
  }

  Material material_;
  std::string text_;
  std::optional<Seen> read_;
};

bool IsHeaderValue(const std::string& text) {
  return std::ranges::all_of(
      text, [](char c) { return static_cast<unsigned char>(c) > ' ' && c != 0x7f; });
}

}  // namespace

struct Credentials::State : std::enable_shared_from_this<State> {
  State(os::Loop& the_loop, ClusterAccess the_access)
      : loop(the_loop),
        access(std::move(the_access)),
        authority(access.authority),
        certificate(access.client_certificate),
        key(access.client_key),
        token(access.token) {}

  // Like kubectl, sends no secret over an unencrypted connection.
  bool plain() const { return access.server.starts_with("http://"); }

  base::Status Refresh();
  base::Result<Credential> Make();
  bool ExecIsFresh() const;
  void RunPlugin();
  void PluginEnded(base::Result<std::string> output);

  os::Loop& loop;
  const ClusterAccess access;
  Source authority, certificate, key, token;
  std::optional<ExecCredential> exec;
  std::unique_ptr<ExecRun> running;
  std::vector<Done> waiting;
  std::shared_ptr<const ClientIdentity> identity;
  std::uint64_t generation = 1;
};

base::Status Credentials::State::Refresh() {
  const base::TimePoint now = loop.clock().Now();
  bool changed = identity == nullptr;
  for (Source* source : {&authority, &certificate, &key}) {
    if (source->none()) continue;
    ASSIGN(const bool is_new, source->Refresh(now, std::nullopt));
    changed = changed || is_new;
  }
  if (!token.none()) { ASSIGN([[maybe_unused]] const bool is_new, token.Refresh(now, kTokenAge)); }
  if (exec && !exec->certificate.empty())
    changed = changed || identity->certificate != exec->certificate || identity->key != exec->key;
  if (!changed) return {};
  const bool by_plugin = exec && !exec->certificate.empty();
  identity = std::make_shared<const ClientIdentity>(
      ClientIdentity{authority.text(), by_plugin ? exec->certificate : certificate.text(),
                     by_plugin ? exec->key : key.text()});
  return {};
}

base::Result<Credential> Credentials::State::Make() {
  TRY(Refresh());
  Credential credential{identity, "", generation};
  if (plain()) return credential;
  std::string bearer = std::string(base::Trim(token.text()));
  if (exec && !exec->token.empty()) bearer = base::Trim(exec->token);
  if (!IsHeaderValue(bearer)) {
    return Error(Code::kUnauthenticated,
                 "the token" + (access.token.file.empty() ? "" : " in " + access.token.file) +
                     " is invalid: it contains blanks");
  }
  if (!bearer.empty()) {
    credential.authorization = "Bearer " + bearer;
  } else if (!access.user.empty()) {
    credential.authorization = "Basic " + base::EncodeBase64(access.user + ":" + access.password);
  } else if (!access.token.empty()) {
    return Error(
        Code::kUnauthenticated,
        "the token" + (access.token.file.empty() ? "" : " in " + access.token.file) + " is empty");
  }
  return credential;
}

bool Credentials::State::ExecIsFresh() const {
  return exec && (!exec->expires || loop.clock().Wall() + kBeforeExpiry < *exec->expires);
}

void Credentials::State::RunPlugin() {
  const ExecPlugin& plugin = access.exec.front();
  std::string content;
  if (plugin.provide_cluster_info && !authority.none() &&
      authority.Refresh(loop.clock().Now(), std::nullopt).ok())
    content = authority.text();
  // The CA that was read here must still become part of the identity.
  identity.reset();
  exec.reset();
  running = std::make_unique<ExecRun>(
      loop, plugin, ExecEnvironment(access, plugin, content),
      [this](base::Result<std::string> output) { PluginEnded(std::move(output)); });
}

void Credentials::State::PluginEnded(base::Result<std::string> output) {
  const auto alive = shared_from_this();
  running.reset();
  auto parsed = output.ok() ? ParseExecCredential(*output, access.exec.front())
                            : base::Result<ExecCredential>(output.error());
  if (parsed.ok() && parsed->expires && *parsed->expires <= loop.clock().Wall()) {
    parsed = Error(Code::kUnauthenticated, "the exec plugin " + access.exec.front().command +
                                               " printed a credential that has expired");
  }
  if (parsed.ok()) exec = *parsed;
  const base::Result<Credential> credential =
      parsed.ok() ? Make() : base::Result<Credential>(parsed.error());
  for (const Done& done : std::exchange(waiting, {})) done(credential);
}

Credentials::Credentials(os::Loop& loop, ClusterAccess access)
    : state_(std::make_shared<State>(loop, std::move(access))) {}

Credentials::~Credentials() {
  state_->waiting.clear();
  state_->running.reset();
}

void Credentials::Get(Done done) {
  const auto alive = state_;
  if (state_->plain() || state_->access.exec.empty() || state_->ExecIsFresh())
    return done(state_->Make());
  state_->waiting.push_back(std::move(done));
  if (state_->running == nullptr) state_->RunPlugin();
}

void Credentials::Refused(std::uint64_t generation) {
  if (generation != state_->generation) return;
  ++state_->generation;
  state_->exec.reset();
  for (Source* source : {&state_->authority, &state_->certificate, &state_->key, &state_->token})
    source->Forget();
}

}  // namespace penstock::protocol::kube
