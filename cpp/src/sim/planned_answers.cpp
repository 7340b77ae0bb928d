// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/sim/planned_answers.hpp>

#include <algorithm>
#include <mutex>

namespace rmm_uvm::sim {

void planned_answers::plan(std::string_view call, status answer, unsigned skip)
{
  std::lock_guard const lock{mutex_};
  planned_.push_back({std::string{call}, answer, skip});
  unmet_.store(planned_.size(), std::memory_order_release);
}

std::size_t planned_answers::cancel() noexcept
{
  std::lock_guard const lock{mutex_};
  auto const unmet = planned_.size();
  planned_.clear();
  unmet_.store(0, std::memory_order_release);
  return unmet;
}

std::optional<status> planned_answers::take(std::string_view call) noexcept
{
  std::lock_guard const lock{mutex_};
  auto const it = std::find_if(
    planned_.begin(), planned_.end(), [&](planned const& each) { return each.call == call; });
  if (it == planned_.end()) { return std::nullopt; }
  if (it->skip > 0) {
    --it->skip;
    return std::nullopt;
  }
  auto const given = it->given;
  planned_.erase(it);
  unmet_.store(planned_.size(), std::memory_order_release);
  return given;
}

std::optional<availability> planned_answers::refusal_met_by(std::string_view call)
{
  auto const met = met_by(call);
  if (!met) { return std::nullopt; }
  return availability::no(std::string{met->call} + " answered " + to_string(met->code));
}

void planned_answers::set_capture_state(stream_handle stream, capture_state state)
{
  static std::atomic<std::uint64_t> last_number{0};
  std::lock_guard const lock{mutex_};
  capture_states_.insert_or_assign(stream, state);
  states_set_.store(true, std::memory_order_release);
  graphs_.erase(stream);
  if (state == capture_state::capturing) {
    captured_.push_back(std::make_shared<captured_graph>(++last_number));
    graphs_.emplace(stream, captured_.back());
  }
}

std::shared_ptr<captured_graph const> planned_answers::graph_of(stream_handle stream) const noexcept
{
  std::lock_guard const lock{mutex_};
  auto const found = graphs_.find(stream);
  return found == graphs_.end() ? nullptr : found->second;
}

void planned_answers::end_graphs() noexcept
{
  std::lock_guard const lock{mutex_};
  for (auto const& each : captured_) {
    each->end();
  }
  captured_.clear();
}

capture_state planned_answers::state_of(stream_handle stream) const noexcept
{
  std::lock_guard const lock{mutex_};
  auto const it = capture_states_.find(stream);
  return it == capture_states_.end() ? capture_state::none : it->second;
}

}  // namespace rmm_uvm::sim
