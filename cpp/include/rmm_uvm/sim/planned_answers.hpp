// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/status.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rmm_uvm::sim {

/** @brief What calls of a simulated device answer in their stead, once each. Touches nothing. */
class planned_answers {
 public:
  /** @brief The call after `skip` further ones of that name answers `answer`. */
  void plan(std::string_view call, status answer, unsigned skip)
  {
    planned_.push_back({std::string{call}, answer, skip});
  }
  /** @brief What was planned for this call, which meets it or is one of those before. */
  [[nodiscard]] std::optional<status> met_by(std::string_view call) noexcept;
  /** @brief Forgets what no call met; returns how many. */
  std::size_t cancel() noexcept;

 private:
  struct planned {
    std::string call;
    status given;
    unsigned skip{0};
  };

  std::vector<planned> planned_;
};

}  // namespace rmm_uvm::sim
