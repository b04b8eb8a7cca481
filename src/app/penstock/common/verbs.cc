#include "app/penstock/common/verbs.h"

#include <unistd.h>

namespace penstock::app {

Style Common::style() const {
  Style style = StyleOf(STDOUT_FILENO);
  style.headers = output.headers;
  return style;
}

}  // namespace penstock::app
