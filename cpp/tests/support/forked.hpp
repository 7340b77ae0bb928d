// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/wait.h>
#include <unistd.h>

namespace rmm_uvm::tests {

/** @brief Runs `work` in a forked process. @return whether it answered true there */
template <typename Work>
[[nodiscard]] bool in_child(Work const& work)
{
  auto const child = ::fork();
  if (child == 0) {
    ::alarm(30);  // a child that hangs dies
    ::_exit(work() ? 0 : 1);
  }
  int status = -1;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace rmm_uvm::tests
