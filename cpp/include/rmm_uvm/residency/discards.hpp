// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/uvm_driver.hpp>

#include <span>

namespace rmm_uvm {

/**
 * @brief Drops the contents of whole blocks; when it returns, that has happened.
 *
 * A discard that waits in a stream was seen to take effect after what came behind it, and then it
 * throws away what was written since (docs/understand/decisions/0010). So the stream of discards is
 * idle before the call and after it, and whoever is handed the memory next may write it from
 * anywhere: another stream, or the CPU (docs/understand/decisions/0021).
 *
 * Thread-safe; waits for discards of other threads.
 * @param ranges whole blocks without a live byte
 * @return the first failure; then some of the blocks may have been discarded
 * @pre no work reads or writes the blocks any more
 */
[[nodiscard]] status discard_at_once(uvm_driver& driver,
                                     std::span<memory_range const> ranges) noexcept;

/** @brief The same, and the blocks are on the device afterwards: nothing is copied. */
[[nodiscard]] status renew_at_once(uvm_driver& driver,
                                   std::span<memory_range const> ranges) noexcept;

}  // namespace rmm_uvm
