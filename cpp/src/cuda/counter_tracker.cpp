// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "tools_answers.hpp"

#include <rmm_uvm/cuda/counter_tracker.hpp>

#include <string>
#include <utility>

namespace rmm_uvm::cuda {
counter_page::counter_page(std::shared_ptr<system_calls> system, std::size_t bytes) noexcept
  : system_{std::move(system)}, bytes_{bytes}, page_{system_->map(bytes)}
{
  if (page_ != nullptr && system_->wipe_on_fork(page_, bytes_) != 0) {
    system_->unmap(std::exchange(page_, nullptr), bytes_);
  }
}

counter_page::~counter_page()
{
  if (valid()) { system_->unmap(page_, bytes_); }
}

counter_page::counter_page(counter_page&& other) noexcept
  : system_{std::move(other.system_)},
    bytes_{other.bytes_},
    page_{std::exchange(other.page_, nullptr)}
{
}

counter_tracker::counter_tracker(descriptor tools,
                                 counter_page page,
                                 std::shared_ptr<system_calls> system)
  : system_{std::move(system)},
    owner_{system_->process_id()},
    page_{std::move(page)},
    tools_{std::move(tools)}
{
}

opened_counter_tracker counter_tracker::open(std::shared_ptr<system_calls> system,
                                             int uvm_descriptor,
                                             processor_id const& processor)
{
  descriptor tools{system, system->open(uvm_tools::tools_path)};
  if (!tools.valid()) { return {nullptr, why_tools_do_not_open(-tools.get())}; }
  counter_page page{system};
  if (!page.valid()) {
    return {nullptr, availability::no("no memory for a counter page that a fork leaves alone")};
  }
  uvm_tools::init_tracker_parameters init;
  init.control_buffer = page.address();
  init.all_processors = processor ? 0U : 1U;
  if (processor) { init.processor = *processor; }
  init.uvm_descriptor = static_cast<std::uint32_t>(uvm_descriptor);
  auto const error    = system->ioctl(tools.get(), uvm_tools::init_tracker, &init);
  auto opened = answered(error, init.status, "the UVM kernel driver refused a counter tracker");
  if (!opened.available) { return {nullptr, std::move(opened)}; }
  std::unique_ptr<counter_tracker> tracker{
    new counter_tracker{std::move(tools), std::move(page), std::move(system)}};
  return {std::move(tracker), availability::yes()};
}

availability counter_tracker::count(std::uint64_t flags)
{
  uvm_tools::count_parameters enable{flags};
  auto const error = system_->ioctl(tools_.get(), uvm_tools::enable_count, &enable);
  return answered(error, enable.status, "the UVM kernel driver refused to count");
}

void counter_tracker::stop_counting(std::uint64_t flags) noexcept
{
  if (system_->process_id() != owner_) { return; }  // a child shares the parent's tracker
  uvm_tools::count_parameters disable{flags};
  static_cast<void>(system_->ioctl(tools_.get(), uvm_tools::disable_count, &disable));
}

availability tools_available(std::shared_ptr<system_calls> const& system)
{
  descriptor const tools{system, system->open(uvm_tools::tools_path)};
  return tools.valid() ? availability::yes() : why_tools_do_not_open(-tools.get());
}

}  // namespace rmm_uvm::cuda
