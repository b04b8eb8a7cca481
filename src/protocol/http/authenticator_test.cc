#include "protocol/http/authenticator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/testing/manual_executor.h"

namespace penstock::protocol::http {
namespace {

using ::testing::ElementsAre;
using namespace std::chrono_literals;

/// Derives hashes from the text's length and sum; records checked passwords with their hashes.
class FakeSecrets final : public Secrets {
 public:
  Digest Hash(std::string_view text) const override { return Hash(text, {}); }
  Digest Hash(std::string_view text, const Digest& key) const override {
    Digest digest = key;
    for (std::size_t i = 0; i < text.size(); ++i)
      digest[i % digest.size()] =
          static_cast<std::uint8_t>(digest[i % digest.size()] * 31 + text[i]);
    return digest;
  }
  bool IsPassword(std::string_view password, const std::string& bcrypt) const override {
    asked.push_back(bcrypt);
    return bcrypt.substr(7, password.size()) == password;
  }
  mutable std::vector<std::string> asked;
};

const std::string kHash = "$2y$12$rightrightrightrightrightrightrightrightrightrightrig";

class GuardTest : public testing::Test {
 protected:
  void SetUp() override {
    Make({.users = {{"alice", kHash}}, .tokens = {{"scraper", secrets_->Hash("token")}}});
  }
  void Make(PageCredentials credentials) {
    guard_ = std::make_unique<Authenticator>(loop_, work_, secrets_, std::move(credentials));
  }

  static std::string Basic(const std::string& user, const std::string& password) {
    return "Basic " + base::EncodeBase64(user + ":" + password);
  }
  void Ask(const std::string& authorization, const std::string& address = "1.2.3.4") {
    guard_->Check(authorization, address,
                  [this](AuthVerdict verdict) { verdicts_.push_back(verdict); });
  }
  AuthVerdict Settle() {
    work_.RunUntilIdle();
    loop_.RunUntilIdle();
    return verdicts_.back();
  }
  AuthVerdict Check(const std::string& authorization, const std::string& address = "1.2.3.4") {
    Ask(authorization, address);
    return Settle();
  }

  base::ManualExecutor loop_, work_;
  std::shared_ptr<FakeSecrets> secrets_ = std::make_shared<FakeSecrets>();
  std::unique_ptr<Authenticator> guard_;
  std::vector<AuthVerdict> verdicts_;
};

TEST_F(GuardTest, LetsThoseInWhoKnowAPasswordOrAToken) {
  EXPECT_EQ(Check(Basic("alice", "right")), AuthVerdict::kAllowed);
  EXPECT_EQ(Check("Bearer token"), AuthVerdict::kAllowed);
  EXPECT_EQ(Check("bearer   token"), AuthVerdict::kAllowed) << "the scheme is case-insensitive";
  for (const std::string& wrong :
       {Basic("alice", "wrong"), Basic("bob", "right"), std::string("Bearer tokens"),
        std::string("Bearer"), std::string("Basic !!"), std::string("Basic YWxpY2U="),
        std::string("Digest x")})
    EXPECT_EQ(Check(wrong), AuthVerdict::kDenied) << wrong;
  EXPECT_EQ(Check(""), AuthVerdict::kDenied);
}

TEST_F(GuardTest, SaysWhatToBring) {
  EXPECT_THAT(guard_->challenges(), ElementsAre(testing::StartsWith("Basic realm="),
                                                testing::StartsWith("Bearer realm=")));
  Make({.users = {{"alice", kHash}}});
  EXPECT_THAT(guard_->challenges(), ElementsAre(testing::StartsWith("Basic")));
  EXPECT_EQ(Check("Bearer token"), AuthVerdict::kDenied);
}

TEST_F(GuardTest, LooksAtAPasswordOnceUntilItIsWrong) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Check(Basic("alice", "right")), AuthVerdict::kAllowed);
  EXPECT_EQ(secrets_->asked.size(), 1u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Check(Basic("alice", "wrong")), AuthVerdict::kDenied);
  EXPECT_EQ(secrets_->asked.size(), 4u);
  EXPECT_EQ(Check(Basic("alic", "eright")), AuthVerdict::kDenied)
      << "a different user, although the concatenated letters are the same";
}

