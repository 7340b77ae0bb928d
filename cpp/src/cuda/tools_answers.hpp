// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/cuda/uvm_tools.hpp>
#include <rmm_uvm/driver/availability.hpp>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

namespace rmm_uvm::cuda {

/** @brief Why /dev/nvidia-uvm-tools cannot be opened. @param error errno */
[[nodiscard]] inline availability why_tools_do_not_open(int error)
{
  std::string const path{uvm_tools::tools_path};
  switch (error) {
    case ENOENT:
      return availability::no(path +
                              " does not exist: \"nvidia-modprobe -u\" makes it; in a "
                              "container, hand it in beside /dev/nvidia-uvm");
    case EACCES:
    case EPERM: return availability::no(path + " may not be opened by this user");
    default: return availability::no(path + " cannot be opened: " + std::strerror(error));
  }
}

/** @brief What an ioctl of the tools interface answered: its own error, or the driver's status. */
[[nodiscard]] inline availability answered(int error, std::uint32_t status, std::string const& what)
{
  if (error < 0) { return availability::no(what + ": " + std::strerror(-error)); }
  if (status != 0) { return availability::no(what + " (status " + std::to_string(status) + ")"); }
  return availability::yes();
}

}  // namespace rmm_uvm::cuda
