// Samples bytes over PCIe and NVLink, as counters and as rates, from whichever of several places a
// driver has them in.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "backend/nvidia/sampling/sampling_fields.h"

namespace penstock::backend::nvidia {

/// The metrics of one device: collected, requested, read.
class GpmBatch {
 public:
  /// Adds a metric; returns the index of its answer.
  std::size_t Add(unsigned metric);
  void Run(SampleBuilder& builder);
  const GpmAnswer& At(std::size_t place) const { return answers_[place]; }

 private:
  std::vector<unsigned> metrics_;
  std::vector<GpmAnswer> answers_;
};

/// The quantities that are plain GPM metrics.
class GpmQuantities {
 public:
  /// `gpm`: whether the device has GPM; nothing while that is unknown.
  GpmQuantities(SampleBuilder& builder, std::optional<bool> gpm, GpmBatch& batch);

  /// Call it after the batch has run.
  void Give();

 private:
  SampleBuilder& builder_;
  const GpmBatch& batch_;
  std::vector<std::pair<Wanted, std::size_t>> requested_;  // with the index of the answer
};

class PcieTraffic {
 public:
  PcieTraffic(SampleBuilder& builder, std::optional<bool> gpm, FieldBatch& fields,
              GpmBatch& metrics);
  void Give();

 private:
  void GiveCounter(const Wanted& wanted);
  void GiveRate(const Wanted& wanted);
  void ReadThroughput(const Wanted& wanted);

  SampleBuilder& builder_;
  const FieldBatch& fields_;
  const GpmBatch& metrics_;
  std::array<std::optional<std::size_t>, 2> field_, counter_, rate_;  // indexes, by direction
};

class LinkTraffic {
 public:
  LinkTraffic(SampleBuilder& builder, std::optional<bool> gpm, FieldBatch& fields,
              GpmBatch& metrics);
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

  SampleBuilder& builder_;
  FieldBatch& fields_;
  const GpmBatch& metrics_;
  const std::vector<unsigned>* links_ = nullptr;
  std::array<std::optional<std::size_t>, 2> total_, first_link_, rate_,
      first_link_rate_;  // indexes, by direction
};

/// Samples errors and states of links, which have calls of their own.
void ReadLinks(SampleBuilder& builder);

}  // namespace penstock::backend::nvidia
