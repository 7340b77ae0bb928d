// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

namespace rmm_uvm::tests {

/** @brief Another process that does `work`, says so, and lives until it is killed. */
template <typename Work>
class other_process {
 public:
  explicit other_process(Work const& work)
  {
    std::array<int, 2> pipe{};
    static_cast<void>(::pipe(pipe.data()));
    process_ = ::fork();
    if (process_ == 0) {
      char const answer = work() ? 'y' : 'n';
      static_cast<void>(::write(pipe[1], &answer, 1));
      while (true) {
        ::pause();
      }
    }
    char answer = 0;
    static_cast<void>(::read(pipe[0], &answer, 1));
    succeeded_ = answer == 'y';
    ::close(pipe[0]);
    ::close(pipe[1]);
  }
  ~other_process() { kill(); }
  other_process(other_process const&)            = delete;
  other_process& operator=(other_process const&) = delete;
  other_process(other_process&&)                 = delete;
  other_process& operator=(other_process&&)      = delete;

  [[nodiscard]] bool succeeded() const { return succeeded_; }
  void kill()
  {
    if (process_ == 0) { return; }
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = 0;
  }

 private:
  pid_t process_{0};
  bool succeeded_{false};
};

}  // namespace rmm_uvm::tests
