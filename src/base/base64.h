// Base64, as kubeconfigs and HTTP credentials have it. Knows nothing of what is in it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace penstock::base {

/// RFC 4648 section 4, padded; line ends and blanks are passed over. Nothing where the text is no base64.
std::optional<std::string> DecodeBase64(std::string_view text);
std::string EncodeBase64(std::string_view bytes);

}  // namespace penstock::base
