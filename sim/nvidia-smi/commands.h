// Declares the commands of nvidia-smi: each prints, and returns the exit status that the real
// program documents.
#pragma once

#include <string>
#include <vector>

#include "sim/nvidia-smi/nvml.h"

namespace smi {

enum Exit {
  kOk = 0,
  kBadArgument = 2,
  kNotAvailable = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kNotLoaded = 9,
  kNoLibrary = 12,
  kGpuLost = 15,
  kOther = 255
};

struct CsvOptions {
  std::vector<std::string> fields;
  bool header = true, units = true;
};

int ListGpus(const Gpus& gpus);
int QueryGpus(const Nvml& nvml, const Gpus& gpus, const CsvOptions& options);
int QueryProcesses(const Gpus& gpus, const CsvOptions& options);
int PrintTable(const Nvml& nvml, const Gpus& gpus);
int PrintDetails(const Nvml& nvml, const Gpus& gpus);
/// Accepts a number or a name, like the real program.
int SetComputeMode(const Nvml& nvml, const Gpus& gpus, const std::string& mode);
/// Accepts 0, 1, DISABLED or ENABLED.
int SetMigMode(const Nvml& nvml, const Gpus& gpus, const std::string& mode);
/// Runs `nvidia-smi mig` with the arguments behind "mig".
int RunMig(const std::vector<std::string>& arguments);
/// Repairs what a reset repairs; refuses while a process uses the GPU.
int ResetGpus(const Nvml& nvml, const std::vector<std::string>& wanted);

/// Says why no session could be started; returns the exit status.
int ReportInit(const Nvml& nvml);
/// Keeps only the requested GPUs (index, UUID or PCI address), in the order of their indices; false
/// with the first unknown id.
bool Select(Gpus& gpus, const std::vector<std::string>& ids, std::string& unknown);
/// "0, 1" as a list, without the spaces.
std::vector<std::string> SplitCommas(const std::string& text);
std::string Timestamp(const char* format);
/// "00000000:07:00.0"
std::string BusId(const Gpu& gpu);

}  // namespace smi
