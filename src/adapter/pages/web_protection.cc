// Reads the files on one thread and applies them on another.
#include "adapter/pages/web_protection.h"

#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <utility>

#include "api/compat/web_config.h"
#include "base/log.h"
#include "os/core/file.h"
#include "os/watch/watch.h"

namespace penstock::adapter::pages {

namespace {

using api::compat::WebConfig;
using api::compat::WebTls;
using base::Error;
using base::Result;

constexpr std::size_t kMaxBytes = 1u << 20;
/// A certificate and its key are two files, written one after the other.
constexpr base::Duration kSettle = std::chrono::milliseconds(200);
constexpr base::Duration kEndsSoon = std::chrono::hours(24 * 7);

Result<std::string> ReadNamed(const std::string& file, std::string_view key) {
  auto text = os::ReadFile(file, kMaxBytes);
  if (text.ok()) return text;
  return Error(text.error().code(), text.error().message() + "; it is set by " + std::string(key) +
                                        ", and must be readable by the agent");
}

/// The text, or the file's content, with the name that errors use for it.
Result<protocol::http::Pem> ReadPem(const std::string& text, const std::string& file,
                                    std::string_view key, std::vector<std::string>& files) {
  if (file.empty()) return protocol::http::Pem{text, "tls_server_config." + std::string(key)};
  files.push_back(file);
  ASSIGN(std::string read, ReadNamed(file, "tls_server_config." + std::string(key) + "_file"));
  return protocol::http::Pem{std::move(read), file};
}

protocol::http::ClientAuth Translate(api::compat::WebClientAuth auth) {
  using From = api::compat::WebClientAuth;
  using To = protocol::http::ClientAuth;
  switch (auth) {
    case From::kNone: return To::kNone;
    case From::kRequest: return To::kRequest;
    case From::kRequireAny: return To::kRequireAny;
    case From::kVerifyIfGiven: return To::kVerifyIfGiven;
    case From::kRequireAndVerify: break;
  }
  return To::kRequireAndVerify;
}

protocol::http::TlsVersion Translate(api::compat::WebTlsVersion version) {
  using From = api::compat::WebTlsVersion;
  using To = protocol::http::TlsVersion;
  switch (version) {
    case From::k10: return To::k10;
    case From::k11: return To::k11;
    case From::k12: return To::k12;
    case From::k13: break;
  }
  return To::k13;
}

/// Distinguishes texts from those that were read before. A collision helps no attacker: it would
/// only miss a reload.
std::size_t FingerprintOf(std::initializer_list<std::string_view> texts, std::size_t begin) {
  for (const std::string_view text : texts)
    begin = begin * 1'000'003 + std::hash<std::string_view>()(text);
  return begin;
}

Result<std::shared_ptr<const protocol::http::Tls>> MakeTls(const WebTls& tls,
                                                           std::vector<std::string>& files,
                                                           std::size_t& fingerprint) {
  protocol::http::TlsSettings settings{.client_auth = Translate(tls.client_auth),
                                       .client_allowed_sans = tls.client_allowed_sans,
                                       .least = Translate(tls.min_version),
                                       .most = Translate(tls.max_version),
                                       .ciphers = tls.ciphers,
                                       .groups = tls.groups,
                                       .prefer_server_ciphers = tls.prefer_server_ciphers};
  // Read all files before one of them fails, so that all are followed.
  auto certificate = ReadPem(tls.cert, tls.cert_file, "cert", files);
  auto key = ReadPem(tls.key, tls.key_file, "key", files);
  auto client_ca = ReadPem(tls.client_ca, tls.client_ca_file, "client_ca", files);
  for (const auto* pem : {&certificate, &key, &client_ca})
    if (!pem->ok()) return pem->error();
  settings.certificate = *std::move(certificate);
  settings.key = *std::move(key);
  settings.client_ca = *std::move(client_ca);
  fingerprint = FingerprintOf(
      {settings.certificate.text, settings.key.text, settings.client_ca.text}, fingerprint);
  return protocol::http::Tls::Make(settings);
}

void RemarkOnTimes(ReadProtection& read, base::WallTime now) {
  const std::string name = "the certificate";
  if (read.certificate_ends <= now) {
    read.remarks.push_back(name + " expired at " + base::FormatTime(read.certificate_ends) +
                           "; clients reject it: renew it");
  } else if (read.certificate_ends - now < kEndsSoon) {
    read.remarks.push_back(name + " expires at " + base::FormatTime(read.certificate_ends) +
                           "; renew it");
  }
  if (read.certificate_begins > now)
    read.remarks.push_back(name + " is not valid before " +
                           base::FormatTime(read.certificate_begins) +
                           "; clients reject it until then");
}

}  // namespace

Result<ReadProtection> LoadProtection(const std::string& file, base::WallTime now,
                                      std::vector<std::string>& files) {
  files = {file};
  ASSIGN(const std::string text, ReadNamed(file, "http.webConfigFile"));
  ASSIGN(WebConfig config, api::compat::ParseWebConfig(text, file));
  ReadProtection read{.remarks = std::move(config.remarks),
                      .fingerprint = FingerprintOf({text}, 0)};
  protocol::http::Protection& protection = read.protection;
  if (config.tls) {
    ASSIGN(protection.tls, MakeTls(*config.tls, files, read.fingerprint));
    read.certificate_begins = protection.tls->certificate_begins();
    read.certificate_ends = protection.tls->certificate_ends();
    RemarkOnTimes(read, now);
  }
  if (!config.users.empty() || !config.tokens.empty()) {
    ASSIGN(protection.secrets, protocol::http::Secrets::Load(!config.users.empty()));
  }
  protection.credentials = {.users = std::move(config.users), .tokens = std::move(config.tokens)};
  protection.fields = std::move(config.headers);
  if (config.rate_limit)
    protection.rate =
        protocol::http::RequestRate{.interval = config.rate_limit->interval,
                                    .burst = static_cast<double>(config.rate_limit->burst)};
  return read;
}

struct WebProtection::State : std::enable_shared_from_this<WebProtection::State> {
  State(os::Loop& l, base::Executor& i, std::string f, Callbacks c)
      : loop(l), io(i), file(std::move(f)), callbacks(std::move(c)) {
    status.file = file;
  }

