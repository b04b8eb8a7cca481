// Bytes over PCIe and over NVLink, as counters and as rates: from whichever of several places a driver has them in.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "vendor/nvidia/sampling_fields.h"

namespace penstock::vendor::nvidia {

/// Metrics of one device: collected, asked for, read.
class GpmBatch {
 public:
  /// The place of its answer.
  std::size_t Add(unsigned metric);
  void Run(Taking& taking);
  const GpmAnswer& At(std::size_t place) const { return answers_[place]; }

 private:
  std::vector<unsigned> metrics_;
  std::vector<GpmAnswer> answers_;
};

/// The quantities that are GPM's and nothing else.
class GpmQuantities {
 public:
  /// `gpm`: whether the device has it; nothing while that is not known.
  GpmQuantities(Taking& taking, std::optional<bool> gpm, GpmBatch& batch);

  /// After the batch has run.
  void Give();

 private:
  Taking& taking_;
  const GpmBatch& batch_;
  std::vector<std::pair<Wanted, std::size_t>> asked_;  // with the place of the answer
};

class PcieTraffic {
 public:
  PcieTraffic(Taking& taking, std::optional<bool> gpm, FieldBatch& fields, GpmBatch& metrics);
  void Give();

 private:
  void GiveCounter(const Wanted& wanted);
  void GiveRate(const Wanted& wanted);
  void AskThroughput(const Wanted& wanted);

  Taking& taking_;
  const FieldBatch& fields_;
  const GpmBatch& metrics_;
  std::array<std::optional<std::size_t>, 2> field_, counter_, rate_;  // places, by direction
};

class LinkTraffic {
 public:
  LinkTraffic(Taking& taking, std::optional<bool> gpm, FieldBatch& fields, GpmBatch& metrics);
  void Give();

 private:
  void AddTotals();
  void AddLinks();
  void NoteLinks();
  std::optional<std::uint64_t> Total(unsigned direction) const;
  std::optional<std::uint64_t> OfLink(unsigned direction, std::size_t place) const;
  void GiveRate(const Wanted& wanted);
  void GiveLinks(const Wanted& wanted);
  void GiveLinkRates(const Wanted& wanted);

  Taking& taking_;
  FieldBatch& fields_;
  const GpmBatch& metrics_;
  const std::vector<unsigned>* links_ = nullptr;
  std::array<std::optional<std::size_t>, 2> total_, first_link_, rate_, first_link_rate_;  // places, by direction
};

/// Errors and states of links, by calls of their own.
void AskLinks(Taking& taking);

}  // namespace penstock::vendor::nvidia
