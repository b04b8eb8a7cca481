#include "protocol/kube/status_error.h"

#include <algorithm>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/core/json_text.h"
#include "base/core/strings.h"

namespace penstock::protocol::kube {
namespace {

constexpr std::size_t kMaxShown = 1000;  // of a foreign message
constexpr std::string_view kMissingRule = "missing RBAC rule: {";

struct StatusMessage {
  std::string message, reason;
};

std::string TextOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// HTML pages and binary data are not shown to people.
std::string Plain(std::string_view body) {
  const std::string_view text = base::Trim(body);
  if (text.empty()) return "without a message";
  if (text.front() == '<')
    return "with an HTML page, which no API server does: is there a proxy in between?";
  if (!base::IsUtf8(text) || text.size() > kMaxShown)
    return "with " + std::to_string(body.size()) + " bytes that are not a Status object";
  std::string line(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return "\"" + line + "\"";
}

StatusMessage ReadStatus(std::string_view body) {
  const Json json = body.size() <= 1u << 20 ? base::ParseJson<Json>(body) : Json();
  if (!json.is_object() || TextOf(json, "kind") != "Status") return {};
  StatusMessage answer{TextOf(json, "message"), TextOf(json, "reason")};
  if (answer.message.size() > kMaxShown) {
    std::size_t cut = kMaxShown;
    while (cut > 0 && (static_cast<unsigned char>(answer.message[cut]) & 0xc0) == 0x80) --cut;
    answer.message = answer.message.substr(0, cut) + "...";
  }
  return answer;
}

Code CodeOf(int status, const StatusMessage& answer) {
  switch (status) {
    case 401: return Code::kUnauthenticated;
    case 403: return Code::kPermissionDenied;
    case 404: return Code::kNotFound;
    case 405:
    case 406:
    case 415: return Code::kUnimplemented;
    case 408: return Code::kDeadlineExceeded;
    case 409: return answer.reason == "AlreadyExists" ? Code::kAlreadyExists : Code::kAborted;
    case 410: return Code::kOutOfRange;
    case 412: return Code::kFailedPrecondition;
    case 429: return Code::kResourceExhausted;
    case 504: return Code::kDeadlineExceeded;
    default: break;
  }
  if (status >= 500) return Code::kUnavailable;
  return status >= 400 ? Code::kInvalidArgument : Code::kFailedPrecondition;
}

// The parts of a path: /apis/GROUP/VERSION[/namespaces/NS]/RESOURCE[/NAME[/SUBRESOURCE]].
struct Target {
  bool resource = false;
  std::string group, namespace_name, plural, name, subresource;
};

Target TargetOf(const std::string& path) {
  std::vector<std::string> parts = base::Split(path, '/');
  std::erase(parts, "");
  Target target;
  std::size_t at = 0;
  if (parts.size() >= 3 && parts[0] == "api") {
    at = 2;
  } else if (parts.size() >= 4 && parts[0] == "apis") {
    target.group = parts[1];
    at = 3;
  } else {
    return target;
  }
  // "namespaces/x" alone, and its status and finalize, are the Namespace object itself.
  const bool inside = parts[at] == "namespaces" && parts.size() > at + 2 &&
                      parts[at + 2] != "status" && parts[at + 2] != "finalize";
  if (inside) {
    target.namespace_name = parts[at + 1];
    at += 2;
  }
  target.resource = true;
  target.plural = parts[at];
  if (parts.size() > at + 1) target.name = parts[at + 1];
  if (parts.size() > at + 2) target.subresource = parts[at + 2];
  return target;
}

std::string VerbOf(const ApiCall& call, const Target& target) {
  if (!target.resource) return base::ToLower(call.method);
  if (call.method == "POST") return "create";
  if (call.method == "PUT") return "update";
  if (call.method == "PATCH") return "patch";
  if (call.method == "DELETE") return target.name.empty() ? "deletecollection" : "delete";
  const auto watch = call.query.find("watch");
  if (watch != call.query.end() && (watch->second == "true" || watch->second == "1"))
    return "watch";
  return target.name.empty() ? "list" : "get";
}

// The text between two others in a message.
std::string Between(const std::string& text, std::string_view before, std::string_view after) {
  const std::size_t start = text.find(before);
  if (start == std::string::npos) return {};
  const std::size_t end = text.find(after, start + before.size());
  return end == std::string::npos ? std::string()
                                  : text.substr(start + before.size(), end - start - before.size());
}

// RBAC's refusals read `User "u" cannot VERB resource "r" in API group "g" ...` (apiserver,
// endpoints/handlers/responsewriters/errors.go). Those of admission (quota, PodSecurity) are also
// 403, and no rule would help.
bool ByRbac(const std::string& message) {
  return message.find(" cannot ") != std::string::npos &&
         (message.find(" resource \"") != std::string::npos ||
          message.find(" path \"") != std::string::npos);
}

std::string Forbidden(const ApiCall& call, const std::string& message) {
  // If an apply would create the object, the refusal names another verb than that of the apply.
  const std::string verb = Between(message, " cannot ", " ");
  std::string rule = MissingRule(call);
  const std::string own = "verbs: [\"" + VerbOf(call, TargetOf(call.path)) + "\"]";
  if (const std::size_t at = rule.rfind(own); !verb.empty() && at != std::string::npos)
    rule.replace(at, own.size(), "verbs: [\"" + verb + "\"]");
  const std::string user = Between(message, "User \"", "\"");
  const std::string& inside = TargetOf(call.path).namespace_name;
  return std::string(kMissingRule) + rule + "}, in " +
         (inside.empty() ? "a ClusterRole" : "a Role of namespace " + inside) +
         (user.empty() ? "" : " bound to " + user);
}

}  // namespace

bool NamesMissingRule(std::string_view message) {
  return message.find(kMissingRule) != std::string_view::npos;
}

bool NamesUncalledWebhook(std::string_view message) {
  const auto mentions = [message](std::string_view text) {
    return message.find(text) != std::string_view::npos;
  };
  return mentions("failed calling webhook") || mentions("conversion webhook for ");
}

// "uid mismatch" and "UID in precondition" are conflicts; an apply or a patch that would change the
// uid is invalid.
bool IsOfAnother(const base::Error& error) {
  const auto mentions = [&error](std::string_view text) {
    return error.message().find(text) != std::string::npos;
  };
  return error.code() == Code::kNotFound ||
         (error.code() == Code::kAborted && (mentions("uid mismatch") || mentions("UID in"))) ||
         (error.code() == Code::kInvalidArgument && mentions("metadata.uid"));
}

std::string MissingRule(const ApiCall& call) {
  const Target target = TargetOf(call.path);
  const std::string verbs = ", verbs: [\"" + VerbOf(call, target) + "\"]";
  if (!target.resource) return "nonResourceURLs: [\"" + call.path + "\"]" + verbs;
  std::string rule = "apiGroups: [\"" + target.group + "\"], resources: [\"" + target.plural;
  if (!target.subresource.empty()) rule += "/" + target.subresource;
  rule += "\"]";
  if (!target.name.empty()) rule += ", resourceNames: [\"" + target.name + "\"]";
  return rule + verbs;
}

base::Error StatusError(int status, std::string_view body, const ApiCall& call) {
  const StatusMessage answer = ReadStatus(body);
  std::string message = call.method + " " + call.path + ": ";
  if (!answer.message.empty()) {
    message += answer.message;
  } else {
    message += "the server answered " + std::to_string(status) + " " + Plain(body);
  }
  if (status == 403 && ByRbac(answer.message)) {
    message += "; " + Forbidden(call, answer.message);
  } else if (status == 403 && answer.message.empty()) {
    message += "; possibly a " + std::string(kMissingRule) + MissingRule(call) + "}";
  } else if (status < 400) {
    message += ": a redirection, which is not followed; is this an API server's address?";
  }
  return {CodeOf(status, answer), message};
}

}  // namespace penstock::protocol::kube
