// A verdict on credentials: what is known at once, and what is worked out elsewhere and then remembered by a keyed hash.
#include "edge/http/guard.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include <sys/random.h>

#include "base/base64.h"
#include "base/core/strings.h"

namespace penstock::edge::http {

namespace {

/// What an unknown user's password is compared with: a hash of nobody's password, at the highest cost of those that are known.
constexpr std::string_view kNobodySalt = "abcdefghijklmnopqrstuu";

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

/// "Basic YTpi" to "YTpi"; the scheme is compared without case.
std::optional<std::string_view> After(std::string_view scheme, std::string_view authorization) {
  if (authorization.size() <= scheme.size() || authorization[scheme.size()] != ' ') return std::nullopt;
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

/// "$2y$12$" of "$2y$12$salt...".
std::string_view Cost(std::string_view bcrypt) { return bcrypt.substr(4, 2); }

}  // namespace

struct Guard::State : std::enable_shared_from_this<Guard::State> {
  State(base::Executor& l, base::Executor& w, std::shared_ptr<const Secrets> s, Credentials c)
      : loop(l), work(w), secrets(std::move(s)), credentials(std::move(c)), key(RandomKey()) {}

  bool IsToken(std::string_view token) const;
  void CheckPassword(const Password& password, const std::string& address, std::function<void(Verdict)> tell);
  void Compared(const Digest& seen, bool right, const std::string& address, const std::function<void(Verdict)>& tell);
  Verdict Fail(const std::string& address);

  base::Executor& loop;
  base::Executor& work;
  const std::shared_ptr<const Secrets> secrets;
  const Credentials credentials;
  const Digest key;
  std::string nobody;
  std::vector<std::string> challenges;
  std::deque<Digest> known;  // credentials that were right, the latest first
  Failures failures;
  std::size_t waiting = 0;
};

Guard::Guard(base::Executor& loop, base::Executor& work, std::shared_ptr<const Secrets> secrets, Credentials credentials)
    : state_(std::make_shared<State>(loop, work, std::move(secrets), std::move(credentials))) {
  std::string_view highest = "04";
  for (const auto& [user, hash] : state_->credentials.users) highest = std::max(highest, Cost(hash));
  state_->nobody = "$2b$" + std::string(highest) + "$" + std::string(kNobodySalt) + std::string(31, '.');
  if (!state_->credentials.users.empty()) state_->challenges.push_back(R"(Basic realm="penstock", charset="UTF-8")");
  if (!state_->credentials.tokens.empty()) state_->challenges.push_back(R"(Bearer realm="penstock")");
}

Guard::~Guard() = default;

const std::vector<std::string>& Guard::challenges() const { return state_->challenges; }

void Guard::Check(const std::string& authorization, const std::string& address, std::function<void(Verdict)> tell) {
  // Who brings nothing is told what to bring; that is no failure.
  if (authorization.empty()) return tell(Verdict::kDenied);
  if (const auto token = After("bearer", authorization); token && !state_->credentials.tokens.empty()) {
    if (state_->IsToken(*token)) return tell(Verdict::kAllowed);
    return tell(state_->Fail(address));
  }
  if (const auto basic = After("basic", authorization); basic && !state_->credentials.users.empty())
    if (const auto password = ReadBasic(*basic)) return state_->CheckPassword(*password, address, std::move(tell));
  tell(state_->Fail(address));
}

/// Looks at all of them: how long it takes says nothing.
bool Guard::State::IsToken(std::string_view token) const {
  const Digest digest = secrets->Hash(token);
  bool found = false;
  for (const auto& [name, expected] : credentials.tokens) found = Equal(digest, expected) || found;
  return found;
}

Verdict Guard::State::Fail(const std::string& address) {
  const base::TimePoint now = loop.clock().Now();
  if (!failures.MayTry(address, now)) return Verdict::kLimited;
  failures.Count(address, now);
  return Verdict::kDenied;
}

void Guard::State::CheckPassword(const Password& password, const std::string& address, std::function<void(Verdict)> tell) {
  const auto user = credentials.users.find(password.user);
  const std::string hash = user != credentials.users.end() ? user->second : nobody;
  const Digest seen = secrets->Hash(std::to_string(password.user.size()) + ":" + password.user + password.password, key);
  if (std::find_if(known.begin(), known.end(), [&](const Digest& one) { return Equal(one, seen); }) != known.end())
    return tell(Verdict::kAllowed);
  if (!failures.MayTry(address, loop.clock().Now())) return tell(Verdict::kLimited);
  if (waiting >= kMostWaiting) return tell(Verdict::kBusy);
  ++waiting;
  const bool exists = user != credentials.users.end();
  work.Post([self = shared_from_this(), text = password.password, hash, exists, seen, address, then = std::move(tell)] {
    const bool right = self->secrets->IsPassword(text, hash) && exists;
    self->loop.Post([self, seen, right, address, then] { self->Compared(seen, right, address, then); });
  });
}

void Guard::State::Compared(const Digest& seen, bool right, const std::string& address, const std::function<void(Verdict)>& tell) {
  --waiting;
  if (!right) return tell(Fail(address));
  if (known.size() >= kMostKnown) known.pop_back();
  known.push_front(seen);
  tell(Verdict::kAllowed);
}

}  // namespace penstock::edge::http
