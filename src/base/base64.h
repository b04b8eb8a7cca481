// Encodes and decodes base64, as used in kubeconfigs and HTTP credentials.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace penstock::base {

/// RFC 4648 section 4, padded; ignores line ends and blanks. Nothing if the text is not base64.
std::optional<std::string> DecodeBase64(std::string_view text);
std::string EncodeBase64(std::string_view bytes);

}  // namespace penstock::base
