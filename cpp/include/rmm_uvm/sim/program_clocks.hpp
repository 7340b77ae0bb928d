// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace rmm_uvm::sim {

/**
 * @brief What time it is for programs on the host, in their lanes, and on their streams.
 *
 * Without a program's name: of the program and lane whose turn it is. Touches nothing else.
 */
class program_clocks {
 public:
  program_clocks(unsigned programs, unsigned lanes)
    : lanes_{lanes}, clocks_(std::size_t{programs} * lanes)
  {
  }

  /** @brief Whose turn it is from now on. */
  void run_as(unsigned program, unsigned lane) noexcept
  {
    program_ = program;
    number_  = std::size_t{program} * lanes_ + lane;
  }
  [[nodiscard]] unsigned program() const noexcept { return program_; }
  [[nodiscard]] unsigned lane() const noexcept { return static_cast<unsigned>(number_ % lanes_); }
  /** @brief The lane's number among those of all programs. */
  [[nodiscard]] unsigned lane_number() const noexcept { return static_cast<unsigned>(number_); }

  [[nodiscard]] double now_ns() const noexcept { return clocks_[number_].host_ns; }
  /** @brief The program's time in one of its lanes. */
  [[nodiscard]] double lane_ns(unsigned lane) const noexcept
  {
    return clocks_[std::size_t{program_} * lanes_ + lane].host_ns;
  }
  /** @brief The time of the lane that is furthest, of all programs. */
  [[nodiscard]] double latest_ns() const noexcept
  {
    double latest = 0;
    for (auto const& each : clocks_) {
      latest = std::max(latest, each.host_ns);
    }
    return latest;
  }

  /** @brief The host does something. */
  void spend(double ns) noexcept { own().host_ns += ns; }
  /** @brief The host does nothing until then. */
  void wait_until(double ns) noexcept { own().host_ns = std::max(own().host_ns, ns); }
  /** @brief The same, for what then is done. */
  void finish(double ns) noexcept
  {
    wait_until(ns);
    done(own().host_ns);
  }
  /** @brief Something is done then. */
  void done(double ns) noexcept { own().last_ns = std::max(own().last_ns, ns); }
  /** @brief The host waits for everything. */
  void wait_for_all() noexcept { wait_until(own().last_ns); }

  /** @brief When what was issued on a stream is done. @throws std::bad_alloc */
  [[nodiscard]] double stream_ns(std::uint64_t stream) { return own().streams[stream]; }
  /** @brief What is issued on a stream is done then, and all before it. @throws std::bad_alloc */
  void issue(std::uint64_t stream, double ns)
  {
    own().streams[stream] = ns;
    done(ns);
  }
  /** @brief The host waits for a stream. */
  void wait_for(std::uint64_t stream) noexcept
  {
    auto const it = own().streams.find(stream);
    if (it != own().streams.end()) { wait_until(it->second); }
  }

 private:
  struct clock {
    double host_ns{0};
    double last_ns{0};                        // when everything is done
    std::map<std::uint64_t, double> streams;  // when what was issued there is done
  };

  [[nodiscard]] clock& own() noexcept { return clocks_[number_]; }

  std::size_t lanes_;
  std::vector<clock> clocks_;  // by program, then by lane
  unsigned program_{0};        // whose turn it is
  std::size_t number_{0};      // of its lane
};

}  // namespace rmm_uvm::sim
