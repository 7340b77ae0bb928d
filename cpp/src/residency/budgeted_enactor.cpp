// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/budgeted_enactor.hpp>

#include <utility>

namespace rmm_uvm {

budgeted_enactor::budgeted_enactor(std::shared_ptr<uvm_driver> driver,
                                   residency_ledger& ledger,
                                   residency_settings const& settings,
                                   memory_adviser& adviser)
  : manager_{new residency_manager{std::move(driver), ledger, settings, &adviser}}
{
}

}  // namespace rmm_uvm
