// Accepts known credentials at once; checks others on another executor and then remembers them by a
// keyed hash.
#include "protocol/http/authenticator.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include <sys/random.h>

#include "base/base64.h"
#include "base/core/strings.h"

namespace penstock::protocol::http {

namespace {

/// An unknown user's password is compared with a hash that no password has, at the highest cost of
/// the known hashes.
constexpr std::string_view kUnknownUserSalt = "abcdefghijklmnopqrstuu";

struct Password {
  std::string user, password;
};

std::optional<Password> ReadBasic(std::string_view text) {
  const auto decoded = base::DecodeBase64(base::Trim(text));
  if (!decoded) return std::nullopt;
  const std::size_t colon = decoded->find(':');
  if (colon == std::string::npos) return std::nullopt;
  return Password{decoded->substr(0, colon), decoded->substr(colon + 1)};
}

/// "Basic YTpi" to "YTpi"; ignores the case of the scheme.
std::optional<std::string_view> After(std::string_view scheme, std::string_view authorization) {
  if (authorization.size() <= scheme.size() || authorization[scheme.size()] != ' ')
    return std::nullopt;
  if (base::ToLower(authorization.substr(0, scheme.size())) != scheme) return std::nullopt;
  return base::Trim(authorization.substr(scheme.size() + 1));
}

Digest RandomKey() {
  Digest key{};
  for (std::size_t got = 0; got < key.size();) {
    const ssize_t count = ::getrandom(key.data() + got, key.size() - got, 0);
    if (count > 0) got += static_cast<std::size_t>(count);
  }
  return key;
}

/// "12" of "$2y$12$salt...".
std::string_view Cost(std::string_view bcrypt) { return bcrypt.substr(4, 2); }

}  // namespace

struct Authenticator::State : std::enable_shared_from_this<Authenticator::State> {
  State(base::Executor& l, base::Executor& w, std::shared_ptr<const Secrets> s, PageCredentials c)
      : loop(l), work(w), secrets(std::move(s)), credentials(std::move(c)), key(RandomKey()) {}

  bool IsToken(std::string_view token) const;
  void CheckPassword(const Password& password, const std::string& address,
                     std::function<void(AuthVerdict)> notify);
  void Compared(const Digest& seen, bool right, const std::string& address,
                const std::function<void(AuthVerdict)>& notify);
  AuthVerdict Fail(const std::string& address);

  base::Executor& loop;
  base::Executor& work;
  const std::shared_ptr<const Secrets> secrets;
  const PageCredentials credentials;
  const Digest key;
  std::string dummy_hash;
  std::vector<std::string> challenges;
  std::deque<Digest> known;  // credentials that were right, latest first
  LoginThrottle failures;
  std::size_t waiting = 0;
};

Authenticator::Authenticator(base::Executor& loop, base::Executor& work,
                             std::shared_ptr<const Secrets> secrets, PageCredentials credentials)
    : state_(std::make_shared<State>(loop, work, std::move(secrets), std::move(credentials))) {
  std::string_view highest = "04";
  for (const auto& [user, hash] : state_->credentials.users)
    highest = std::max(highest, Cost(hash));
  state_->dummy_hash =
      "$2b$" + std::string(highest) + "$" + std::string(kUnknownUserSalt) + std::string(31, '.');
  if (!state_->credentials.users.empty())
    state_->challenges.push_back(R"(Basic realm="penstock", charset="UTF-8")");
  if (!state_->credentials.tokens.empty())
    state_->challenges.push_back(R"(Bearer realm="penstock")");
}

Authenticator::~Authenticator() = default;

const std::vector<std::string>& Authenticator::challenges() const { return state_->challenges; }

void Authenticator::Check(const std::string& authorization, const std::string& address,
                          std::function<void(AuthVerdict)> notify) {
  // Missing credentials are not a failure: the answer says which are needed.
  if (authorization.empty()) return notify(AuthVerdict::kDenied);
  if (const auto token = After("bearer", authorization);
      token && !state_->credentials.tokens.empty()) {
    if (state_->IsToken(*token)) return notify(AuthVerdict::kAllowed);
    return notify(state_->Fail(address));
  }
  if (const auto basic = After("basic", authorization); basic && !state_->credentials.users.empty())
    if (const auto password = ReadBasic(*basic))
      return state_->CheckPassword(*password, address, std::move(notify));
  notify(state_->Fail(address));
}

/// Compares with all tokens, so that the time taken reveals nothing.
bool Authenticator::State::IsToken(std::string_view token) const {
  const Digest digest = secrets->Hash(token);
  bool found = false;
  for (const auto& [name, expected] : credentials.tokens) found = Equal(digest, expected) || found;
  return found;
}

AuthVerdict Authenticator::State::Fail(const std::string& address) {
  const base::TimePoint now = loop.clock().Now();
  if (!failures.MayTry(address, now)) return AuthVerdict::kLimited;
  failures.Count(address, now);
  return AuthVerdict::kDenied;
}

void Authenticator::State::CheckPassword(const Password& password, const std::string& address,
                                         std::function<void(AuthVerdict)> notify) {
  const auto user = credentials.users.find(password.user);
  const std::string hash = user != credentials.users.end() ? user->second : dummy_hash;
  const Digest seen = secrets->Hash(
      std::to_string(password.user.size()) + ":" + password.user + password.password, key);
  if (std::ranges::find_if(known, [&](const Digest& one) { return Equal(one, seen); }) !=
      known.end())
    return notify(AuthVerdict::kAllowed);
  if (!failures.MayTry(address, loop.clock().Now())) return notify(AuthVerdict::kLimited);
  if (waiting >= kMaxWaiting) return notify(AuthVerdict::kBusy);
  ++waiting;
  const bool exists = user != credentials.users.end();
  work.Post([self = shared_from_this(), text = password.password, hash, exists, seen, address,
             then = std::move(notify)] {
    const bool right = self->secrets->IsPassword(text, hash) && exists;
    self->loop.Post(
        [self, seen, right, address, then] { self->Compared(seen, right, address, then); });
  });
}

void Authenticator::State::Compared(const Digest& seen, bool right, const std::string& address,
                                    const std::function<void(AuthVerdict)>& notify) {
  --waiting;
  if (!right) return notify(Fail(address));
  if (known.size() >= kMaxRemembered) known.pop_back();
  known.push_front(seen);
  notify(AuthVerdict::kAllowed);
}

}  // namespace penstock::protocol::http
