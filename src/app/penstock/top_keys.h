// What keys mean in the live view. Pure.
#pragma once

#include <optional>
#include <string>

#include "app/penstock/top_frame.h"

namespace penstock::app {

/// Takes the first key off what a terminal sent: a character (of UTF-8), or the sequence of a special key ("\033[A"). Nothing where there
/// is none. A sequence that has no end is the key Esc and what follows.
std::optional<std::string> TakeKey(std::string& input);

/// Changes the view as the key says. False: the user wants to leave.
bool PressKey(const std::string& key, TopView& view);

}  // namespace penstock::app
