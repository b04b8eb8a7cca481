// See sampling_traffic.h. Where a driver refuses one source for good, the next is asked from the next sample on.
#include "vendor/nvidia/sampling_traffic.h"

namespace penstock::vendor::nvidia {
namespace {

constexpr double kMebibyte = 1048576;
constexpr unsigned kDirections = 2, kBoth = 2;

unsigned LinkField(LinkCounters counters, unsigned direction) {
  if (counters == LinkCounters::kKibibytes) return abi::kFieldLinkSent + direction;
  return direction == 0 ? abi::kFieldLinkSentBytes : abi::kFieldLinkReceivedBytes;
}

/// Each of the first 18 links has two metrics in one row of numbers, the others in another one; received comes first.
unsigned LinkMetric(unsigned direction, unsigned link) {
  constexpr unsigned kFirstRow = 18;
  const unsigned sent = direction == 0 ? 1 : 0;
  return link < kFirstRow ? abi::kGpmLink0Received + sent + 2 * link : abi::kGpmLink18Received + sent + 2 * (link - kFirstRow);
}

std::uint64_t Kibibytes(LinkCounters counters, std::uint64_t count) { return counters == LinkCounters::kBytes ? count / 1024 : count; }

std::optional<std::uint64_t> Whole(const FieldAnswer& answer) {
  if (!answer.number || !std::holds_alternative<std::uint64_t>(*answer.number)) return std::nullopt;
  return std::get<std::uint64_t>(*answer.number);
}

}  // namespace

PcieTraffic::PcieTraffic(Taking& taking, std::optional<bool> gpm, FieldBatch& fields, GpmBatch& metrics)
    : taking_(taking), fields_(fields), metrics_(metrics) {
  SampledGpu& gpu = taking.gpu;
  const bool by_gpm = gpm.value_or(false) && gpu.pcie_rate_by_gpm;
  std::array<bool, kDirections> needed{};
  for (const Wanted& wanted : taking.Of(Call::kPcieRate)) {
    if (by_gpm) {
      rate_[wanted.way.number] = metrics.Add(abi::kGpmPcieSentRate + wanted.way.number);
    } else {
      needed[wanted.way.number] = true;
    }
  }
  for (const Wanted& wanted : taking.Of(Call::kPcieTraffic)) needed[wanted.way.number] = true;
  for (unsigned direction = 0; direction < kDirections; ++direction) {
    if (!needed[direction]) continue;
    if (gpu.pcie_counters == PcieCounters::kFields) field_[direction] = fields.Add(abi::kFieldPcieSent + direction);
    if (gpu.pcie_counters == PcieCounters::kGpm) counter_[direction] = metrics.Add(abi::kGpmPcieSent + direction);
  }
}

void PcieTraffic::GiveCounter(const Wanted& wanted) {
  const unsigned direction = wanted.way.number;
  if (field_[direction]) {
    const FieldAnswer answer = fields_.At(*field_[direction]);
    if (const auto bytes = Whole(answer); bytes && !answer.narrow) taking_.Give(wanted.id, *bytes);
  } else if (counter_[direction]) {
    const GpmAnswer& answer = metrics_.At(*counter_[direction]);
    if (answer.value) taking_.Give(wanted.id, static_cast<std::uint64_t>(*answer.value));
    if (answer.never) taking_.gpu.pcie_counters = PcieCounters::kNowhere;
  } else if (taking_.gpu.pcie_counters == PcieCounters::kNowhere) {
    taking_.Missing(wanted.id);
  }
}

/// What the driver itself measures in 20 ms, for which the call takes as long.
void PcieTraffic::AskThroughput(const Wanted& wanted) {
  unsigned kibibytes = 0;
  const unsigned direction = wanted.way.number == 0 ? abi::kPcieSent : abi::kPcieReceived;
  if (taking_.Answered(taking_.questions.Ask(taking_.questions.nvml().pcie_throughput, direction, &kibibytes), {&wanted, 1}))
    taking_.Give(wanted.id, kibibytes * 1024.0);
}

void PcieTraffic::GiveRate(const Wanted& wanted) {
  const unsigned direction = wanted.way.number;
  std::optional<double> rate;
  if (rate_[direction]) {
    const GpmAnswer& answer = metrics_.At(*rate_[direction]);
    if (answer.value) rate = *answer.value * kMebibyte;
    if (answer.never) taking_.gpu.pcie_rate_by_gpm = false;
  } else if (field_[direction]) {
    const FieldAnswer answer = fields_.At(*field_[direction]);
    if (const auto bytes = Whole(answer); bytes && !answer.narrow) rate = taking_.gpu.pcie_rates[direction].Add(taking_.now, *bytes);
  } else {
    AskThroughput(wanted);
  }
  if (rate) taking_.Give(wanted.id, *rate);
}

void PcieTraffic::Give() {
  for (const Wanted& wanted : taking_.Of(Call::kPcieTraffic)) GiveCounter(wanted);
  for (const Wanted& wanted : taking_.Of(Call::kPcieRate)) GiveRate(wanted);
  for (const auto& place : field_) {
    if (!place) continue;
    const FieldAnswer answer = fields_.At(*place);
    // One of 32 bits wraps several times a second at a link's full speed: nothing can be made of it.
    if (answer.never || answer.narrow)
      taking_.gpu.pcie_counters =
          taking_.gpu.gpm.Supported(taking_.questions).value_or(false) ? PcieCounters::kGpm : PcieCounters::kNowhere;
  }
}

LinkTraffic::LinkTraffic(Taking& taking, std::optional<bool> gpm, FieldBatch& fields, GpmBatch& metrics)
    : taking_(taking), fields_(fields), metrics_(metrics) {
  const auto totals = taking.Of(Call::kFabricTraffic), rates = taking.Of(Call::kFabricRate);
  const auto links = taking.Of(Call::kFabricLinkTraffic), link_rates = taking.Of(Call::kFabricLinkRate);
  if (totals.empty() && rates.empty() && links.empty() && link_rates.empty()) return;
  links_ = taking.Links();
  if (links_ == nullptr) return;
  if (links_->empty() || taking.gpu.link_counters == LinkCounters::kNowhere) {
    for (const auto& wanted : {totals, rates, links, link_rates}) taking.Missing(wanted);
    links_ = nullptr;
    return;
  }
  const bool by_gpm = gpm.value_or(false) && taking.gpu.link_rate_by_gpm;
  bool counters = !totals.empty(), link_counters = !links.empty();
  for (const Wanted& wanted : rates) {
    if (wanted.way.number == kBoth || !by_gpm) {
      counters = true;
    } else {
      rate_[wanted.way.number] = metrics.Add(wanted.way.number == 0 ? abi::kGpmLinksSent : abi::kGpmLinksReceived);
    }
  }
  for (const Wanted& wanted : link_rates) {
    if (wanted.way.number == kBoth || !by_gpm) {
      link_counters = true;
      continue;
    }
    for (const unsigned link : *links_) {
      const std::size_t place = metrics.Add(LinkMetric(wanted.way.number, link));
      if (!first_link_rate_[wanted.way.number]) first_link_rate_[wanted.way.number] = place;
    }
  }
  if (counters && !taking.gpu.sum_of_links) AddTotals();
  if (link_counters || (counters && taking.gpu.sum_of_links)) AddLinks();
}

void LinkTraffic::AddTotals() {
  for (unsigned direction = 0; direction < kDirections; ++direction)
    total_[direction] = fields_.Add(abi::kFieldLinkSent + direction, abi::kAllLinks);
}

void LinkTraffic::AddLinks() {
  for (unsigned direction = 0; direction < kDirections; ++direction)
    for (const unsigned link : *links_) {
      const std::size_t place = fields_.Add(LinkField(taking_.gpu.link_counters, direction), link);
      if (!first_link_[direction]) first_link_[direction] = place;
    }
}

/// Of all links, in KiB; nothing where one of them did not answer: a sum may not fall because a link was silent.
std::optional<std::uint64_t> LinkTraffic::Total(unsigned direction) const {
  if (total_[direction]) return Whole(fields_.At(*total_[direction]));
  if (!first_link_[direction]) return std::nullopt;
  std::uint64_t sum = 0;
  bool any = false;
  for (std::size_t i = 0; i < links_->size(); ++i) {
    const FieldAnswer answer = fields_.At(*first_link_[direction] + i);
    const auto count = Whole(answer);
    if (!count && !answer.never) return std::nullopt;
    sum += count.value_or(0);
    any = any || count;
  }
  if (!any) return std::nullopt;
  return Kibibytes(taking_.gpu.link_counters, sum);
}

void LinkTraffic::GiveRate(const Wanted& wanted) {
  const unsigned direction = wanted.way.number;
  std::optional<double> rate;
  if (direction < kDirections && rate_[direction]) {
    const GpmAnswer& answer = metrics_.At(*rate_[direction]);
    if (answer.value) rate = *answer.value * kMebibyte;
    if (answer.never) taking_.gpu.link_rate_by_gpm = false;
  } else {
    const auto sent = direction == 1 ? std::optional<std::uint64_t>(0) : Total(0);
    const auto received = direction == 0 ? std::optional<std::uint64_t>(0) : Total(1);
    if (sent && received) rate = taking_.gpu.link_rates[direction].Add(taking_.now, *sent + *received);
    if (rate) *rate *= 1024;
  }
  if (rate) taking_.Give(wanted.id, *rate);
}

/// Where the driver has the counters, from what it refused.
void LinkTraffic::NoteLinks() {
  SampledGpu& gpu = taking_.gpu;
  if (total_[0] && fields_.At(*total_[0]).never) gpu.sum_of_links = true;
  if (!first_link_[0]) return;
  bool never = true;
  for (std::size_t i = 0; i < links_->size(); ++i) never = never && fields_.At(*first_link_[0] + i).never;
  if (!never) return;
  gpu.link_counters = gpu.link_counters == LinkCounters::kKibibytes ? LinkCounters::kBytes : LinkCounters::kNowhere;
}

/// In KiB.
std::optional<std::uint64_t> LinkTraffic::OfLink(unsigned direction, std::size_t place) const {
  const auto count = Whole(fields_.At(*first_link_[direction] + place));
  if (!count) return std::nullopt;
  return Kibibytes(taking_.gpu.link_counters, *count);
}

void LinkTraffic::GiveLinks(const Wanted& wanted) {
  for (std::size_t i = 0; i < links_->size(); ++i)
    if (const auto count = OfLink(wanted.way.number, i)) taking_.Give(wanted.id, *count, static_cast<int>((*links_)[i]));
}

void LinkTraffic::GiveLinkRates(const Wanted& wanted) {
  const unsigned direction = wanted.way.number;
  for (std::size_t i = 0; i < links_->size(); ++i) {
    std::optional<double> rate;
    if (direction < kDirections && first_link_rate_[direction]) {
      const GpmAnswer& answer = metrics_.At(*first_link_rate_[direction] + i);
      if (answer.value) rate = *answer.value * kMebibyte;
    } else if (first_link_[0]) {
      const auto sent = direction == 1 ? std::optional<std::uint64_t>(0) : OfLink(0, i);
      const auto received = direction == 0 ? std::optional<std::uint64_t>(0) : OfLink(1, i);
      if (sent && received) rate = taking_.gpu.single_link_rates[direction][(*links_)[i]].Add(taking_.now, *sent + *received);
      if (rate) *rate *= 1024;
    }
    if (rate) taking_.Give(wanted.id, *rate, static_cast<int>((*links_)[i]));
  }
}

void LinkTraffic::Give() {
  if (links_ == nullptr) return;
  for (const Wanted& wanted : taking_.Of(Call::kFabricTraffic))
    if (const auto total = Total(wanted.way.number)) taking_.Give(wanted.id, *total);
  for (const Wanted& wanted : taking_.Of(Call::kFabricRate)) GiveRate(wanted);
  for (const Wanted& wanted : taking_.Of(Call::kFabricLinkTraffic)) GiveLinks(wanted);
  for (const Wanted& wanted : taking_.Of(Call::kFabricLinkRate)) GiveLinkRates(wanted);
  NoteLinks();
}

void AskLinks(Taking& taking) {
  const auto errors = taking.Of(Call::kFabricLinkErrors), states = taking.Of(Call::kFabricLinkState);
  if (errors.empty() && states.empty()) return;
  const std::vector<unsigned>* links = taking.Links();
  if (links == nullptr) return;
  if (links->empty()) {
    taking.Missing(errors);
    taking.Missing(states);
    return;
  }
  Questions& questions = taking.questions;
  for (const Wanted& wanted : errors) {
    bool never = true;
    for (const unsigned link : *links) {
      unsigned long long count = 0;
      const bool answered = questions.Ask(questions.nvml().nvlink_errors, link, wanted.way.number, &count);
      never = never && !answered && SaysNever(questions.last());
      if (answered) taking.Give(wanted.id, std::uint64_t{count}, static_cast<int>(link));
    }
    if (never) taking.Missing(wanted.id);
  }
  for (const Wanted& wanted : states)
    for (const unsigned link : *links) {
      unsigned active = 0;
      if (questions.Ask(questions.nvml().nvlink_state, link, &active))
        taking.Give(wanted.id, std::uint64_t{active}, static_cast<int>(link));
    }
}

}  // namespace penstock::vendor::nvidia
