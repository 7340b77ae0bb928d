// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

namespace rmm_uvm {

/** @brief Whether a feature can be used here, and if not, why. Degraded is a value, no error. */
struct availability {
  bool available{true};  ///< the feature works
  std::string reason;    ///< why not, one sentence; empty when available

  /** @brief The feature works. */
  [[nodiscard]] static availability yes() { return {}; }
  /** @brief The feature does not work, for `reason`. */
  [[nodiscard]] static availability no(std::string reason) { return {false, std::move(reason)}; }
};

}  // namespace rmm_uvm
