// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../no_op_driver.hpp"

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace rmm_uvm::benchmarks {

inline constexpr std::size_t mib = std::size_t{1} << 20U;
inline constexpr std::size_t gib = std::size_t{1} << 30U;

/** @brief Ends the program where an operation does not do what it is counted for. */
inline void require(bool holds)
{
  if (!holds) { std::abort(); }
}

/**
 * @brief Has the instructions of `function` counted, those of all that it calls included.
 *
 * callgrind knows it by its name, `hot_path_...`; it is `gnu::noipa`, so that it stays a function
 * of its own. What has to be there first is made by the caller, and not counted. The line that is
 * printed says how many operations the count is of.
 */
template <typename Function, typename... Arguments>
void count(char const* name, Function function, std::size_t rounds, Arguments&&... arguments)
{
  std::printf("%s %zu\n", name, rounds);
  function(std::forward<Arguments>(arguments)..., rounds);
}

// Each makes what its paths need, lets them warm up, and has them counted.
void count_allocations();
void count_budgets();
void count_traces();
void count_replays();

}  // namespace rmm_uvm::benchmarks
