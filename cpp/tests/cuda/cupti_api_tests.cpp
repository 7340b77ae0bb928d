// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/fake_cupti.hpp"

#include <rmm_uvm/cuda/cupti_api.hpp>
#include <rmm_uvm/cuda/cupti_events.hpp>

#include <gtest/gtest.h>

namespace rmm_uvm::cuda {
namespace {

[[nodiscard]] bool contains(std::string const& text, std::string const& part)
{
  return text.find(part) != std::string::npos;
}

TEST(CuptiApi, NoCandidateIsAReason)
{
  auto const found = load_cupti_api({});
  EXPECT_FALSE(found.loaded.available);
  EXPECT_TRUE(contains(found.loaded.reason, "libcupti.so.13 cannot be loaded"));
}

TEST(CuptiApi, LibraryThatIsMissingIsNamedWithTheRemedy)
{
  auto const found = load_cupti_api({"/nowhere/libcupti.so.13", "/elsewhere/libcupti.so.13"});
  EXPECT_FALSE(found.loaded.available);
  EXPECT_TRUE(contains(found.loaded.reason, "/nowhere/libcupti.so.13")) << found.loaded.reason;
  EXPECT_TRUE(contains(found.loaded.reason, "pip install")) << found.loaded.reason;
}

TEST(CuptiApi, LibraryThatIsSomethingElseSaysWhatItLacks)
{
  auto const found = load_cupti_api({"/nowhere/libcupti.so.13", "libc.so.6"});
  EXPECT_FALSE(found.loaded.available);
  EXPECT_TRUE(contains(found.loaded.reason, "libc.so.6 has no cupti")) << found.loaded.reason;
  EXPECT_EQ(found.api.activity_enable, nullptr);
}

TEST(CuptiApi, EventsWithoutTheLibraryAreNotOpened)
{
  auto const found = open_cupti_events({"/nowhere/libcupti.so.13"}, {0});
  EXPECT_EQ(found.events, nullptr);
  EXPECT_FALSE(found.opened.available);
}

TEST(CuptiRefusal, KnownOnesSayWhatToDoAndKeepNameAndNumber)
{
  auto const api = tests::fake_cupti::api();
  for (auto const result : {CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
                            CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED,
                            CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_DEVICE,
                            CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_NON_P2P_DEVICES,
                            CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_WITH_MPS,
                            CUPTI_ERROR_INSUFFICIENT_PRIVILEGES,
                            CUPTI_ERROR_NOT_INITIALIZED}) {
    auto const text = cupti_refusal(api, "cuptiX", result);
    EXPECT_FALSE(contains(text, "cuptiX")) << text;
    EXPECT_TRUE(contains(text, "CUPTI_ERROR_OF_THE_TEST")) << text;
    EXPECT_TRUE(contains(text, std::to_string(static_cast<int>(result)))) << text;
  }
}

TEST(CuptiRefusal, UnknownOneNamesTheCallEvenWithoutAName)
{
  auto api = tests::fake_cupti::api();
  // As without a driver.
  api.get_result_string = [](CUptiResult, char const**) { return CUPTI_ERROR_UNKNOWN; };
  EXPECT_EQ(cupti_refusal(api, "cuptiX", CUPTI_ERROR_UNKNOWN),
            "CUPTI refused: cuptiX answered error 999");
}

}  // namespace
}  // namespace rmm_uvm::cuda
