#include "sim/nvidia-smi/mig_tables.h"

#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <iterator>

namespace smi {
namespace {

// A line of a table: texts at columns, between bars.
class Row {
 public:
  explicit Row(int width) : text_(static_cast<std::size_t>(width), ' ') {
    text_.front() = text_.back() = '|';
  }
  Row& Left(int column, const std::string& text) {
    text_.replace(static_cast<std::size_t>(column), text.size(), text);
    return *this;
  }
  /// `column` is that of the last character.
  Row& Right(int column, const std::string& text) {
    return Left(column + 1 - static_cast<int>(text.size()), text);
  }
  Row& Right(int column, NvUint number) { return Right(column, std::to_string(number)); }
  Row& Left(int column, NvUint number) { return Left(column, std::to_string(number)); }
  void Print() const { std::puts(text_.c_str()); }

 private:
  std::string text_;
};

void Rule(int width, char fill) {
  const char end = fill == '=' ? '|' : '+';
  std::printf("%c%s%c\n", end, std::string(static_cast<std::size_t>(width - 2), fill).c_str(), end);
}

// Prints a title and a heading, whose lines have `more` spaces behind their first `at` characters.
void Heading(int width, const char* title, std::initializer_list<const char*> lines, std::size_t at,
             std::size_t more) {
  Rule(width, '-');
  Row(width).Left(2, title).Print();
  for (const char* line : lines) {
    std::string text = line;
    if (text.size() > at) text.insert(at, more, ' ');
    Row(width).Left(1, text).Print();
  }
  Rule(width, '=');
}

// Since 575, names of profiles have two more columns.
int MoreOf(const Gpu& gpu) { return gpu.nvml().Branch() >= 575 ? 2 : 0; }

std::string Gibibytes(NvUlong mebibytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", static_cast<double>(mebibytes) / 1024);
  return text;
}

// Lists by slices; among equal ones, the plain profile first.
std::vector<NvGpuInstanceProfile2> Sorted(const Gpu& gpu) {
  constexpr const char* kSuffixes[] = {"", "+me", "+gfx", "+me.all", "-me"};
  const auto place = [&](const NvGpuInstanceProfile2& profile) {
    const std::string name = profile.name;
    const std::size_t at = name.find_first_of("+-");
    const std::string suffix = at == std::string::npos ? "" : name.substr(at);
    return std::find(std::begin(kSuffixes), std::end(kSuffixes), suffix) - std::begin(kSuffixes);
  };
  std::vector<NvGpuInstanceProfile2> all = ProfilesOf(gpu);
  // Those with more memory than the plain one follow the others with as many slices.
  std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
    if (a.sliceCount != b.sliceCount) return a.sliceCount < b.sliceCount;
    if (a.memorySizeMB != b.memorySizeMB) return a.memorySizeMB < b.memorySizeMB;
    return place(a) < place(b);
  });
  return all;
}

void PrintList(const std::vector<NvPlacement>& placements, NvUint profile) {
  std::printf("Profile ID %2u %s: {", profile, placements.size() > 1 ? "Placements" : "Placement ");
  for (std::size_t i = 0; i < placements.size(); i++)
    std::printf("%s%u", i ? "," : "", placements[i].start);
  std::printf("}:%u\n", placements.empty() ? 0 : placements[0].size);
}

template <typename Handle>
std::vector<NvPlacement> Placements(const Nvml& nvml, const char* call, Handle handle, NvUint id) {
  NvUint count = 0;
  if (nvml.Call(call, handle, id, static_cast<NvPlacement*>(nullptr), &count) != NV_SUCCESS)
    return {};
  std::vector<NvPlacement> all(count);
  if (nvml.Call(call, handle, id, all.data(), &count) != NV_SUCCESS) return {};
  all.resize(count);
  return all;
}

std::string FreeOf(NvUint remaining, NvUint most) {
  return std::to_string(remaining) + "/" + std::to_string(most);
}

}  // namespace

void PrintProfiles(const std::vector<const Gpu*>& gpus) {
  const int more = MoreOf(*gpus.front()), width = 79 + more;
  Heading(width, "GPU instance profiles:",
          {" GPU   Name             ID    Instances   Memory     P2P    SM    DEC   ENC",
           "                              Free/Total   GiB              CE    JPEG  OFA"},
          16, static_cast<std::size_t>(more));
  for (const Gpu* gpu : gpus) {
    for (const NvGpuInstanceProfile2& profile : Sorted(*gpu)) {
      NvUint left = 0;
      gpu->nvml().Call("nvmlDeviceGetGpuInstanceRemainingCapacity", gpu->device(), profile.id,
                       &left);
      Row(width)
          .Right(4, gpu->index())
          .Left(7, profile.name)
          .Right(26 + more, profile.id)
          .Left(32 + more, FreeOf(left, profile.instanceCount))
          .Left(43 + more, Gibibytes(profile.memorySizeMB))
          .Left(54 + more, profile.isP2pSupported ? "Yes" : "No")
          .Left(61 + more, profile.multiprocessorCount)
          .Right(68 + more, profile.decoderCount)
          .Right(74 + more, profile.encoderCount)
          .Print();
      Row(width)
          .Right(62 + more, profile.copyEngineCount)
          .Right(68 + more, profile.jpegCount)
          .Right(74 + more, profile.ofaCount)
          .Print();
      Rule(width, '-');
    }
  }
}

