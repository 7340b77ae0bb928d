// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/cuda/process_counters.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace rmm_uvm::cuda {
namespace {

/** @brief A process and copies of its descriptors on /dev/nvidia-uvm. */
struct target {
  descriptor process;
  std::vector<descriptor> uvm;
  availability found;
};

[[nodiscard]] std::string named(int pid) { return "process " + std::to_string(pid); }

[[nodiscard]] availability no_permission(int pid, system_calls& system)
{
  auto const scope = system.read_line("/proc/sys/kernel/yama/ptrace_scope");
  return availability::no("no permission to look into " + named(pid) +
                          ": it takes root or CAP_SYS_PTRACE, or the same user and "
                          "/proc/sys/kernel/yama/ptrace_scope 0" +
                          (scope.empty() ? "" : " (here " + scope + ")"));
}

[[nodiscard]] availability why_not(int error, int pid, system_calls& system)
{
  switch (error) {
    case ESRCH:
    case ENOENT: return availability::no("there is no " + named(pid));
    case EINVAL: return availability::no(std::to_string(pid) + " is not the number of a process");
    case EPERM:
    case EACCES: return no_permission(pid, system);
    case ENOSYS:
      return availability::no(
        "this kernel cannot attach to other processes: Linux 5.6 or newer can (pidfd_getfd)");
    default: return availability::no(named(pid) + ": " + std::strerror(error));
  }
}

[[nodiscard]] target find(int pid, std::shared_ptr<system_calls> const& system)
{
  target result;
  if (pid <= 0) {
    result.found = why_not(EINVAL, pid, *system);
    return result;
  }
  // First, so that all that follows is about this process, and none that got its number later.
  result.process = descriptor{system, system->open_process(pid)};
  if (!result.process.valid()) {
    result.found = why_not(-result.process.get(), pid, *system);
    return result;
  }
  std::vector<system_calls::open_file> files;
  if (auto const error = system->list_files(pid, files); error < 0) {
    result.found = why_not(-error, pid, *system);
    return result;
  }
  std::erase_if(files, [](auto const& file) { return file.target != uvm_tools::device_path; });
  int error = 0;
  for (auto const& file : files) {
    descriptor copy{system, system->copy_descriptor(result.process.get(), file.number)};
    if (!copy.valid()) {
      error = -copy.get();
      continue;  // it may have been closed meanwhile
    }
    // The same open file under two numbers must not be counted twice.
    bool const known = std::any_of(result.uvm.begin(), result.uvm.end(), [&](auto const& other) {
      return system->same_file(other.get(), copy.get());
    });
    if (!known) { result.uvm.push_back(std::move(copy)); }
  }
  if (result.uvm.empty()) {
    result.found =
      error == 0 || error == EBADF
        ? availability::no(named(pid) +
                           " does not use CUDA: it has no /dev/nvidia-uvm open (yet, or any more)")
        : why_not(error, pid, *system);
  }
  return result;
}

}  // namespace

process_counters::process_counters(std::shared_ptr<system_calls> system,
                                   int pid,
                                   std::shared_ptr<descriptor const> process,
                                   trackers attached)
  : system_{std::move(system)},
    pid_{pid},
    owner_{system_->process_id()},
    process_{std::move(process)},
    attached_{std::move(attached)}
{
}

opened_process_counters process_counters::open(process_counters_request const& request,
                                               std::shared_ptr<system_calls> system)
{
  auto found = find(request.pid, system);
  if (!found.found.available) { return {nullptr, std::move(found.found)}; }
  trackers attached;
  availability refused;
  for (auto const& uvm : found.uvm) {
    auto opened = address_space_counters::open(system, uvm.get(), request.processor);
    if (opened.counters && request.faults) {
      opened.opened = opened.counters->count_faults(uvm.get());
    }
    if (opened.opened.available) {
      attached.push_back(std::move(opened.counters));
    } else {
      refused = std::move(opened.opened);  // not every descriptor belongs to an address space
    }
  }
  if (attached.empty()) { return {nullptr, std::move(refused)}; }
  std::unique_ptr<process_counters> counters{
    new process_counters{std::move(system),
                         request.pid,
                         std::make_shared<descriptor const>(std::move(found.process)),
                         std::move(attached)}};
  return {std::move(counters), availability::yes()};
}

availability process_counters::available() const
{
  if (system_->process_id() != owner_) {
    return availability::no("the counters belong to the process that this one was forked from");
  }
  std::lock_guard const lock{mutex_};
  if (exited_) { return availability::no(named(pid_) + " has ended"); }
  if (!process_) { return availability::no("the counters of " + named(pid_) + " are closed"); }
  return availability::yes();
}

migration_totals process_counters::read() const noexcept
{
  if (system_->process_id() != owner_) { return {}; }
  std::lock_guard const lock{mutex_};
  migration_totals sum = last_;
  for (auto const& one : attached_) {
    auto const totals = one->read();
    sum.host_to_device_bytes += totals.host_to_device_bytes;
    sum.device_to_host_bytes += totals.device_to_host_bytes;
    sum.cpu_faults += totals.cpu_faults;
    sum.gpu_faults += totals.gpu_faults;
  }
  return sum;
}

bool process_counters::exited() const noexcept
{
  if (system_->process_id() != owner_) { return false; }
  std::lock_guard const lock{mutex_};
  return exited_;
}

bool process_counters::wait_exit(int timeout_ms) noexcept
{
  if (system_->process_id() != owner_) { return false; }
  std::shared_ptr<descriptor const> process;
  {
    std::lock_guard const lock{mutex_};
    if (!process_) { return exited_; }
    process = process_;  // stays open while we wait, whoever closes meanwhile
  }
  bool const ended = system_->wait_exit(process->get(), timeout_ms) > 0;
  if (!ended) { return false; }
  let_go();
  std::lock_guard const lock{mutex_};
  exited_ = true;
  return true;
}

void process_counters::close() noexcept
{
  if (system_->process_id() == owner_) { let_go(); }
}

void process_counters::let_go() noexcept
{
  auto const now = read();
  std::lock_guard const lock{mutex_};
  if (!process_) { return; }
  last_ = now;
  attached_.clear();
  process_ = nullptr;
}

availability may_attach(int pid, std::shared_ptr<system_calls> const& system)
{
  auto found = find(pid, system).found;
  return found.available ? tools_available(system) : found;
}

}  // namespace rmm_uvm::cuda
