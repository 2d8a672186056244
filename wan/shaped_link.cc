#include "wan/shaped_link.h"

#include <utility>

namespace isthmus::wan {

ShapedLink::ShapedLink(boost::asio::io_context& context, EmulatedLink model, std::function<void()> on_cut)
    : timer_(context), model_(std::move(model)), on_cut_(std::move(on_cut)) {}

void ShapedLink::start() {
  start_ = std::chrono::steady_clock::now();
  arm();
}

std::size_t ShapedLink::room(Way way) const { return model_.shaper(way).room(elapsed()); }

void ShapedLink::wait_for_room(Way way, std::weak_ptr<LinkUser> user) {
  waiting_[way].push_back(std::move(user));
}

void ShapedLink::pass_on(Way way) {
  auto& waiting = waiting_[way];
  // One at a time: each send() lets the next one try.
  while (!waiting.empty() && room(way) > 0) {
    const std::shared_ptr<LinkUser> next = waiting.front().lock();
    waiting.pop_front();
    if (next) return next->may_send(way);
  }
}

void ShapedLink::send(Way way, std::shared_ptr<LinkUser> to, Piece piece) {
  if (stopped_) return;
  const Duration now = elapsed();
  model_.advance(now);
  model_.shaper(way).push(now, piece.bytes.size());
  sent_[way].push_back({std::move(to), std::move(piece)});
  pump();
}

void ShapedLink::stop() {
  stopped_ = true;
  timer_.cancel();
  for (const Way way : kBothWays) {
    sent_[way].clear();
    waiting_[way].clear();
  }
}

void ShapedLink::pump() {
  const Duration now = elapsed();
  model_.advance(now);
  for (const Way way : kBothWays) release(way, now);
  if (model_.take_cut(now)) {
    model_.clear();
    for (const Way way : kBothWays) sent_[way].clear();
    on_cut_();
  }
  for (const Way way : kBothWays) {
    queued_bytes_[way] = model_.shaper(way).queued_bytes();
    line_bytes_[way] = model_.shaper(way).line_bytes();
    pass_on(way);
  }
  arm();
}

void ShapedLink::release(Way way, Duration now) {
  Shaper& shaper = model_.shaper(way);
  while (shaper.next_release() && *shaper.next_release() <= now) {
    shaper.release();
    Sent sent = std::move(sent_[way].front());
    sent_[way].pop_front();
    sent.to->arrived(way, std::move(sent.piece));
  }
}

void ShapedLink::arm() {
  const std::optional<Duration> next = model_.next_event();
  if (stopped_ || !next || (armed_ && *armed_ <= *next)) return;
  armed_ = next;
  timer_.expires_at(start_ + *next);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;  // Armed anew, or stopped.
    armed_.reset();
    pump();
  });
}

}  // namespace isthmus::wan
