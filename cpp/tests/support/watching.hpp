// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/monitor/slot.hpp>

#include <memory>
#include <utility>

namespace rmm_uvm::tests {

/** @brief What to watch, with everything else as it is by default. */
[[nodiscard]] inline monitor::slot_settings watching(
  int device_id,
  std::shared_ptr<uvm_driver> driver,
  std::shared_ptr<device_memory_reader> memory = nullptr,
  bool faults                                  = false)
{
  monitor::slot_settings settings;
  settings.device_id = device_id;
  settings.driver    = std::move(driver);
  settings.memory    = std::move(memory);
  settings.faults    = faults;
  return settings;
}

}  // namespace rmm_uvm::tests
