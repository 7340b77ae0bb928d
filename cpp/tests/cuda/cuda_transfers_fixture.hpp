// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../support/fake_cuda.hpp"

#include <rmm_uvm/cuda/cuda_transfers.hpp>

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace rmm_uvm::tests {

/** @brief Transfers of device 0 over a fake libcuda, in a thread whose context is of device 1. */
class CudaTransfers : public testing::Test {
 protected:
  using log = std::vector<std::string>;

  static constexpr std::array<transfer, 3> copies{{{100, 200, 8}, {300, 400, 0}, {500, 600, 16}}};

  CudaTransfers()
  {
    auto const driver = std::static_pointer_cast<cuda::cuda_driver>(
      cuda::cuda_driver::open(fake.api(), 0, false).driver);
    transfers     = std::make_shared<cuda::cuda_transfers>(driver);
    fake.contexts = {context_of(1)};  // the caller's, on another device
    static_cast<void>(fake.take_log());
  }

  /** @brief The calls since the last time, without those that every call is wrapped in. */
  [[nodiscard]] log take_work()
  {
    auto calls = fake.take_log();
    std::erase_if(calls, [](std::string const& call) {
      return call.starts_with("cuCtx") || call.starts_with("cuThread") ||
             call.starts_with("cuStreamIsCapturing");
    });
    return calls;
  }
  void expect_put_back()
  {
    EXPECT_EQ(fake.contexts, std::vector{context_of(1)});
    EXPECT_EQ(fake.mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    EXPECT_FALSE(fake.called_in_strict_mode);
  }

  fake_cuda fake;
  std::shared_ptr<cuda::cuda_transfers> transfers;
};

}  // namespace rmm_uvm::tests