void PrintPlacements(const std::vector<const Gpu*>& gpus) {
  for (const Gpu* gpu : gpus) {
    for (const NvGpuInstanceProfile2& profile : Sorted(*gpu)) {
      std::printf("GPU %2u ", gpu->index());
      PrintList(Placements(gpu->nvml(), "nvmlDeviceGetGpuInstancePossiblePlacements_v2",
                           gpu->device(), profile.id),
                profile.id);
    }
  }
}

void PrintInstances(const std::vector<Instance>& instances) {
  const int more = MoreOf(*instances.front().gpu), width = 57 + more;
  Heading(width, "GPU instances:",
          {" GPU   Name             Profile  Instance   Placement",
           "                          ID       ID       Start:Size"},
          16, static_cast<std::size_t>(more));
  for (const Instance& instance : instances) {
    Row(width)
        .Right(4, instance.gpu->index())
        .Left(7, instance.profile.name)
        .Right(28 + more, instance.info.profileId)
        .Right(37 + more, instance.info.id)
        .Right(50 + more, std::to_string(instance.info.placement.start) + ":" +
                              std::to_string(instance.info.placement.size))
        .Print();
    Rule(width, '-');
  }
}

void PrintComputeProfiles(const std::vector<Instance>& instances) {
  const int more = MoreOf(*instances.front().gpu), width = 88 + more;
  Heading(width, "Compute instance profiles:",
          {" GPU     GPU       Name             Profile  Instances   Exclusive       Shared",
           "       Instance                       ID     Free/Total     SM       DEC   ENC   OFA",
           "         ID                                                          CE    JPEG"},
          28, static_cast<std::size_t>(more));
  for (const Instance& instance : instances) {
    for (const NvComputeProfile2& profile : ProfilesOf(instance)) {
      NvUint left = 0;
      instance.gpu->nvml().Call("nvmlGpuInstanceGetComputeInstanceRemainingCapacity",
                                instance.handle, profile.id, &left);
      const bool whole = profile.sliceCount == instance.profile.sliceCount;
      Row(width)
          .Right(4, instance.gpu->index())
          .Right(11, instance.info.id)
          .Left(19, profile.name)
          .Right(40 + more, profile.id)
          .Left(41 + more, whole ? "*" : " ")
          .Left(47 + more, FreeOf(left, profile.instanceCount))
          .Left(61 + more, profile.multiprocessorCount)
          .Right(71 + more, profile.sharedDecoderCount)
          .Right(77 + more, profile.sharedEncoderCount)
          .Right(83 + more, profile.sharedOfaCount)
          .Print();
      Row(width)
          .Right(71 + more, profile.sharedCopyEngineCount)
          .Right(77 + more, profile.sharedJpegCount)
          .Print();
      Rule(width, '-');
    }
  }
}

void PrintComputePlacements(const std::vector<Instance>& instances) {
  for (const Instance& instance : instances) {
    for (const NvComputeProfile2& profile : ProfilesOf(instance)) {
      std::printf("GPU %2u GI %2u ", instance.gpu->index(), instance.info.id);
      PrintList(
          Placements(instance.gpu->nvml(), "nvmlGpuInstanceGetComputeInstancePossiblePlacements",
                     instance.handle, profile.id),
          profile.id);
    }
  }
}

void PrintComputes(const std::vector<Compute>& computes) {
  const int more = MoreOf(*computes.front().in.gpu), width = 70 + more;
  Heading(width, "Compute instances:",
          {" GPU     GPU       Name             Profile   Instance   Placement",
           "       Instance                       ID        ID       Start:Size", "         ID"},
          28, static_cast<std::size_t>(more));
  for (const Compute& compute : computes) {
    Row(width)
        .Right(4, compute.in.gpu->index())
        .Right(11, compute.in.info.id)
        .Left(19, compute.profile.name)
        .Right(40 + more, compute.info.profileId)
        .Right(50 + more, compute.info.id)
        .Right(63 + more, std::to_string(compute.info.placement.start) + ":" +
                              std::to_string(compute.info.placement.size))
        .Print();
    Rule(width, '-');
  }
}

