// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "residency_manager_fixture.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

namespace rmm_uvm::tests {

/** @brief Lends what the test says, and remembers what it was told. */
class noting_lender final : public neighbor_lender {
 public:
  std::map<int, std::size_t> lends;     ///< most that is held; nothing where there is none
  std::map<int, std::size_t> claimed;   ///< and not released
  std::map<int, std::size_t> there;     ///< placed and not released
  std::map<int, std::size_t> too_much;  ///< what `excess` answers
  std::map<int, bool> at_work;          ///< what `busy` answers
  std::vector<std::size_t> offers;      ///< of the manager's own device
  std::vector<bool> told_busy;          ///< of the same
  bool can_tell{true};                  ///< whether it is heard
  std::size_t others_hold{0};           ///< what `claimed_by_others` answers
  int others_leave_after{0};            ///< so many looks, if any, they hold nothing any more

  std::size_t claim(int device_id, std::size_t bytes, std::size_t, std::size_t) noexcept override
  {
    auto const room    = lends[device_id] - std::min(lends[device_id], claimed[device_id]);
    auto const granted = std::min(bytes, room);
    claimed[device_id] += granted;
    return granted;
  }
  void placed(int device_id, std::size_t bytes) noexcept override { there[device_id] += bytes; }
  void release(int device_id, std::size_t bytes) noexcept override
  {
    claimed[device_id] -= bytes;
    there[device_id] -= std::min(there[device_id], bytes);
    too_much[device_id] -= std::min(too_much[device_id], bytes);
  }
  void cancel(int device_id, std::size_t bytes) noexcept override { release(device_id, bytes); }
  std::size_t excess(int device_id, std::size_t shortage_bytes) noexcept override
  {
    return std::max(too_much[device_id], shortage_bytes);
  }
  std::size_t held(int device_id) noexcept override { return claimed[device_id]; }
  bool offer(int, std::size_t bytes) noexcept override
  {
    offers.push_back(bytes);
    return true;
  }
  void withdraw(int) noexcept override { offers.clear(); }
  std::size_t claimed_by_others(int) noexcept override
  {
    if (others_leave_after > 0) {
      --others_leave_after;
      if (others_leave_after == 0) { others_hold = 0; }
    }
    return others_hold;
  }
  bool busy(int device_id) noexcept override { return at_work[device_id]; }
  bool set_busy(int, bool busy_now) noexcept override
  {
    told_busy.push_back(busy_now);
    return can_tell;
  }
};

class ResidencyNeighbors : public ResidencyManager {
 protected:
  void SetUp() override
  {
    neighbors    = {{1}, {2}};
    lender       = lends;
    lends->lends = {{1, blocks(16)}, {2, blocks(16)}};
  }
  [[nodiscard]] driver_call to(int device_id, std::size_t first, std::size_t count) const
  {
    return {"prefetch", {at(first, count)}, evictions, device_id};
  }
  /** @brief Eight blocks are on the device, and the first `count` of them leave. */
  void evict_first(std::size_t count)
  {
    make();
    allocate(0, 8);
    static_cast<void>(moves());
    EXPECT_EQ(manager->evict(at(0, count)), blocks(count));
  }

  std::shared_ptr<noting_lender> lends{std::make_shared<noting_lender>()};
};

}  // namespace rmm_uvm::tests
