// Generates random valid specifications, the same for the same seed. For tests only.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "api/cdi/spec.h"

namespace penstock::api::cdi {

class RandomSpec {
 public:
  explicit RandomSpec(std::uint32_t seed) : random_(seed) {}

  Spec Make() {
    Spec spec;
    spec.kind = Pick({"nvidia.com/gpu", "k8s.gpu.nvidia.com/claim", "a-b.c_d/e.f", "xx/yy"});
    if (OneIn(4)) spec.annotations = {{"driver", Text()}, {"a.b/c", ""}};
    const std::size_t devices = 1 + Below(4);
    for (std::size_t i = 0; i < devices; ++i) {
      Device device{Pick({"gpu", "0:", "GPU-", "MIG-", "1e"}) + std::to_string(i), {}, MakeEdits()};
      if (OneIn(6)) device.annotations = {{"x", Text()}};
      if (device.edits == CdiEdits()) device.edits.env = {"NONE="};
      spec.devices.push_back(std::move(device));
    }
    if (OneIn(2)) spec.edits = MakeEdits();
    return spec;
  }

 private:
  std::size_t Below(std::size_t bound) { return random_() % bound; }
  bool OneIn(std::size_t n) { return Below(n) == 0; }
  std::string Pick(const std::vector<std::string>& texts) { return texts[Below(texts.size())]; }

  /// Texts that YAML may read as another type, and texts that must not be lost.
  std::string Text() {
    static const std::vector<std::string> kTexts = {"yes",
                                                    "No",
                                                    "ON",
                                                    "null",
                                                    "~",
                                                    "true",
                                                    "0",
                                                    "007",
                                                    "1.5",
                                                    "1e3",
                                                    "0x1f",
                                                    "1:20",
                                                    ".inf",
                                                    "2026-01-01",
                                                    "-",
                                                    "---",
                                                    "- a",
                                                    "a: b",
                                                    "a #b",
                                                    "#",
                                                    "[a",
                                                    "{a",
                                                    "&a",
                                                    "*a",
                                                    "!a",
                                                    "%a",
                                                    "@a",
                                                    "`a",
                                                    "\"",
                                                    "'",
                                                    "\\",
                                                    "a\nb",
                                                    "\t",
                                                    " a ",
                                                    "a:",
                                                    ":a",
                                                    "=",
                                                    "<<",
                                                    "?",
                                                    "--flag",
                                                    "--flag=/a::b",
                                                    "/usr/lib/x.so.1",
                                                    "\xc3\xa9",
                                                    "\xf0\x9f\x98\x80",
                                                    "\xf0\x9f\x98\x80\\ud83d",
                                                    "\xc2\x85",
                                                    "\x7f",
                                                    "\xef\xbb\xbf",
                                                    std::string(200, 'x') + " y"};
    return Pick(kTexts);
  }

  std::vector<std::string> Texts(std::size_t most) {
    std::vector<std::string> texts(Below(most + 1));
    for (std::string& text : texts) text = Text();
    return texts;
  }

  std::vector<std::string> Environment() {
    auto texts = Texts(2);
    for (std::string& text : texts) text = "NAME=" + text;
    return texts;
  }

  DeviceNode MakeNode() {
    DeviceNode node{.path = "/dev/" + Text()};
    if (OneIn(3)) node.host_path = "/root/dev/" + Text();
    if (OneIn(3)) node.type = Pick({"b", "c", "u", "p"});
    if (OneIn(2)) node.major = static_cast<std::int64_t>(Below(4096));
    if (OneIn(2)) node.minor = static_cast<std::int64_t>(Below(3));
    if (OneIn(2)) node.file_mode = 0660;
    if (OneIn(2)) node.permissions = Pick({"r", "rw", "rwm", "m"});
    if (OneIn(4)) node.uid = 0;
    if (OneIn(4)) node.gid = 4294967295u;
    return node;
  }

  CdiEdits MakeEdits() {
    CdiEdits edits;
    edits.env = Environment();
    for (std::size_t i = Below(3); i > 0; --i) edits.nodes.push_back(MakeNode());
    for (std::size_t i = Below(3); i > 0; --i)
      edits.mounts.push_back({"/" + Text(), "/" + Text(), Texts(3), OneIn(4) ? "none" : ""});
    for (std::size_t i = Below(3); i > 0; --i) {
      Hook hook{Pick({"prestart", "createRuntime", "createContainer", "startContainer", "poststart",
                      "poststop"}),
                "/" + Text(), Texts(3), Environment(), std::nullopt};
      if (OneIn(3)) hook.timeout = static_cast<int>(Below(100));
      edits.hooks.push_back(std::move(hook));
    }
    if (OneIn(10)) edits.additional_gids = {44, 0};
    if (OneIn(16)) edits.net_devices = {{"eth1", "net0"}, {"eth2", "net1"}};
    if (OneIn(16)) {
      edits.intel_rdt.emplace();
      edits.intel_rdt->clos_id = Pick({"", "/", "guaranteed"});
      if (OneIn(2)) edits.intel_rdt->schemata = {"L3:0=f"};
      edits.intel_rdt->enable_monitoring = OneIn(2);
    }
    return edits;
  }

  std::mt19937 random_;
};

}  // namespace penstock::api::cdi
