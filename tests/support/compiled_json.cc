// nlohmann's JSON, compiled once with optimisation for all test programs. Of a template that
// several object files contain, the linker takes the first: without this one, that of a test, which
// is not optimised, also for the code under test. With it, the operator's tests of driver roll-outs
// take a quarter of the CPU time.
#include <string>

#include <nlohmann/json.hpp>

namespace nlohmann {

template class basic_json<>;

namespace detail {

using Text = iterator_input_adapter<std::string::const_iterator>;
using Characters = iterator_input_adapter<const char*>;
template class lexer<json, Text>;
template class parser<json, Text>;
template class lexer<json, Characters>;
template class parser<json, Characters>;
template class json_sax_dom_parser<json>;
template class serializer<json>;

}  // namespace detail

}  // namespace nlohmann
