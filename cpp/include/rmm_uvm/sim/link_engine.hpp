// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace rmm_uvm::sim {

/**
 * @brief One direction of a link: when it is at work, in modelled nanoseconds.
 *
 * Work of one program goes in the order in which it was handed over, and never overtakes. Programs
 * have clocks of their own: what one hands over goes into the first pause of the others' work that
 * is long enough. Only the latest stretches of work are kept; before them nothing begins any more.
 */
class link_engine {
 public:
  /** @param programs > 0: those that hand work over, numbered from 0 */
  explicit link_engine(unsigned programs)
    : most_{programs > 1 ? most_stretches : 1}, free_ns_(programs)
  {
  }

  /** @brief Begin of the first pause that takes so much work of a program. */
  [[nodiscard]] double pause(unsigned program, double begin_ns, double ns) const noexcept
  {
    auto const begin = std::max({begin_ns, free_ns_[program], forgotten_ns_});
    if (stretches_.empty() || begin >= stretches_.back().end_ns) { return begin; }  // usually
    return pause_between(begin, ns);
  }
  /** @brief How much of a time it works. */
  [[nodiscard]] double busy_ns(double begin_ns, double end_ns) const noexcept;
  /** @brief Works for a program. @pre `pause` found this time @throws std::bad_alloc */
  void work(unsigned program, double begin_ns, double end_ns)
  {
    free_ns_[program] = end_ns;
    if (!stretches_.empty() && begin_ns == stretches_.back().end_ns) {  // usually
      stretches_.back().end_ns = end_ns;
    } else {
      insert(begin_ns, end_ns);
    }
  }

 private:
  static constexpr std::size_t most_stretches = 4096;  // seconds of 2 MiB copies with pauses

  struct stretch {
    double begin_ns{0};
    double end_ns{0};
  };

  [[nodiscard]] double pause_between(double begin, double ns) const noexcept;
  void insert(double begin_ns, double end_ns);

  std::size_t most_;
  std::vector<double> free_ns_;     // by program: the end of its latest work
  std::vector<stretch> stretches_;  // of work without a pause, in order
  double forgotten_ns_{0};          // end of the latest that is not kept
};

}  // namespace rmm_uvm::sim
