#include "protocol/http/query.h"

#include "base/core/strings.h"

namespace penstock::protocol::http {

namespace {

int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::optional<std::string> Decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i] == '+' ? ' ' : text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? DigitOf(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? DigitOf(text[i + 2]) : -1;
    if (high < 0 || low < 0) return std::nullopt;
    decoded += static_cast<char>(high << 4 | low);
    i += 2;
  }
  return decoded;
}

}  // namespace

std::optional<std::string> QueryValue(std::string_view query, std::string_view name) {
  for (const std::string& parameter : base::Split(query, '&')) {
    const std::size_t equals = parameter.find('=');
    if (std::string_view(parameter).substr(0, equals) != name) continue;
    return equals == std::string::npos ? std::string()
                                       : Decoded(std::string_view(parameter).substr(equals + 1));
  }
  return std::nullopt;
}

std::string QueryEncoded(std::string_view text) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (kPlain.find(c) != std::string_view::npos) {
      encoded += c;
    } else {
      encoded.append({'%', kDigits[byte >> 4], kDigits[byte & 15]});
    }
  }
  return encoded;
}

}  // namespace penstock::protocol::http
