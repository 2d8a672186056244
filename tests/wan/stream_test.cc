// One stream and its other end, on one thread: frames, limits, deadlines. TLS is met in endpoint_test.cc.

#include "wan/stream.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

namespace isthmus::wan {
namespace {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;

proto::Message message(std::uint64_t slice, std::size_t bytes) {
  proto::Message made;
  made.kind = proto::Kind::kReset;
  made.request_id = slice;
  made.meta = "about slice " + std::to_string(slice);
  if (bytes > 0) made.payload.push_back(core::copy_bytes(std::vector<std::byte>(bytes, std::byte{0x5a})));
  return made;
}

class StreamTest : public testing::Test {
 protected:
  StreamTest() {
    Tcp::acceptor acceptor(io_, {asio::ip::address_v4::loopback(), 0});
    Tcp::socket left(io_);
    left.connect(acceptor.local_endpoint());
    right_ = std::make_shared<Stream>(acceptor.accept(), nullptr, "ca.pem");
    left_ = std::make_shared<Stream>(std::move(left), nullptr, "ca.pem");
  }

  void open(const std::shared_ptr<Stream>& stream) {
    stream->open({[] {
                    return proto::Message{proto::Kind::kLinkHeartbeat, 0, "", {}};
                  },
                  [this](std::uint64_t bytes, bool written) { (written ? written_ : lost_) += bytes; }});
    asio::co_spawn(io_, Stream::write_queued(stream), asio::detached);
  }
  // Until `count` frames have come, or the end, whose reason is why_.
  asio::awaitable<void> receive(std::shared_ptr<Stream> stream, std::size_t count, std::uint64_t limit) {
    while (got_.size() < count) {
      Result<proto::Message> received = co_await stream->receive(limit);
      if (!received.ok()) {
        why_ = received.status();
        break;
      }
      got_.push_back(*std::move(received));
    }
    left_->fail({ErrorCode::kCancelled, "enough"});
  }
  void run(std::size_t count, std::uint64_t limit = 1 << 20) {
    asio::co_spawn(io_, receive(right_, count, limit), asio::detached);
    io_.run();
  }

  asio::io_context io_;
  std::shared_ptr<Stream> left_;
  std::shared_ptr<Stream> right_;
  std::vector<proto::Message> got_;
  Status why_;
  std::uint64_t written_ = 0;
  std::uint64_t lost_ = 0;
};

TEST_F(StreamTest, CarriesFramesInOrderAndAccountsForThem) {
  open(left_);
  std::uint64_t bytes = 0;
  for (std::uint64_t slice = 0; slice < 50; ++slice) {
    proto::Message next = message(slice, slice * 1000);
    bytes += frame_bytes(next);
    left_->enqueue(std::move(next));
  }
  run(50);
  ASSERT_EQ(got_.size(), 50u);
  for (std::uint64_t slice = 0; slice < 50; ++slice) {
    EXPECT_EQ(got_[slice].request_id, slice);
    EXPECT_EQ(got_[slice].meta, "about slice " + std::to_string(slice));
    EXPECT_EQ(got_[slice].payload_bytes(), slice * 1000);
  }
  EXPECT_EQ(written_, bytes);
  EXPECT_EQ(lost_, 0u);
  EXPECT_EQ(left_->sent_bytes(), bytes);
  EXPECT_EQ(right_->received_bytes(), bytes);
}

TEST_F(StreamTest, AHeartbeatOvertakesWhatIsQueued) {
  open(left_);
  for (std::uint64_t slice = 0; slice < 3; ++slice) left_->enqueue(message(slice, 10));
  left_->heartbeat_due();
  left_->heartbeat_due();  // One says as much as two.
  run(4);
  ASSERT_EQ(got_.size(), 4u);
  EXPECT_EQ(got_[0].kind, proto::Kind::kLinkHeartbeat);
  EXPECT_EQ(got_[3].request_id, 2u);
}

TEST_F(StreamTest, RefusesAPayloadOverTheLimit) {
  open(left_);
  left_->enqueue(message(0, 1000));
  left_->enqueue(message(1, 1001));
  run(2, 1000);
  EXPECT_EQ(got_.size(), 1u);
  EXPECT_EQ(why_.code(), ErrorCode::kProtocol);
}

TEST_F(StreamTest, FailsOnceAndForgetsItsQueue) {
  open(left_);
  left_->enqueue(message(0, 100));
  left_->fail({ErrorCode::kTimeout, "first"});
  left_->fail({ErrorCode::kInternal, "second"});
  EXPECT_EQ(left_->why().message(), "first");
  EXPECT_EQ(lost_, frame_bytes(message(0, 100)));
  run(1);
  EXPECT_EQ(why_.message(), "closed by the peer");
  EXPECT_EQ(why_.code(), ErrorCode::kUnavailable);
}

TEST_F(StreamTest, FinishingTellsThePeerThatNoMoreWillCome) {
  open(left_);
  left_->finish();
  run(1);
  EXPECT_EQ(why_.message(), "closed by the peer");
}

TEST_F(StreamTest, ADeadlineEndsWhatHasNotEnded) {
  right_->expect_within(std::chrono::milliseconds(1), "no hello within a moment");
  run(1);
  EXPECT_EQ(why_.code(), ErrorCode::kTimeout);
  EXPECT_EQ(why_.message(), "no hello within a moment");
}

TEST_F(StreamTest, ALiftedDeadlineEndsNothing) {
  right_->expect_within(std::chrono::milliseconds(1), "late");
  right_->no_deadline();
  open(left_);
  left_->enqueue(message(0, 10));
  run(1);
  EXPECT_EQ(got_.size(), 1u);
  EXPECT_TRUE(why_.ok());
}

TEST_F(StreamTest, SilenceEndsIt) {
  open(left_);  // Writes nothing: it has nothing to say.
  core::LinksConfig links;
  links.silence = std::chrono::milliseconds(50);
  open(right_);
  asio::co_spawn(io_, Stream::keep_alive(right_, links), asio::detached);
  run(1);
  EXPECT_EQ(why_.message(), "brought nothing for 0.05 s");
}

TEST_F(StreamTest, TakesANamedAddressAndReportsOneWhereNobodyIs) {
  Tcp::acceptor closed(io_, {asio::ip::address_v4::loopback(), 0});
  const Tcp::endpoint nobody = closed.local_endpoint();
  closed.close();
  const auto stream = std::make_shared<Stream>(Tcp::socket(io_), nullptr, "ca.pem");
  Status status;
  asio::co_spawn(io_, stream->connect({nobody}), [&](std::exception_ptr, Status got) { status = got; });
  io_.run();
  EXPECT_EQ(status.code(), ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace isthmus::wan
