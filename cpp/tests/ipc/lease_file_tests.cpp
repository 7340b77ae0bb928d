// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/lease_files.hpp"
#include "../support/other_process.hpp"

#include <rmm_uvm/ipc/lease_file.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

namespace rmm_uvm::ipc {
namespace {

using tests::other_process;
using tests::shared_leases;

class LeaseFile : public testing::Test {
 protected:
  shared_leases const shared{8};
  std::unique_ptr<lease_file> exporter = shared.exporter();
  std::unique_ptr<lease_file> reader   = shared.open();
};

// Opening and ending

TEST_F(LeaseFile, LeaseIsOpenedCountedAndEndsOnlyWhenItIsClosed)
{
  auto const generation = exporter->begin(3, 1);
  EXPECT_EQ(reader->open_lease(3, generation, false), lease_answer::opened);
  EXPECT_EQ(exporter->read(3).opened, 1U);
  EXPECT_EQ(exporter->is_open(3), 1);
  EXPECT_EQ(exporter->try_end(3), -EAGAIN);
  EXPECT_EQ(reader->close_lease(3), 0);
  EXPECT_EQ(exporter->is_open(3), 0);
  EXPECT_EQ(exporter->try_end(3), 0);
  EXPECT_EQ(exporter->read(3).generation, generation + 1);
}

TEST_F(LeaseFile, LeaseThatEndedIsNotOpenedNorTheNextOneOfItsSlot)
{
  auto const first = exporter->begin(0, 1);
  ASSERT_EQ(exporter->try_end(0), 0);
  EXPECT_EQ(reader->open_lease(0, first, false), lease_answer::ended);
  auto const second = exporter->begin(0, 1);
  EXPECT_NE(first, second);
  EXPECT_EQ(reader->open_lease(0, first, false), lease_answer::ended);
  EXPECT_EQ(exporter->read(0).opened, 0U);
  EXPECT_EQ(exporter->try_end(0), 0);  // who was refused holds nothing
}

TEST_F(LeaseFile, LeaseIsOpenedAsOftenAsItMay)
{
  auto const generation = exporter->begin(0, 2);
  auto const second     = shared.open();
  auto const third      = shared.open();
  EXPECT_EQ(reader->open_lease(0, generation, false), lease_answer::opened);
  EXPECT_EQ(second->open_lease(0, generation, false), lease_answer::opened);
  EXPECT_EQ(third->open_lease(0, generation, false), lease_answer::exhausted);
  ASSERT_EQ(reader->close_lease(0), 0);
  EXPECT_EQ(third->open_lease(0, generation, false), lease_answer::exhausted);
  EXPECT_EQ(exporter->try_end(0), -EAGAIN);
  ASSERT_EQ(second->close_lease(0), 0);
  EXPECT_EQ(exporter->try_end(0), 0);
}

TEST_F(LeaseFile, SecondOpeningOfOneOwnerThatIsRefusedKeepsTheFirst)
{
  auto const generation = exporter->begin(0, 1);
  ASSERT_EQ(reader->open_lease(0, generation, false), lease_answer::opened);
  EXPECT_EQ(reader->open_lease(0, generation, true), lease_answer::exhausted);
  EXPECT_EQ(exporter->try_end(0), -EAGAIN);
}

TEST_F(LeaseFile, OpeningThatIsTakenBackMayBeTriedAgain)
{
  auto const generation = exporter->begin(0, 1);
  ASSERT_EQ(reader->open_lease(0, generation, false), lease_answer::opened);
  reader->uncount(0);
  ASSERT_EQ(reader->close_lease(0), 0);
  EXPECT_EQ(exporter->read(0).opened, 0U);
  EXPECT_EQ(reader->open_lease(0, generation, false), lease_answer::opened);
}

TEST_F(LeaseFile, SlotsDoNotKnowOfOneAnother)
{
  auto const first = exporter->begin(0, 1);
  auto const last  = exporter->begin(7, 1);
  ASSERT_EQ(reader->open_lease(7, last, false), lease_answer::opened);
  EXPECT_EQ(exporter->try_end(0), 0);
  EXPECT_EQ(reader->open_lease(0, first, false), lease_answer::ended);
  EXPECT_EQ(exporter->try_end(7), -EAGAIN);
}

// Who lives

TEST_F(LeaseFile, ThereIsOneExporterAsLongAsItHasTheFile)
{
  EXPECT_EQ(reader->exporter_alive(), 1);
  EXPECT_EQ(reader->try_be_exporter(), -EAGAIN);
  auto const generation = exporter->begin(0, 1);
  exporter.reset();
  EXPECT_EQ(reader->exporter_alive(), 0);
  EXPECT_EQ(reader->open_lease(0, generation, false), lease_answer::exporter_gone);
  EXPECT_EQ(reader->try_be_exporter(), 0);
}

TEST_F(LeaseFile, ReaderThatIsKilledHoldsNothingMore)
{
  auto const generation = exporter->begin(0, 1);
  other_process killed{[&] {
    return shared.open().release()->open_lease(0, generation, false) == lease_answer::opened;
  }};
  ASSERT_TRUE(killed.succeeded());
  EXPECT_EQ(exporter->try_end(0), -EAGAIN);
  killed.kill();
  EXPECT_EQ(exporter->read(0).opened, 1U);
  EXPECT_EQ(exporter->try_end(0), 0);
}

TEST_F(LeaseFile, ExporterThatIsKilledIsGone)
{
  exporter.reset();
  other_process killed{[&] { return shared.open().release()->try_be_exporter() == 0; }};
  ASSERT_TRUE(killed.succeeded());
  EXPECT_EQ(reader->exporter_alive(), 1);
  killed.kill();
  EXPECT_EQ(reader->exporter_alive(), 0);
}

TEST_F(LeaseFile, ChildOfAForkHasNothingOpenAndKeepsNoLock)
{
  auto const generation = exporter->begin(0, 3);
  ASSERT_EQ(reader->open_lease(0, generation, false), lease_answer::opened);
  other_process child{[&] {
    bool const nothing = !exporter->here() && !reader->here() && exporter->read(0).opened == 0 &&
                         exporter->begin(1, 1) == 0 && exporter->try_end(0) < 0 &&
                         exporter->is_open(0) < 0 && reader->exporter_alive() < 0 &&
                         reader->close_lease(0) < 0 &&
                         reader->open_lease(0, generation, true) == lease_answer::failed;
    reader->uncount(0);
    reader.reset();
    exporter.reset();
    return nothing && shared.open()->exporter_alive() == 1;  // the parent is
  }};
  ASSERT_TRUE(child.succeeded());  // and it lives on
  EXPECT_TRUE(exporter->here());
  EXPECT_EQ(exporter->read(0).opened, 1U);
  ASSERT_EQ(reader->close_lease(0), 0);
  EXPECT_EQ(exporter->try_end(0), 0);
  exporter.reset();
  EXPECT_EQ(reader->exporter_alive(), 0);
}

TEST_F(LeaseFile, ProcessThatDoesNotForgetTheFileKeepsItsLocks)
{
  // The twin of the test before: a child that has one more copy of the descriptor.
  exporter.reset();
  auto const descriptor = shared.descriptor();
  auto const copy       = ::dup(descriptor);
  exporter              = lease_file::open(descriptor, 8).file;
  ASSERT_EQ(exporter->try_be_exporter(), 0);
  other_process const child{[] { return true; }};
  ::close(copy);
  exporter.reset();
  EXPECT_EQ(reader->exporter_alive(), 1);
}

// Files that are none

TEST(LeaseFileOpen, AnotherLengthIsRefusedAndTheDescriptorClosed)
{
  shared_leases const shared{8};
  for (std::size_t const slots : {0U, 7U, 9U}) {
    auto const descriptor = shared.descriptor();
    auto const opened     = lease_file::open(descriptor, slots);
    EXPECT_EQ(opened.file, nullptr);
    EXPECT_EQ(opened.error, EINVAL);
    EXPECT_EQ(::fcntl(descriptor, F_GETFD), -1);
  }
}

TEST(LeaseFileOpen, ClosedDescriptorIsRefused) { EXPECT_EQ(lease_file::open(-1, 8).error, EBADF); }

TEST(LeaseFileOpen, ReadOnlyDescriptorIsRefused)
{
  shared_leases const shared{8};
  auto const writable = shared.descriptor();
  auto const read_only =
    ::open(("/proc/self/fd/" + std::to_string(writable)).c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(lease_file::open(read_only, 8).error, EACCES);
  ::close(writable);
}

}  // namespace
}  // namespace rmm_uvm::ipc
