// Parses lists of alternatives with qualities. Ignores malformed elements, as servers do.
#include "protocol/http/accept.h"

#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/core/strings.h"

namespace penstock::protocol::http {

namespace {

/// An element of the list: "text/plain;version=0.0.4;q=0.5".
struct Alternative {
  std::string name;  ///< in lower case
  std::optional<std::string> version;
  double quality = 1;
};

std::string_view Unquoted(std::string_view text) {
  return text.size() >= 2 && text.front() == '"' && text.back() == '"'
             ? text.substr(1, text.size() - 2)
             : text;
}

/// 0 to 1. A malformed quality counts as 0, so that a malformed alternative is not preferred.
double Quality(std::string_view text) {
  double quality = 0;
  const auto read =
      std::from_chars(text.data(), text.data() + text.size(), quality, std::chars_format::fixed);
  return read.ec == std::errc() && read.ptr == text.data() + text.size() && quality >= 0 &&
                 quality <= 1
             ? quality
             : 0;
}

std::vector<Alternative> ReadList(std::string_view list) {
  std::vector<Alternative> alternatives;
  for (const std::string& element : base::Split(list, ',')) {
    const std::vector<std::string> parts = base::Split(element, ';');
    Alternative alternative{.name = base::ToLower(base::Trim(parts.front()))};
    for (std::size_t i = 1; i < parts.size(); ++i) {
      const std::size_t equals = parts[i].find('=');
      if (equals == std::string::npos) continue;
      const std::string name =
          base::ToLower(base::Trim(std::string_view(parts[i]).substr(0, equals)));
      const std::string_view value =
          Unquoted(base::Trim(std::string_view(parts[i]).substr(equals + 1)));
      if (name == "q") alternative.quality = Quality(value);
      if (name == "version") alternative.version = value;
    }
    if (!alternative.name.empty()) alternatives.push_back(std::move(alternative));
  }
  return alternatives;
}

/// Returns how closely an alternative names an offer; nothing if it names another type.
std::optional<int> Closeness(const Alternative& alternative, const MediaType& offer) {
  if (alternative.name == "*/*" || alternative.name == "*") return 0;
  const std::string_view main = offer.type.substr(0, offer.type.find('/'));
  if (alternative.name == std::string(main) + "/*") return 1;
  if (alternative.name != offer.type) return std::nullopt;
  if (!alternative.version) return 2;
  if (*alternative.version != offer.version) return std::nullopt;
  return 3;
}

struct Standing {
  int closeness = -1;
  double quality = 0;
  std::size_t place = 0;  ///< in the client's list
};

Standing StandingOf(const MediaType& offer, const std::vector<Alternative>& alternatives) {
  Standing best;
  for (std::size_t place = 0; place < alternatives.size(); ++place) {
    const auto closeness = Closeness(alternatives[place], offer);
    const double quality = alternatives[place].quality;
    if (closeness &&
        (*closeness > best.closeness || (*closeness == best.closeness && quality > best.quality)))
      best = {*closeness, quality, place};
  }
  return best;
}

}  // namespace

std::size_t ChooseType(std::string_view accept, std::span<const MediaType> offers) {
  const auto alternatives = ReadList(accept);
  std::size_t chosen = 0;
  Standing best;
  for (std::size_t i = 0; i < offers.size(); ++i) {
    const Standing standing = StandingOf(offers[i], alternatives);
    if (standing.quality <= 0) continue;
    if (standing.quality > best.quality ||
        (standing.quality == best.quality && standing.place < best.place)) {
      best = standing;
      chosen = i;
    }
  }
  return chosen;
}

bool WantsGzip(std::string_view accept_encoding) {
  std::optional<double> gzip, any, identity;
  for (const Alternative& alternative : ReadList(accept_encoding)) {
    if (alternative.name == "gzip" || alternative.name == "x-gzip") gzip = alternative.quality;
    if (alternative.name == "*") any = alternative.quality;
    if (alternative.name == "identity") identity = alternative.quality;
  }
  const double quality = gzip.value_or(any.value_or(0));
  return quality > 0 && quality >= identity.value_or(0);
}

}  // namespace penstock::protocol::http
