// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/availability.hpp>

#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_result.h>

#include <string>
#include <vector>

namespace rmm_uvm::cuda {

/**
 * @brief The functions of libcupti that we call. Tests fill the table with fakes.
 *
 * The ones of CUDA 13.0: its successors for several subscribers (13.3) need a driver newer than the
 * oldest that we support.
 */
struct cupti_api {
  decltype(&cuptiGetResultString) get_result_string{};
  decltype(&cuptiGetDeviceId) get_device_id{};
  decltype(&cuptiSubscribe) subscribe{};
  decltype(&cuptiUnsubscribe) unsubscribe{};
  decltype(&cuptiActivityRegisterCallbacks) activity_register_callbacks{};
  decltype(&cuptiActivityConfigureUnifiedMemoryCounter) configure_unified_memory_counter{};
  decltype(&cuptiActivityEnable) activity_enable{};
  decltype(&cuptiActivityDisable) activity_disable{};
  decltype(&cuptiActivityFlushAll) activity_flush_all{};
  decltype(&cuptiActivityGetNextRecord) activity_get_next_record{};
  decltype(&cuptiActivityGetNumDroppedRecords) activity_get_num_dropped_records{};
  decltype(&cuptiSubscribe_v2) subscribe_v2{};  ///< tells who holds CUPTI; may be null
};

/** @brief A loaded table, or why there is none. */
struct loaded_cupti_api {
  cupti_api api;
  availability loaded;
};

/**
 * @brief Loads libcupti and resolves the table; initialises nothing.
 * @param candidates paths and names to try, in this order
 * @return not available, with the reason, when none can be loaded or the first that can lacks a
 *         function
 */
[[nodiscard]] loaded_cupti_api load_cupti_api(std::vector<std::string> const& candidates);

/**
 * @brief Why CUPTI does not work, in one sentence: what it answered, and what to do.
 * @param call name of the function that answered
 * @param holder who holds CUPTI, when that is the reason and it is known
 */
[[nodiscard]] std::string cupti_refusal(cupti_api const& api,
                                        char const* call,
                                        CUptiResult result,
                                        std::string const& holder = {});

}  // namespace rmm_uvm::cuda
