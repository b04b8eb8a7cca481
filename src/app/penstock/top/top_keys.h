// Reads keys from the terminal's input and applies them to the live view. Pure.
#pragma once

#include <optional>
#include <string>

#include "app/penstock/top/top_frame.h"

namespace penstock::app {

/// Removes the first key from the terminal's input and returns it: a character (UTF-8), or the
/// sequence of a special key ("\033[A"). Nothing where the input is empty. An incomplete sequence
/// is the key Esc followed by the rest.
std::optional<std::string> TakeKey(std::string& input);

/// Changes the view according to the key. Returns false where the user quits.
bool PressKey(const std::string& key, TopView& view);

}  // namespace penstock::app
