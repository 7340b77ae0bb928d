// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/cuda/nvml.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace rmm_uvm::cuda {
namespace {

constexpr std::uint64_t kib = 1024;

/** @brief How often the list of processes is asked for when it keeps growing. */
constexpr int process_list_attempts = 4;
constexpr auto not_told             = std::numeric_limits<unsigned long long>::max();

}  // namespace

nvml::nvml(nvml_api const& api) noexcept : api_{api}, owner_{::getpid()} {}

opened_nvml nvml::open(nvml_api const& api)
{
  if (auto const result = api.init(); result != nvml_api::success) {
    return {
      nullptr,
      availability::no(std::string{"NVML cannot be initialised: "} + api.error_string(result))};
  }
  std::shared_ptr<nvml> opened{new nvml{api}};
  return {std::move(opened), availability::yes()};
}

nvml::~nvml()
{
  // NVML counts its users in each process; a forked child never was one.
  if (::getpid() == owner_) { static_cast<void>(api_.shutdown()); }
}

availability nvml::answered(nvml_api::result result, char const* call) const
{
  if (result == nvml_api::success) { return availability::yes(); }
  return availability::no(std::string{call} + ": " + api_.error_string(result));
}

availability nvml::find(std::string const& uuid, nvml_api::device& found) const
{
  auto asked = answered(api_.by_uuid(uuid.c_str(), &found), "nvmlDeviceGetHandleByUUID");
  if (!asked.available) { asked.reason = "NVML knows no device " + uuid + ": " + asked.reason; }
  return asked;
}

availability nvml::devices(std::vector<nvml_device>& found) const
{
  found.clear();
  unsigned count = 0;
  if (auto asked = answered(api_.device_count(&count), "nvmlDeviceGetCount"); !asked.available) {
    return asked;
  }
  for (unsigned index = 0; index < count; ++index) {
    nvml_api::device device = nullptr;
    // One that has failed, or that this process may not see, hides no others.
    if (api_.by_index(index, &device) != nvml_api::success) { continue; }
    std::array<char, nvml_api::text_bytes + 1> uuid{};
    std::array<char, nvml_api::text_bytes + 1> name{};
    if (api_.uuid(device, uuid.data(), nvml_api::text_bytes) != nvml_api::success) { continue; }
    static_cast<void>(api_.name(device, name.data(), nvml_api::text_bytes));
    found.push_back({uuid.data(), name.data()});
  }
  return availability::yes();
}

nvml_api::result nvml::memory_of(nvml_api::device device, nvml_memory& found) const noexcept
{
  if (api_.memory2 != nullptr) {
    nvml_api::memory_v2 memory;
    if (api_.memory2(device, &memory) == nvml_api::success) {
      found = {memory.used, memory.free, memory.total};
      return nvml_api::success;
    }
  }
  nvml_api::memory_v1 memory;
  auto const result = api_.memory(device, &memory);
  if (result == nvml_api::success) { found = {memory.used, memory.free, memory.total}; }
  return result;
}

availability nvml::memory(std::string const& uuid, nvml_memory& found) const
{
  nvml_api::device device = nullptr;
  if (auto asked = find(uuid, device); !asked.available) { return asked; }
  return answered(memory_of(device, found), "nvmlDeviceGetMemoryInfo");
}

availability nvml::pcie(std::string const& uuid, pcie_throughput& found) const
{
  nvml_api::device device = nullptr;
  if (auto asked = find(uuid, device); !asked.available) { return asked; }
  unsigned received = 0;
  unsigned sent     = 0;
  auto result       = api_.pcie_throughput(device, nvml_api::pcie_received, &received);
  if (result == nvml_api::success) {
    result = api_.pcie_throughput(device, nvml_api::pcie_sent, &sent);
  }
  if (result == nvml_api::success) { found = {received * kib, sent * kib}; }
  return answered(result, "nvmlDeviceGetPcieThroughput");
}

/** @param[out] found replaced, on success */
nvml_api::result nvml::processes_of(nvml_api::device device,
                                    std::vector<nvml_api::process_info>& found) const
{
  auto result = nvml_api::too_small;
  auto count  = std::max(static_cast<unsigned>(found.size()), 16U);
  for (int i = 0; i < process_list_attempts && result == nvml_api::too_small; ++i) {
    found.resize(std::size_t{count} + 16 * static_cast<std::size_t>(i));
    count  = static_cast<unsigned>(found.size());
    result = api_.processes(device, &count, found.data());
  }
  if (result == nvml_api::success) { found.resize(std::min<std::size_t>(count, found.size())); }
  return result;
}

availability nvml::processes(std::string const& uuid, std::vector<nvml_process>& found) const
{
  found.clear();
  if (api_.processes == nullptr) {
    return availability::no("processes are listed by driver 510 or newer");
  }
  nvml_api::device device = nullptr;
  if (auto asked = find(uuid, device); !asked.available) { return asked; }
  std::vector<nvml_api::process_info> infos;
  if (auto const result = processes_of(device, infos); result != nvml_api::success) {
    return answered(result, "nvmlDeviceGetComputeRunningProcesses");
  }
  for (auto const& info : infos) {
    bool const told = info.used != not_told;
    found.push_back({info.pid, told ? std::optional<std::uint64_t>{info.used} : std::nullopt});
  }
  return availability::yes();
}

nvml_memory_reader::nvml_memory_reader(std::shared_ptr<nvml const> library, std::string const& uuid)
  : library_{std::move(library)}
{
  if (!library_->find(uuid, device_).available) { device_ = nullptr; }
}

bool nvml_memory_reader::read(device_memory& memory) noexcept
{
  nvml_memory found;
  if (device_ == nullptr || library_->memory_of(device_, found) != nvml_api::success) {
    return false;
  }
  memory = {found.free_bytes, found.total_bytes};
  return true;
}

nvml_unmanaged_reader::nvml_unmanaged_reader(std::shared_ptr<nvml const> library,
                                             std::string const& uuid)
  : library_{std::move(library)}
{
  bool const told = library_->api_.processes != nullptr;
  if (!told || !library_->find(uuid, device_).available) { device_ = nullptr; }
}

bool nvml_unmanaged_reader::read(std::size_t& bytes) const noexcept
try {
  std::vector<nvml_api::process_info> found;
  if (device_ == nullptr || library_->processes_of(device_, found) != nvml_api::success) {
    return false;
  }
  bool told       = false;
  std::size_t sum = 0;
  for (auto const& each : found) {
    if (each.used == not_told) { continue; }
    told = true;
    sum += static_cast<std::size_t>(each.used);
  }
  if (told) { bytes = sum; }
  return told;
} catch (...) {  // no memory for the list
  return false;
}

unmanaged_reader_maker nvml_unmanaged_readers()
{
  return [](std::string const& uuid) -> unmanaged_reader {
    auto const loaded = load_nvml_api();
    if (!loaded.loaded.available) { return {}; }
    auto opened = nvml::open(loaded.api).library;
    if (opened == nullptr) { return {}; }
    auto reader       = std::make_shared<nvml_unmanaged_reader>(std::move(opened), uuid);
    std::size_t bytes = 0;
    if (!reader->read(bytes)) { return {}; }  // what is not told now never is
    return [reader](std::size_t& read) { return reader->read(read); };
  };
}

}  // namespace rmm_uvm::cuda
