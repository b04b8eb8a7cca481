#include "backend/config_terms.h"

#include "api/compat/nvidia/former_keys.h"
#include "backend/all.h"

namespace penstock::backend {

namespace {

api::ConfigTerms TermsOfAll() {
  api::ConfigTerms terms;
  for (const device::Dialect* dialect : Dialects()) {
    terms.vendors.emplace_back(dialect->vendor());
    if (terms.node_label.empty()) terms.node_label = dialect->config_label();
    if (!dialect->server_root().empty())
      terms.server_roots.emplace(dialect->vendor(), dialect->server_root());
    for (const device::EvidenceKind& kind : dialect->EvidenceKinds())
      terms.evidence.push_back({.kind = std::string(kind.name),
                                .least = kind.least,
                                .most = kind.most,
                                .usual = kind.usual});
  }
  for (const api::FormerKey& key : api::compat::kFormerKeys)
    if (FindDialect(key.vendor) != nullptr) terms.former_keys.push_back(key);
  return terms;
}

}  // namespace

const api::ConfigTerms& ConfigTerms() {
  static const api::ConfigTerms terms = TermsOfAll();
  return terms;
}

}  // namespace penstock::backend
