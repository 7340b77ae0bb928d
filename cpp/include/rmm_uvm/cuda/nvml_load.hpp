// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/cuda/nvml.hpp>
#include <rmm_uvm/driver/neighbor_load.hpp>
#include <rmm_uvm/process/locks.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace rmm_uvm::cuda {

/**
 * @brief What NVLinks carried between two readings, each way.
 * @return none where the rate is not told, no time passed, or the counters began anew
 */
[[nodiscard]] std::optional<link_traffic> traffic_between(nvlink_reading const& earlier,
                                                          nvlink_reading const& later) noexcept;

/** @brief What part of their rate they carried, the busier way; none as above. */
[[nodiscard]] std::optional<double> link_fraction(nvlink_reading const& earlier,
                                                  nvlink_reading const& later) noexcept;

/** @brief How busy a device is, as NVML tells. Needs no CUDA context. */
class nvml_load_reader final : public neighbor_load_reader {
 public:
  /**
   * @param library kept
   * @param uuid of the device, "GPU-..."; when there is none of it, `read` answers false
   */
  nvml_load_reader(std::shared_ptr<nvml const> library, std::string uuid);
  [[nodiscard]] bool read(neighbor_load& load) noexcept override;

 private:
  std::shared_ptr<nvml const> library_;
  std::string uuid_;
  ranked_mutex<lock_rank::load> mutex_;
  std::optional<nvlink_reading> before_;  // the links' latest reading
};

/** @brief Makes a reader for the device of a UUID; null where there is none. */
using load_reader_maker =
  std::function<std::shared_ptr<neighbor_load_reader>(std::array<std::uint8_t, 16> const& uuid)>;

/** @brief Readers over NVML, which is loaded when the first is made. */
[[nodiscard]] load_reader_maker nvml_load_readers();

/** @brief A GPU's UUID as NVML writes it, "GPU-...". */
[[nodiscard]] std::string uuid_text(std::array<std::uint8_t, 16> const& uuid);

}  // namespace rmm_uvm::cuda
