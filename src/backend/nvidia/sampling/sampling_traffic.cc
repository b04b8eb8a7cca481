// If a driver refuses one source permanently, the next source is used from the next sample on.
#include "backend/nvidia/sampling/sampling_traffic.h"

namespace penstock::backend::nvidia {
namespace {

constexpr unsigned kDirections = 2, kBoth = 2;

unsigned LinkField(LinkCounters counters, unsigned direction) {
  if (counters == LinkCounters::kKibibytes) return abi::kFieldLinkSent + direction;
  return direction == 0 ? abi::kFieldLinkSentBytes : abi::kFieldLinkReceivedBytes;
}

/// Each of the first 18 links has two metrics in one range of numbers, the others in another range;
/// received comes first.
unsigned LinkMetric(unsigned direction, unsigned link) {
  constexpr unsigned kFirstRow = 18;
  const unsigned sent = direction == 0 ? 1 : 0;
  return link < kFirstRow ? abi::kGpmLink0Received + sent + 2 * link
                          : abi::kGpmLink18Received + sent + 2 * (link - kFirstRow);
}

std::uint64_t Kibibytes(LinkCounters counters, std::uint64_t count) {
  return counters == LinkCounters::kBytes ? count / 1024 : count;
}

std::optional<std::uint64_t> Whole(const FieldReading& answer) {
  if (!answer.number || !std::holds_alternative<std::uint64_t>(*answer.number)) return std::nullopt;
  return std::get<std::uint64_t>(*answer.number);
}

}  // namespace

PcieTraffic::PcieTraffic(SampleBuilder& builder, std::optional<bool> gpm, FieldBatch& fields,
                         GpmBatch& metrics)
    : builder_(builder), fields_(fields), metrics_(metrics) {
  SampledGpu& gpu = builder.gpu;
  const bool by_gpm = gpm.value_or(false) && gpu.pcie_rate_by_gpm;
  std::array<bool, kDirections> needed{};
  for (const Wanted& wanted : builder.Of(NvmlCall::kPcieRate)) {
    if (by_gpm) {
      rate_[wanted.query.number] = metrics.Add(abi::kGpmPcieSentRate + wanted.query.number);
    } else {
      needed[wanted.query.number] = true;
    }
  }
  for (const Wanted& wanted : builder.Of(NvmlCall::kPcieTraffic))
    needed[wanted.query.number] = true;
  for (unsigned direction = 0; direction < kDirections; ++direction) {
    if (!needed[direction]) continue;
    if (gpu.pcie_counters == PcieCounters::kFields)
      field_[direction] = fields.Add(abi::kFieldPcieSent + direction);
    if (gpu.pcie_counters == PcieCounters::kGpm)
      counter_[direction] = metrics.Add(abi::kGpmPcieSent + direction);
  }
}

void PcieTraffic::GiveCounter(const Wanted& wanted) {
  const unsigned direction = wanted.query.number;
  if (field_[direction]) {
    const FieldReading answer = fields_.At(*field_[direction]);
    if (const auto bytes = Whole(answer); bytes && !answer.narrow) builder_.Give(wanted.id, *bytes);
  } else if (counter_[direction]) {
    const GpmAnswer& answer = metrics_.At(*counter_[direction]);
    if (answer.value) builder_.Give(wanted.id, static_cast<std::uint64_t>(*answer.value));
    if (answer.never) builder_.gpu.pcie_counters = PcieCounters::kNowhere;
  } else if (builder_.gpu.pcie_counters == PcieCounters::kNowhere) {
    builder_.Missing(wanted.id);
  }
}

/// The driver measures this itself for 20 ms, and the call takes that long.
void PcieTraffic::ReadThroughput(const Wanted& wanted) {
  unsigned kibibytes = 0;
  const unsigned direction = wanted.query.number == 0 ? abi::kPcieSent : abi::kPcieReceived;
  if (builder_.Answered(builder_.nvml_device.Call(builder_.nvml_device.nvml().pcie_throughput,
                                                  direction, &kibibytes),
                        {&wanted, 1}))
    builder_.Give(wanted.id, kibibytes * 1024.0);
}

void PcieTraffic::GiveRate(const Wanted& wanted) {
  const unsigned direction = wanted.query.number;
  std::optional<double> rate;
  if (rate_[direction]) {
    const GpmAnswer& answer = metrics_.At(*rate_[direction]);
    if (answer.value) rate = *answer.value * kMebibyte;
    if (answer.never) builder_.gpu.pcie_rate_by_gpm = false;
  } else if (field_[direction]) {
    const FieldReading answer = fields_.At(*field_[direction]);
    if (const auto bytes = Whole(answer); bytes && !answer.narrow)
      rate = builder_.gpu.pcie_rates[direction].Add(builder_.now, *bytes);
  } else {
    ReadThroughput(wanted);
  }
  if (rate) builder_.Give(wanted.id, *rate);
}

void PcieTraffic::Give() {
  for (const Wanted& wanted : builder_.Of(NvmlCall::kPcieTraffic)) GiveCounter(wanted);
  for (const Wanted& wanted : builder_.Of(NvmlCall::kPcieRate)) GiveRate(wanted);
  for (const auto& place : field_) {
    if (!place) continue;
    const FieldReading answer = fields_.At(*place);
    // A 32-bit counter wraps several times a second at a link's full speed and is useless.
    if (answer.never || answer.narrow)
      builder_.gpu.pcie_counters = builder_.gpu.gpm.Supported(builder_.nvml_device).value_or(false)
                                       ? PcieCounters::kGpm
                                       : PcieCounters::kNowhere;
  }
}

LinkTraffic::LinkTraffic(SampleBuilder& builder, std::optional<bool> gpm, FieldBatch& fields,
                         GpmBatch& metrics)
    : builder_(builder), fields_(fields), metrics_(metrics) {
  const auto totals = builder.Of(NvmlCall::kFabricTraffic),
             rates = builder.Of(NvmlCall::kFabricRate);
  const auto links = builder.Of(NvmlCall::kFabricLinkTraffic),
             link_rates = builder.Of(NvmlCall::kFabricLinkRate);
  if (totals.empty() && rates.empty() && links.empty() && link_rates.empty()) return;
  links_ = builder.Links();
  if (links_ == nullptr) return;
  if (links_->empty() || builder.gpu.link_counters == LinkCounters::kNowhere) {
    for (const auto& wanted : {totals, rates, links, link_rates}) builder.Missing(wanted);
    links_ = nullptr;
    return;
  }
  const bool by_gpm = gpm.value_or(false) && builder.gpu.link_rate_by_gpm;
  bool counters = !totals.empty(), link_counters = !links.empty();
  for (const Wanted& wanted : rates) {
    if (wanted.query.number == kBoth || !by_gpm) {
      counters = true;
    } else {
      rate_[wanted.query.number] =
          metrics.Add(wanted.query.number == 0 ? abi::kGpmLinksSent : abi::kGpmLinksReceived);
    }
  }
  for (const Wanted& wanted : link_rates) {
    if (wanted.query.number == kBoth || !by_gpm) {
      link_counters = true;
      continue;
    }
    for (const unsigned link : *links_) {
      const std::size_t place = metrics.Add(LinkMetric(wanted.query.number, link));
      if (!first_link_rate_[wanted.query.number]) first_link_rate_[wanted.query.number] = place;
    }
  }
  if (counters && !builder.gpu.sum_of_links) AddTotals();
  if (link_counters || (counters && builder.gpu.sum_of_links)) AddLinks();
}

void LinkTraffic::AddTotals() {
  for (unsigned direction = 0; direction < kDirections; ++direction)
    total_[direction] = fields_.Add(abi::kFieldLinkSent + direction, abi::kAllLinks);
}

void LinkTraffic::AddLinks() {
  for (unsigned direction = 0; direction < kDirections; ++direction)
    for (const unsigned link : *links_) {
      const std::size_t place = fields_.Add(LinkField(builder_.gpu.link_counters, direction), link);
      if (!first_link_[direction]) first_link_[direction] = place;
    }
}

/// The sum over all links, in KiB; nothing if one of them did not answer: a sum must not fall
/// because a link was silent.
std::optional<std::uint64_t> LinkTraffic::Total(unsigned direction) const {
  if (total_[direction]) return Whole(fields_.At(*total_[direction]));
  if (!first_link_[direction]) return std::nullopt;
  std::uint64_t sum = 0;
  bool any = false;
  for (std::size_t i = 0; i < links_->size(); ++i) {
    const FieldReading answer = fields_.At(*first_link_[direction] + i);
    const auto count = Whole(answer);
    if (!count && !answer.never) return std::nullopt;
    sum += count.value_or(0);
    any = any || count;
  }
  if (!any) return std::nullopt;
  return Kibibytes(builder_.gpu.link_counters, sum);
}

void LinkTraffic::GiveRate(const Wanted& wanted) {
  const unsigned direction = wanted.query.number;
  std::optional<double> rate;
  if (direction < kDirections && rate_[direction]) {
    const GpmAnswer& answer = metrics_.At(*rate_[direction]);
    if (answer.value) rate = *answer.value * kMebibyte;
    if (answer.never) builder_.gpu.link_rate_by_gpm = false;
  } else {
    const auto sent = direction == 1 ? std::optional<std::uint64_t>(0) : Total(0);
    const auto received = direction == 0 ? std::optional<std::uint64_t>(0) : Total(1);
    if (sent && received)
      rate = builder_.gpu.link_rates[direction].Add(builder_.now, *sent + *received);
    if (rate) *rate *= 1024;
  }
  if (rate) builder_.Give(wanted.id, *rate);
}

/// Determines from the refused fields where the driver has the counters.
void LinkTraffic::NoteLinks() {
  SampledGpu& gpu = builder_.gpu;
  if (total_[0] && fields_.At(*total_[0]).never) gpu.sum_of_links = true;
  if (!first_link_[0]) return;
  bool never = true;
  for (std::size_t i = 0; i < links_->size(); ++i)
    never = never && fields_.At(*first_link_[0] + i).never;
  if (!never) return;
  gpu.link_counters =
      gpu.link_counters == LinkCounters::kKibibytes ? LinkCounters::kBytes : LinkCounters::kNowhere;
}

/// In KiB.
std::optional<std::uint64_t> LinkTraffic::OfLink(unsigned direction, std::size_t place) const {
  const auto count = Whole(fields_.At(*first_link_[direction] + place));
  if (!count) return std::nullopt;
  return Kibibytes(builder_.gpu.link_counters, *count);
}

void LinkTraffic::GiveLinks(const Wanted& wanted) {
  for (std::size_t i = 0; i < links_->size(); ++i)
    if (const auto count = OfLink(wanted.query.number, i))
      builder_.Give(wanted.id, *count, static_cast<int>((*links_)[i]));
}

void LinkTraffic::GiveLinkRates(const Wanted& wanted) {
  const unsigned direction = wanted.query.number;
  for (std::size_t i = 0; i < links_->size(); ++i) {
    std::optional<double> rate;
    if (direction < kDirections && first_link_rate_[direction]) {
      const GpmAnswer& answer = metrics_.At(*first_link_rate_[direction] + i);
      if (answer.value) rate = *answer.value * kMebibyte;
    } else if (first_link_[0]) {
      const auto sent = direction == 1 ? std::optional<std::uint64_t>(0) : OfLink(0, i);
      const auto received = direction == 0 ? std::optional<std::uint64_t>(0) : OfLink(1, i);
      if (sent && received)
        rate = builder_.gpu.single_link_rates[direction][(*links_)[i]].Add(builder_.now,
                                                                           *sent + *received);
      if (rate) *rate *= 1024;
    }
    if (rate) builder_.Give(wanted.id, *rate, static_cast<int>((*links_)[i]));
  }
}

void LinkTraffic::Give() {
  if (links_ == nullptr) return;
  for (const Wanted& wanted : builder_.Of(NvmlCall::kFabricTraffic))
    if (const auto total = Total(wanted.query.number)) builder_.Give(wanted.id, *total);
  for (const Wanted& wanted : builder_.Of(NvmlCall::kFabricRate)) GiveRate(wanted);
  for (const Wanted& wanted : builder_.Of(NvmlCall::kFabricLinkTraffic)) GiveLinks(wanted);
  for (const Wanted& wanted : builder_.Of(NvmlCall::kFabricLinkRate)) GiveLinkRates(wanted);
  NoteLinks();
}

void ReadLinks(SampleBuilder& builder) {
  const auto errors = builder.Of(NvmlCall::kFabricLinkErrors),
             states = builder.Of(NvmlCall::kFabricLinkState);
  if (errors.empty() && states.empty()) return;
  const std::vector<unsigned>* links = builder.Links();
  if (links == nullptr) return;
  if (links->empty()) {
    builder.Missing(errors);
    builder.Missing(states);
    return;
  }
  NvmlDevice& nvml_device = builder.nvml_device;
  for (const Wanted& wanted : errors) {
    bool never = true;
    for (const unsigned link : *links) {
      unsigned long long count = 0;
      const bool answered =
          nvml_device.Call(nvml_device.nvml().nvlink_errors, link, wanted.query.number, &count);
      never = never && !answered && IsPermanent(nvml_device.last());
      if (answered) builder.Give(wanted.id, std::uint64_t{count}, static_cast<int>(link));
    }
    if (never) builder.Missing(wanted.id);
  }
  for (const Wanted& wanted : states)
    for (const unsigned link : *links) {
      unsigned active = 0;
      if (nvml_device.Call(nvml_device.nvml().nvlink_state, link, &active))
        builder.Give(wanted.id, std::uint64_t{active}, static_cast<int>(link));
    }
}

}  // namespace penstock::backend::nvidia
