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
/// Repairs what a reset repairs; refuses while a process uses the GPU.
int ResetGpus(const Nvml& nvml, const std::vector<std::string>& wanted);

std::string Timestamp(const char* format);
/// "00000000:07:00.0"
std::string BusId(const Gpu& gpu);

}  // namespace smi
