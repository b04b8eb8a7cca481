// Parses a kubeconfig's context as a ClusterAccess. Reads no other file and starts no process.
#include <algorithm>

#include "base/base64.h"
#include "base/core/document.h"
#include "base/core/strings.h"
#include "base/yaml.h"
#include "protocol/kube/credentials/access.h"

namespace penstock::protocol::kube {
namespace {

using base::MapReader;
using base::Value;

std::string FolderOf(const std::string& file) {
  const std::size_t slash = file.rfind('/');
  return slash == std::string::npos ? "." : file.substr(0, slash);
}

/// Reads only the requested context with its cluster and user; does not check the others.
class Kubeconfig {
 public:
  Kubeconfig(const Value& document, const std::string& file, base::Problems& problems)
      : document_(document), file_(file), problems_(problems), top_(document, "", problems) {}

  ClusterAccess Read(std::string context) {
    const auto current = top_.String("current-context");
    top_.OneOf("apiVersion", {"v1"});
    top_.OneOf("kind", {"Config"});
    for (const char* harmless : {"preferences", "extensions", "colors"}) top_.Any(harmless);
    for (const char* list : {"contexts", "clusters", "users"}) top_.List(list);
    top_.Finish();
    if (context.empty()) context = current.value_or("");
    access_.from = file_ + (context.empty() ? "" : ", context " + context);
    ReadContext(context);
    return std::move(access_);
  }

 private:
  // The map `inner` of the named entry of a list, or null with a problem.
  const Value* Find(const char* list, const char* inner, const std::string& name,
                    const std::string& wanted_by) {
    const Value* entries = document_.Find(list);
    std::vector<std::string> names;
    if (entries != nullptr && entries->list != nullptr) {
      for (const Value& entry : *entries->list) {
        const Value* entry_name = entry.Find("name");
        if (entry_name == nullptr) continue;
        if (entry_name->text == name) return Inner(entry, list, inner);
        names.push_back(entry_name->text);
      }
    }
    const auto near = base::Nearest(name, names);
    problems_.Add(entries != nullptr ? entries->mark : base::Mark{},
                  std::string(list) + " has no \"" + name + "\"" + wanted_by +
                      (near ? "; did you mean \"" + *near + "\"?" : "") +
                      (names.empty() ? "" : "; it has " + base::Join(names, ", ")));
    return nullptr;
  }

  const Value* Inner(const Value& entry, const char* list, const char* inner) {
    MapReader reader(entry, list, problems_);
    reader.String("name");
    reader.Require(inner);
    const Value* found = reader.Map(inner);
    reader.Finish();
    return found;
  }

  void ReadContext(const std::string& context) {
    if (context.empty()) return ReadOnlyCluster();
    const Value* found = Find("contexts", "context", context, "");
    if (found == nullptr) return;
    MapReader reader(*found, "contexts." + context, problems_);
    reader.Require("cluster");
    const auto cluster = reader.String("cluster");
    const auto user = reader.String("user");
    access_.namespace_name = reader.String("namespace").value_or("");
    reader.Any("extensions");
    reader.Finish();
    if (cluster) ReadCluster(*cluster, context);
    if (user && !user->empty()) ReadUser(*user, context);
  }

  // Without a context, no cluster can be selected.
  void ReadOnlyCluster() {
    const Value* contexts = document_.Find("contexts");
    const bool none = contexts == nullptr || contexts->list == nullptr || contexts->list->empty();
    problems_.Add(document_.mark, none
                                      ? "there is no context: this is an empty kubeconfig"
                                      : "current-context is not set, and no context was requested");
  }

  void ReadCluster(const std::string& name, const std::string& context) {
    const Value* found =
        Find("clusters", "cluster", name, ", which context \"" + context + "\" names");
    if (found == nullptr) return;
    MapReader reader(*found, "clusters." + name, problems_);
    reader.Require("server");
    if (const auto server = reader.String("server")) ReadServer(reader, *server);
    access_.tls_server_name = reader.String("tls-server-name").value_or("");
    access_.insecure_skip_tls_verify = reader.Bool("insecure-skip-tls-verify").value_or(false);
    access_.authority = ReadMaterial(reader, "certificate-authority");
    access_.proxy = reader.String("proxy-url").value_or("");
    if (!access_.proxy.empty() && !HasScheme(access_.proxy, {"http", "https", "socks5"})) {
      reader.Problem("proxy-url",
                     "\"" + access_.proxy +
                         "\" is not a proxy; it must begin with http://, https:// or socks5://");
    }
    if (access_.insecure_skip_tls_verify && !access_.authority.empty()) {
      reader.Problem("insecure-skip-tls-verify",
                     "is true together with a certificate-authority; keep one");
    }
    reader.Bool("disable-compression");
    reader.Any("extensions");
    reader.Finish();
  }

  static bool HasScheme(const std::string& url, const std::vector<std::string>& schemes) {
    return std::ranges::any_of(schemes, [&](const std::string& scheme) {
      const std::string start = scheme + "://";
      return url.size() > start.size() && url.starts_with(start) && url[start.size()] != '/';
    });
  }