TEST_F(GuardTest, TakesAsLongForAnUnknownUser) {
  EXPECT_EQ(Check(Basic("nobody", "right")), AuthVerdict::kDenied);
  ASSERT_EQ(secrets_->asked.size(), 1u);
  EXPECT_EQ(secrets_->asked[0].substr(0, 7), "$2b$12$") << "the highest cost of all known users";
  EXPECT_EQ(secrets_->asked[0].size(), 60u);
  EXPECT_EQ(Check(Basic("nobody", secrets_->asked[0].substr(7, 10))), AuthVerdict::kDenied)
      << "denied even if the password matches the dummy hash";
}

TEST_F(GuardTest, StopsAnAddressThatFailsTooOftenButNotWhoIsKnown) {
  EXPECT_EQ(Check(Basic("alice", "right")), AuthVerdict::kAllowed);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Check(Basic("alice", "wrong")), AuthVerdict::kDenied);
  const std::size_t looked = secrets_->asked.size();
  EXPECT_EQ(Check(Basic("alice", "wrong")), AuthVerdict::kLimited);
  EXPECT_EQ(Check("Bearer wrong"), AuthVerdict::kLimited);
  EXPECT_EQ(secrets_->asked.size(), looked) << "no hash was computed";
  EXPECT_EQ(Check(Basic("alice", "right")), AuthVerdict::kAllowed);
  EXPECT_EQ(Check("Bearer token"), AuthVerdict::kAllowed);
  EXPECT_EQ(Check(Basic("alice", "wrong"), "5.6.7.8"), AuthVerdict::kDenied)
      << "other addresses have their own budget of attempts";
  loop_.Advance(6s);
  EXPECT_EQ(Check(Basic("alice", "wrong")), AuthVerdict::kDenied);
  EXPECT_EQ(Check(Basic("alice", "wrong")), AuthVerdict::kLimited);
}

TEST_F(GuardTest, LetsOnlySoManyWait) {
  for (std::size_t i = 0; i < Authenticator::kMaxWaiting; ++i)
    Ask(Basic("alice", "wrong"), std::to_string(i));
  EXPECT_TRUE(verdicts_.empty());
  Ask(Basic("alice", "right"));
  EXPECT_THAT(verdicts_, ElementsAre(AuthVerdict::kBusy));
  Settle();
  EXPECT_EQ(verdicts_.size(), Authenticator::kMaxWaiting + 1);
  EXPECT_EQ(Check(Basic("alice", "right")), AuthVerdict::kAllowed);
}

TEST_F(GuardTest, ReportsAVerdictAlsoWhenItHasEnded) {
  Ask(Basic("alice", "right"));
  guard_.reset();
  EXPECT_EQ(Settle(), AuthVerdict::kAllowed);
}

TEST(LoginThrottle, AreForgottenForTheOnesThatFailedLeast) {
  LoginThrottle failures;
  const base::TimePoint start{};
  for (int i = 0; i < 20; ++i) failures.Count("worst", start);
  for (std::size_t i = 0; i < LoginThrottle::kMaxAddresses * 2; ++i)
    failures.Count(std::to_string(i), start);
  EXPECT_FALSE(failures.MayTry("worst", start));
  EXPECT_TRUE(failures.MayTry("worst", start + LoginThrottle::kOneIn));
}

TEST(Secrets, KnowsBcryptAndSha256) {
  const auto secrets = Secrets::Load(true);
  ASSERT_TRUE(secrets.ok()) << secrets.error().message();
  // The password's hash is exporter-toolkit's, of "fakepassword" (web/handler.go); the digest is
  // from `printf abc | sha256sum`.
  const std::string hash = "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi";
  EXPECT_TRUE((*secrets)->IsPassword("fakepassword", hash));
  EXPECT_FALSE((*secrets)->IsPassword("fakepasswore", hash));
  EXPECT_FALSE((*secrets)->IsPassword(std::string_view("fakepassword\0more", 17), hash));
  EXPECT_FALSE((*secrets)->IsPassword("", hash));
  const Digest abc = (*secrets)->Hash("abc");
  EXPECT_EQ(abc[0], 0xba);
  EXPECT_EQ(abc[31], 0xad);
  EXPECT_FALSE(Equal((*secrets)->Hash("abc", abc), (*secrets)->Hash("abc", Digest{})));
}

}  // namespace
}  // namespace penstock::protocol::http
