// What a client would rather have: media types and encodings by Accept and Accept-Encoding (RFC 9110, 12.5). Knows no page.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace penstock::edge::http {

/// A form in which a page can be had.
struct MediaType {
  std::string_view type;     ///< "text/plain"
  std::string_view version;  ///< the parameter "version": a client that names another one means something else
};

/// Which of the offers the client wants most; between equals, the one that it names first, then the first offer. The first offer also where
/// it wants none of them: a page in a form that was not asked for says more than an error. `offers` is not empty.
std::size_t ChooseType(std::string_view accept, std::span<const MediaType> offers);

/// Whether the client takes gzip, and would not rather have the page as it is.
bool WantsGzip(std::string_view accept_encoding);

}  // namespace penstock::edge::http