  void Soon();
  void Read();
  void Done(Result<ReadProtection> read, const std::vector<std::string>& files);
  void Apply(ReadProtection read);
  void Refuse(const Error& error);
  bool Follow(const std::vector<std::string>& files);

  os::Loop& loop;
  base::Executor& io;
  const std::string file;
  const Callbacks callbacks;
  ProtectionStatus status;
  std::map<std::string, std::unique_ptr<os::PathWatch>> watches;
  std::size_t fingerprint = 0;  // of the configuration in force
  base::TimerId timer = 0;
  bool reading = false, again = false;
};

/// A file has changed: waits for further changes that come with it.
void WebProtection::State::Soon() {
  loop.Cancel(timer);
  timer = loop.PostAfter(kSettle, [this] { Read(); });
}

void WebProtection::State::Read() {
  if (reading) {
    again = true;
    return;
  }
  reading = true;
  io.Post([weak = weak_from_this(), &executor = loop, path = file] {
    std::vector<std::string> files;
    auto read = LoadProtection(path, executor.clock().Wall(), files);
    executor.Post([weak, read = std::move(read), files = std::move(files)] {
      if (const auto state = weak.lock()) state->Done(read, files);
    });
  });
}

void WebProtection::State::Done(Result<ReadProtection> read,
                                const std::vector<std::string>& files) {
  reading = false;
  // A file may have changed after it was read and before it was followed.
  if (Follow(files)) Soon();
  if (!read.ok()) {
    if (read.error().message() != status.problem) Refuse(read.error());
  } else if (!status.in_force || !status.problem.empty() || read->fingerprint != fingerprint) {
    Apply(*std::move(read));
  }
  callbacks.notify(status);
  if (std::exchange(again, false)) Read();
}

void WebProtection::State::Apply(ReadProtection read) {
  fingerprint = read.fingerprint;
  status.in_force = true;
  status.tls = read.protection.tls != nullptr;
  status.credentials = read.protection.secrets != nullptr;
  status.since = loop.clock().Wall();
  status.certificate_ends = read.certificate_ends;
  status.problem.clear();
  status.remarks = std::move(read.remarks);
  ++status.applied;
  base::Log(base::kInfo, "web configuration applied",
            {{"file", file}, {"tls", status.tls}, {"credentials", status.credentials}});
  for (const std::string& remark : status.remarks)
    base::Log(base::kWarn, "web configuration remark", {{"remark", remark}});
  callbacks.protect(std::move(read.protection));
}

void WebProtection::State::Refuse(const Error& error) {
  status.problem = error.message();
  ++status.refused;
  base::Log(base::kError, "web configuration rejected; the previous one stays in force",
            {{"file", file}, {"why", error.message()}});
}

/// Follows exactly these files. True if one of them was not followed before.
bool WebProtection::State::Follow(const std::vector<std::string>& files) {
  bool fresh = false;
  std::map<std::string, std::unique_ptr<os::PathWatch>> next;
  for (const std::string& path : files) {
    auto known = watches.extract(path);
    fresh = fresh || !known;
    next[path] = known ? std::move(known.mapped())
                       : std::make_unique<os::PathWatch>(loop, path, [this] { Soon(); });
  }
  watches = std::move(next);
  return fresh;
}

WebProtection::WebProtection(os::Loop& loop, base::Executor& io, std::string file, Until until,
                             Callbacks callbacks)
    : state_(std::make_shared<State>(loop, io, std::move(file), std::move(callbacks))) {
  if (until == Until::kClosed)
    state_->callbacks.protect(
        {.closed = "no valid web configuration has been read yet; see the agent's log"});
  state_->callbacks.notify(state_->status);
  loop.Post([weak = std::weak_ptr(state_)] {
    if (const auto state = weak.lock()) {
      (void)state->Follow({state->file});
      state->Read();
    }
  });
}

WebProtection::~WebProtection() {
  state_->loop.Cancel(state_->timer);
  state_->watches.clear();
}

void WebProtection::Reload() { state_->Read(); }

}  // namespace penstock::adapter::pages
