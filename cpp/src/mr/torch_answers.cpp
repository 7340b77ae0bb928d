// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/mr/torch_answers.hpp>
#include <rmm_uvm/process/locks.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace rmm_uvm::mr {
namespace {

/** @brief One that hands out memory for a device, or did. */
struct answerer {
  std::shared_ptr<torch_segments> segments;
  std::size_t calls{0};  // that are under way: what they hand out is not counted yet
  bool hands_out{true};

  /** @brief Whether nobody can need it any more. */
  [[nodiscard]] bool is_over() const noexcept
  {
    return !hands_out && calls == 0 && segments->statistics().segment_bytes == 0;
  }
};

/** @brief Who answers for each device: one at most hands out, all take back. */
struct answering {
  ranked_mutex<lock_rank::torch_answers> mutex;
  std::map<int, std::vector<answerer>> by_device;
};

/** @brief Never destroyed: torch gives memory back until the very end of the process. */
answering& answers()
{
  static auto* const all = new answering;  // NOLINT(*-owning-memory)
  return *all;
}

/** @brief Takes one that is over out of the list. @return it: it is to go without the lock */
[[nodiscard]] std::shared_ptr<torch_segments> take_if_over(std::vector<answerer>& those,
                                                           std::vector<answerer>::iterator one)
{
  if (one == those.end() || !one->is_over()) { return nullptr; }
  auto over = std::move(one->segments);
  those.erase(one);
  return over;
}

[[nodiscard]] auto find(std::vector<answerer>& those, torch_segments const* segments)
{
  return std::find_if(those.begin(), those.end(), [segments](answerer const& one) {
    return one.segments.get() == segments;
  });
}

/** @brief A call to one that answers, which stays in the list meanwhile. */
class call {
 public:
  /** @brief To the first one that `wanted` is true for, if there is any. */
  template <typename Wanted>
  call(int device, Wanted const& wanted) : device_{device}
  {
    std::lock_guard const lock{answers().mutex};
    auto const found = answers().by_device.find(device);
    if (found == answers().by_device.end()) { return; }
    auto& those    = found->second;
    auto const one = std::find_if(those.begin(), those.end(), wanted);
    if (one == those.end()) { return; }
    segments_ = one->segments.get();
    ++one->calls;
  }
  call(call const&)            = delete;
  call& operator=(call const&) = delete;
  call(call&&)                 = delete;
  call& operator=(call&&)      = delete;
  /** @brief Whoever is over with this call goes: the last one that needed it is through. */
  ~call()
  {
    if (segments_ == nullptr) { return; }
    std::shared_ptr<torch_segments> over;
    std::lock_guard const lock{answers().mutex};
    auto& those    = answers().by_device[device_];
    auto const one = find(those, segments_);
    --one->calls;
    over = take_if_over(those, one);
  }

  /** @brief Null: nobody answers. */
  [[nodiscard]] torch_segments* operator->() const noexcept { return segments_; }
  [[nodiscard]] explicit operator bool() const noexcept { return segments_ != nullptr; }

 private:
  int device_;
  torch_segments* segments_{nullptr};
};

/** @brief Has nobody hand out for a device. @return who is over by that; they go without the lock
 */
[[nodiscard]] std::vector<answerer> silence(std::vector<answerer>& those)
{
  for (auto& one : those) {
    one.hands_out = false;
  }
  auto const first_over =
    std::partition(those.begin(), those.end(), [](answerer const& one) { return !one.is_over(); });
  std::vector<answerer> over{std::make_move_iterator(first_over),
                             std::make_move_iterator(those.end())};
  those.erase(first_over, those.end());
  return over;
}

}  // namespace

void answer_torch(int device, std::shared_ptr<torch_segments> segments)
{
  std::vector<answerer> over;  // goes after the lock
  std::lock_guard const lock{answers().mutex};
  auto& those = answers().by_device[device];
  over        = silence(those);
  if (segments == nullptr) { return; }
  if (auto const again = find(those, segments.get()); again != those.end()) {
    again->hands_out = true;
    return;
  }
  those.push_back({std::move(segments), 0, true});
}

void leave_torch(int device, std::shared_ptr<torch_segments> const& segments) noexcept
{
  std::shared_ptr<torch_segments> over;  // goes after the lock
  std::lock_guard const lock{answers().mutex};
  auto const found = answers().by_device.find(device);
  if (found == answers().by_device.end()) { return; }
  auto const one = find(found->second, segments.get());
  if (one == found->second.end()) { return; }
  one->hands_out = false;
  over           = take_if_over(found->second, one);
}

}  // namespace rmm_uvm::mr

void* rmm_uvm_torch_allocate(std::ptrdiff_t bytes, int device, void* stream)
try {
  rmm_uvm::mr::call const to{device, [](auto const& one) { return one.hands_out; }};
  if (!to || bytes <= 0) { return nullptr; }
  return to->allocate(static_cast<std::size_t>(bytes), stream);
} catch (...) {  // no host memory even for the list of who answers
  return nullptr;
}

void rmm_uvm_torch_deallocate(void* segment, std::ptrdiff_t bytes, int device, void* stream)
try {
  auto const address = reinterpret_cast<std::uintptr_t>(segment);
  rmm_uvm::mr::call const to{device,
                             [address](auto const& one) { return one.segments->holds(address); }};
  if (to) { static_cast<void>(to->deallocate(segment, static_cast<std::size_t>(bytes), stream)); }
} catch (...) {  // what was handed out is in the list of who answers: it is there
  static_cast<void>(segment);
}
