// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/driver/uvm_driver.hpp>

#include <memory>
#include <utility>

namespace rmm_uvm {

/**
 * @brief Tells how much memory of one device is in use, by all processes together.
 *
 * For the sampler, which asks ten times a second. Thread-safe.
 */
class device_memory_reader {
 public:
  device_memory_reader()                                       = default;
  device_memory_reader(device_memory_reader const&)            = delete;
  device_memory_reader& operator=(device_memory_reader const&) = delete;
  device_memory_reader(device_memory_reader&&)                 = delete;
  device_memory_reader& operator=(device_memory_reader&&)      = delete;
  virtual ~device_memory_reader()                              = default;

  /**
   * @brief Reads free and total memory of the device.
   * @param[out] memory set when true is returned
   * @return false when it cannot be told now
   */
  [[nodiscard]] virtual bool read(device_memory& memory) noexcept = 0;
};

/** @brief Reads through a driver, which has a CUDA context on the device already. */
class driver_memory_reader final : public device_memory_reader {
 public:
  /** @param driver kept alive; not null */
  explicit driver_memory_reader(std::shared_ptr<uvm_driver> driver) noexcept
    : driver_{std::move(driver)}
  {
  }
  [[nodiscard]] bool read(device_memory& memory) noexcept override
  {
    device_memory found;
    if (!driver_->memory(found).ok()) { return false; }
    memory = found;
    return true;
  }

 private:
  std::shared_ptr<uvm_driver> driver_;
};

}  // namespace rmm_uvm
