// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/cuda/cupti_events.hpp>

#include <chrono>
#include <utility>

namespace rmm_uvm::cuda {
namespace {

[[nodiscard]] std::uint64_t steady_ns()
{
  auto const now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
    std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

/** @brief A session, or why there is none. */
struct opened_session {
  std::shared_ptr<cupti_session> session;
  availability opened;
};

/** @brief The session of this process: CUPTI has one seat, so all who watch have to share it. */
[[nodiscard]] opened_session session_of_process(std::vector<std::string> const& libraries)
{
  static std::mutex mutex;
  static std::weak_ptr<cupti_session> opened;
  std::lock_guard const lock{mutex};
  if (auto session = opened.lock(); session != nullptr) { return {std::move(session), {}}; }
  auto const cupti = load_cupti_api(libraries);
  if (!cupti.loaded.available) { return {nullptr, cupti.loaded}; }
  auto const cuda = load_cuda_api();
  if (!cuda.loaded.available) { return {nullptr, cuda.loaded}; }
  auto session = std::make_shared<cupti_session>(cuda.api, cupti.api, steady_ns);
  opened       = session;
  return {std::move(session), {}};
}

}  // namespace

cupti_events::cupti_events(std::shared_ptr<cupti_session> session, std::vector<int> device_ids)
  : session_{std::move(session)}, device_ids_{std::move(device_ids)}
{
}

cupti_events::~cupti_events() { session_->leave(tally_); }

availability cupti_events::start()
{
  std::lock_guard const lock{mutex_};
  if (started_) { return availability::yes(); }
  tally_.clear();
  auto result = session_->join(tally_, device_ids_);
  started_    = result.available;
  return result;
}

void cupti_events::stop() noexcept
{
  std::lock_guard const lock{mutex_};
  session_->leave(tally_);
  started_ = false;
}

cause_totals cupti_events::read() noexcept
{
  session_->flush();
  return tally_.totals();
}

std::vector<block_traffic> cupti_events::busiest(std::size_t most)
{
  session_->flush();
  return tally_.busiest(most);
}

opened_cupti_events open_cupti_events(std::vector<std::string> const& libraries,
                                      std::vector<int> device_ids)
{
  auto found = session_of_process(libraries);
  if (found.session == nullptr) { return {nullptr, std::move(found.opened)}; }
  return {std::make_shared<cupti_events>(std::move(found.session), std::move(device_ids)), {}};
}

}  // namespace rmm_uvm::cuda
