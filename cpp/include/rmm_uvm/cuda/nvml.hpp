// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/cuda/nvml_api.hpp>
#include <rmm_uvm/driver/availability.hpp>
#include <rmm_uvm/driver/device_memory_reader.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rmm_uvm::cuda {

class nvml;

/** @brief NVML, or why there is none. */
struct opened_nvml {
  std::shared_ptr<nvml> library;  ///< null when not opened
  availability opened;
};

/** @brief What NVML says about the memory of one device. */
struct nvml_memory {
  std::uint64_t used_bytes{0};   ///< by processes; before driver 510 with what the driver reserves
  std::uint64_t free_bytes{0};   ///< by nobody
  std::uint64_t total_bytes{0};  ///< physical: more than CUDA's total, which leaves out a reserve
};

/** @brief Bytes a second over the PCIe bus, all traffic of one device. */
struct pcie_throughput {
  std::uint64_t received_bytes_per_second{0};  ///< by the device
  std::uint64_t sent_bytes_per_second{0};      ///< by the device
};

/** @brief How busy a device was in NVML's latest sampling period, 1/6 s to 1 s. */
struct nvml_utilization {
  unsigned kernel_percent{0};  ///< of the time in which a kernel ran
  unsigned memory_percent{0};  ///< of the time in which its memory was read or written
};

/** @brief A device's NVLinks together, at one moment. */
struct nvlink_reading {
  unsigned active_links{0};
  std::uint64_t link_bytes_per_second{0};  ///< of each, each way; 0: not told
  std::uint64_t sent_bytes{0};      ///< by the device, data only, since some time in the past
  std::uint64_t received_bytes{0};  ///< likewise
  std::int64_t read_at_us{0};       ///< when the last two were read, by NVML's clock
};

/** @brief A device as NVML names it. */
struct nvml_device {
  std::string uuid;  ///< "GPU-..."
  std::string name;
};

/** @brief A process with a CUDA context on a device. */
struct nvml_process {
  unsigned pid{0};                          ///< in a container it may be the host's number
  std::optional<std::uint64_t> used_bytes;  ///< of device memory; none when not told
};

/**
 * @brief NVIDIA's management library: device memory of all processes, without a CUDA context.
 *
 * Devices are named by UUID, since NVML's order is not CUDA's. Each question answers whether it
 * could be asked and, if not, why. Thread-safe, as NVML itself is.
 */
class nvml {
 public:
  /** @brief Initialises NVML. @param api resolved table; copied */
  [[nodiscard]] static opened_nvml open(nvml_api const& api);
  ~nvml();
  nvml(nvml const&)            = delete;
  nvml& operator=(nvml const&) = delete;
  nvml(nvml&&)                 = delete;
  nvml& operator=(nvml&&)      = delete;

  /** @brief Lists the devices, in NVML's order. @param[out] found replaced */
  [[nodiscard]] availability devices(std::vector<nvml_device>& found) const;
  /** @brief Reads the memory of one device. */
  [[nodiscard]] availability memory(std::string const& uuid, nvml_memory& found) const;
  /** @brief Measures for 20 ms each way, in the driver: the caller is blocked for twice that. */
  [[nodiscard]] availability pcie(std::string const& uuid, pcie_throughput& found) const;
  /** @brief Reads how busy one device is. A device that is divided (MIG) does not tell. */
  [[nodiscard]] availability utilization(std::string const& uuid, nvml_utilization& found) const;
  /** @brief Reads the NVLinks of one device: not available where it has none, or does not tell. */
  [[nodiscard]] availability nvlink(std::string const& uuid, nvlink_reading& found) const;
  /** @brief Lists the processes that compute on one device. @param[out] found replaced */
  [[nodiscard]] availability processes(std::string const& uuid,
                                       std::vector<nvml_process>& found) const;

 private:
  friend class nvml_memory_reader;
  friend class nvml_unmanaged_reader;
  explicit nvml(nvml_api const& api) noexcept;

  [[nodiscard]] availability answered(nvml_api::result result, char const* call) const;
  [[nodiscard]] availability find(std::string const& uuid, nvml_api::device& found) const;
  [[nodiscard]] nvml_api::result memory_of(nvml_api::device device,
                                           nvml_memory& found) const noexcept;
  [[nodiscard]] nvml_api::result processes_of(nvml_api::device device,
                                              std::vector<nvml_api::process_info>& found) const;

  nvml_api api_;
  int owner_;  // the process that initialised it
};

/** @brief Device memory through NVML, for processes that have no CUDA context. */
class nvml_memory_reader final : public device_memory_reader {
 public:
  /**
   * @param library kept
   * @param uuid of the device; when there is none of it, `read` answers false
   */
  nvml_memory_reader(std::shared_ptr<nvml const> library, std::string const& uuid);
  [[nodiscard]] bool read(device_memory& memory) noexcept override;

 private:
  std::shared_ptr<nvml const> library_;
  nvml_api::device device_{nullptr};
};

/**
 * @brief How much of a device is nobody's managed memory: what NVML says that each process holds.
 *
 * NVML leaves managed memory out there, and counts memory of cudaMalloc at once (measured on an
 * H100, driver 580).
 */
class nvml_unmanaged_reader {
 public:
  /** @param library, uuid as for `nvml_memory_reader` */
  nvml_unmanaged_reader(std::shared_ptr<nvml const> library, std::string const& uuid);
  /** @brief Reads it. @return false where it is not told, of any process: then they are hidden */
  [[nodiscard]] bool read(std::size_t& bytes) const noexcept;

 private:
  std::shared_ptr<nvml const> library_;
  nvml_api::device device_{nullptr};
};

/** @brief Reads how much of a device is nobody's managed memory; false where it is not told. */
using unmanaged_reader = std::function<bool(std::size_t& bytes)>;

/** @brief Makes a reader for the device of a UUID; empty where there is none. */
using unmanaged_reader_maker = std::function<unmanaged_reader(std::string const& uuid)>;

/** @brief Readers over NVML, which is loaded when the first is made. */
[[nodiscard]] unmanaged_reader_maker nvml_unmanaged_readers();

}  // namespace rmm_uvm::cuda