  void ReadServer(MapReader& reader, const std::string& server) {
    const bool odd = std::ranges::any_of(server, [](char c) {
      return static_cast<unsigned char>(c) <= ' ' || c == '?' || c == '#';
    });
    if (odd || !HasScheme(server, {"https", "http"})) {
      return reader.Problem(
          "server",
          "\"" + server + "\" is not the address of an API server, such as https://10.0.0.1:6443");
    }
    access_.server = server;
    while (access_.server.ends_with('/')) access_.server.pop_back();
  }

  std::string Absolute(const std::string& path) const {
    return path.starts_with('/') ? path : FolderOf(file_) + "/" + path;
  }

  // KEY names a file; KEY-data is its content in base64 and takes precedence.
  Material ReadMaterial(MapReader& reader, const std::string& key) {
    Material material;
    const auto file = reader.String(key);
    const auto data = reader.String(key + "-data");
    if (data && !data->empty()) {
      if (auto bytes = base::DecodeBase64(*data)) {
        material.data = *std::move(bytes);
      } else {
        reader.Problem(key + "-data", "is not base64");
      }
    } else if (file && !file->empty()) {
      material.file = Absolute(*file);
    }
    return material;
  }

  void ReadUser(const std::string& name, const std::string& context) {
    const Value* found = Find("users", "user", name, ", which context \"" + context + "\" names");
    if (found == nullptr) return;
    MapReader reader(*found, "users." + name, problems_);
    access_.client_certificate = ReadMaterial(reader, "client-certificate");
    access_.client_key = ReadMaterial(reader, "client-key");
    if (access_.client_certificate.empty() != access_.client_key.empty()) {
      reader.Problem(access_.client_key.empty() ? "client-certificate" : "client-key",
                     "is given without the other of certificate and key");
    }
    access_.token.data = reader.String("token").value_or("");
    if (const auto file = reader.String("tokenFile"); file && !file->empty())
      access_.token.file = Absolute(*file);
    access_.user = reader.String("username").value_or("");
    access_.password = reader.String("password").value_or("");
    if (!access_.user.empty() && !access_.token.empty())
      reader.Problem("username", "is given together with a token; keep one");
    if (const Value* exec = reader.Map("exec")) ReadExec(*exec, "users." + name + ".exec");
    if (reader.Any("auth-provider") != nullptr) {
      reader.Problem("auth-provider",
                     "was removed from Kubernetes in 1.26; use an exec plugin, as `kubectl` does");
    }
    for (const char* impersonation : {"as", "as-uid", "as-groups", "as-user-extra"}) {
      if (reader.Any(impersonation) != nullptr)
        reader.Problem(impersonation, "impersonation is not supported");
    }
    reader.Any("extensions");
    reader.Finish();
  }

  void ReadExec(const Value& value, const std::string& where) {
    MapReader reader(value, where, problems_);
    ExecPlugin plugin;
    reader.Require("apiVersion");
    plugin.api_version = reader
                             .OneOf("apiVersion", {"client.authentication.k8s.io/v1",
                                                   "client.authentication.k8s.io/v1beta1"})
                             .value_or("");
    reader.Require("command");
    plugin.command = reader.String("command").value_or("");
    if (plugin.command.empty()) {
      if (reader.Has("command")) reader.Problem("command", "is empty");
    } else if (plugin.command.find('/') != std::string::npos) {
      plugin.command = Absolute(plugin.command);
    }
    plugin.arguments = reader.Strings("args").value_or(std::vector<std::string>());
    if (const Value* list = reader.List("env")) ReadEnvironment(*list, where + ".env", plugin);
    plugin.install_hint = reader.String("installHint").value_or("");
    plugin.provide_cluster_info = reader.Bool("provideClusterInfo").value_or(false);
    const auto mode = reader.OneOf("interactiveMode", {"Never", "IfAvailable", "Always"});
    if (mode == "Always")
      reader.Problem("interactiveMode",
                     "is Always: the plugin requires a terminal, and none is available");
    reader.Finish();
    access_.exec.push_back(std::move(plugin));
  }

  void ReadEnvironment(const Value& list, const std::string& where, ExecPlugin& plugin) {
    for (const Value& item : *list.list) {
      MapReader reader(item, where, problems_);
      reader.Require("name");
      const std::string name = reader.String("name").value_or("");
      const std::string value = reader.String("value").value_or("");
      if (name.find('=') != std::string::npos || (name.empty() && reader.Has("name")))
        reader.Problem("name", "is not a valid variable name");
      reader.Finish();
      plugin.environment.emplace_back(name, value);
    }
  }

  const Value& document_;
  const std::string& file_;
  base::Problems& problems_;
  MapReader top_;
  ClusterAccess access_;
};

}  // namespace

base::Result<ClusterAccess> ParseKubeconfig(std::string_view text, const std::string& file,
                                            const std::string& context) {
  ASSIGN(const Value document, base::ParseYamlOrJson(text, file));
  base::Problems problems(file);
  ClusterAccess access = Kubeconfig(document, file, problems).Read(context);
  if (!problems.empty()) return problems.ToError();
  return access;
}

}  // namespace penstock::protocol::kube
