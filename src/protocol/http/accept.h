// Chooses the media type and the encoding of a response by Accept and Accept-Encoding (RFC 9110,
// 12.5).
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace penstock::protocol::http {

/// A form in which a page is available.
struct MediaType {
  std::string_view type;  ///< "text/plain"
  std::string_view
      version;  ///< the "version" parameter; a client that names another version means another type
};

/// Returns the index of the offer that the client prefers. Between equals, the offer that the
/// client names first wins, then the first offer. If the client accepts none, returns the first
/// offer: a page in an unrequested form is more useful than an error. `offers` is not empty.
std::size_t ChooseType(std::string_view accept, std::span<const MediaType> offers);

/// Returns whether the client accepts gzip and does not prefer the page uncompressed.
bool WantsGzip(std::string_view accept_encoding);

}  // namespace penstock::protocol::http