namespace {

// The columns of the table of MIG devices.
struct DeviceTable {
  int width, memory;  // `memory`: width of the column with the memory
  int to_bar1;        // from the end of the first line's amounts to that of the second's
  int margin;         // behind the amounts of the first line
};

DeviceTable DeviceTableOf(unsigned branch) {
  if (branch < 530) return {79, 22, 0, 1};
  if (branch < 550) return {89, 32, 0, 2};
  return {91, 34, 2, 4};
}

// `memory_fill`: of the column with the memory; 0: as the others.
void DeviceRule(const DeviceTable& table, char fill, char left, char middle, char right,
                char memory_fill = 0) {
  const auto part = [](int width, char with) {
    return std::string(static_cast<std::size_t>(width), with);
  };
  std::printf("%c%s%c%s%c%s%c%s%c\n", left, part(18, fill).c_str(), middle,
              part(table.memory, memory_fill ? memory_fill : fill).c_str(), middle,
              part(11, fill).c_str(), middle, part(23, fill).c_str(), right);
}

std::string Amounts(NvUlong used, NvUlong total) {
  std::string of = std::to_string(total >> 20);
  of.insert(0, of.size() < 5 ? 5 - of.size() : 0, ' ');
  return std::to_string(used >> 20) + "MiB / " + of + "MiB";
}

// The compute instances of a GPU instance share one cell with its memory.
void PrintDevice(const DeviceTable& table, const Gpu& gpu, const MigDevice& mig, bool first) {
  const int end = 20 + table.memory, last = end - table.margin - 1;
  const auto bars = [&](Row row) { return row.Left(19, "|").Left(end, "|").Left(end + 12, "|"); };
  const NvAttributes& has = mig.attributes;
  const auto errors = Gpu(gpu.nvml(), 0, mig.device).Ecc(NV_ERRORS_UNCORRECTED, NV_ECC_VOLATILE);
  bars(Row(table.width))
      .Right(3, gpu.index())
      .Right(8, mig.instance)
      .Right(12, mig.compute)
      .Right(16, mig.index)
      .Right(last, first ? Amounts(mig.memory.used, mig.memory.total) : "")
      .Left(end + 2, has.multiprocessorCount)
      .Right(end + 10, errors ? std::to_string(*errors) : "N/A")
      .Right(end + 15, has.sharedCopyEngineCount)
      .Right(end + 19, has.sharedEncoderCount)
      .Right(end + 24, has.sharedDecoderCount)
      .Right(end + 29, has.sharedOfaCount)
      .Right(end + 34, has.sharedJpegCount)
      .Print();
  bars(Row(table.width))
      .Right(last + table.to_bar1, first ? Amounts(mig.bar1.bar1Used, mig.bar1.bar1Total) : "")
      .Print();
}

// Prints the rows of one GPU; returns whether there are any.
bool PrintDevices(const DeviceTable& table, const Gpu& gpu) {
  const std::vector<MigDevice> all = MigDevicesOf(gpu);
  for (std::size_t i = 0; i < all.size(); i++) {
    PrintDevice(table, gpu, all[i], i == 0 || all[i].instance != all[i - 1].instance);
    if (i + 1 < all.size() && all[i].instance == all[i + 1].instance)
      DeviceRule(table, '-', '+', '+', '+', ' ');
    else
      DeviceRule(table, '-', '+', '+', '+');
  }
  return !all.empty();
}

}  // namespace

void PrintMigDevices(const std::vector<Gpu>& gpus) {
  if (std::none_of(gpus.begin(), gpus.end(), InMigMode)) return;
  const DeviceTable table = DeviceTableOf(gpus.front().nvml().Branch());
  const int end = 20 + table.memory;
  std::puts("");
  Rule(table.width, '-');
  Row(table.width).Left(2, "MIG devices:").Print();
  DeviceRule(table, '-', '+', '+', '+');
  const auto bars = [&](Row row) { return row.Left(19, "|").Left(end, "|").Left(end + 12, "|"); };
  bars(Row(table.width))
      .Left(2, "GPU  GI  CI  MIG")
      .Right(end - 2, "Memory-Usage")
      .Left(end + 9, "Vol")
      .Left(end + 19, "Shared")
      .Print();
  bars(Row(table.width))
      .Left(7, "ID  ID  Dev")
      .Right(end - 2, "BAR1-Usage")
      .Left(end + 2, "SM     Unc")
      .Left(end + 14, table.width < 89 ? "CE  ENC  DEC  OFA  JPG" : "CE ENC DEC OFA JPG")
      .Print();
  bars(Row(table.width)).Left(end + 9, "ECC").Print();
  DeviceRule(table, '=', '|', '+', '|');
  bool any = false;
  for (const Gpu& gpu : gpus) any |= PrintDevices(table, gpu);
  if (any) return;
  Row(table.width).Left(3, "No MIG devices found").Print();
  Rule(table.width, '-');
}

}  // namespace smi
