// How the LinkKeeper comes by streams: those it accepts and those it dials.

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <utility>
#include <variant>

#include "proto/meta.h"
#include "wan/link_keeper.h"

namespace isthmus::wan {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
constexpr auto kToken = asio::as_tuple(asio::use_awaitable);
constexpr std::chrono::milliseconds kAcceptNap{100};
constexpr std::chrono::seconds kTellStrangersEvery{1};

Status refused(std::string text) { return {ErrorCode::kRefused, std::move(text)}; }

}  // namespace

asio::awaitable<void> LinkKeeper::accept() {
  while (!stopping_) {
    auto [error, socket] = co_await acceptor_.async_accept(kToken);
    if (stopping_) co_return;
    if (error) {  // Out of files, for instance: others may end.
      say("wan: accept: " + error.message());
      accept_nap_.expires_after(kAcceptNap);
      co_await accept_nap_.async_wait(kToken);
      continue;
    }
    spawn(serve(make_stream(std::move(socket))));
  }
}

asio::awaitable<void> LinkKeeper::serve(std::shared_ptr<Stream> stream) {
  make_room_for_a_handshake();
  const auto place = handshakes_.insert(handshakes_.end(), stream);
  stream->expect_within(options_.timing.handshake,
                        "no handshake within " + in_seconds(options_.timing.handshake));
  Result<Admission> admission = Status();
  try {
    admission = co_await admit(stream);
  } catch (const std::exception& error) {
    admission = Status(ErrorCode::kInternal, error.what());
  }
  handshakes_.erase(place);
  if (admission.ok()) {
    stream->no_deadline();
    (void)co_await run(*find(admission->peer), *admission, stream);  // The link has been told why.
  } else {
    co_await stream->linger();
  }
  streams_.erase(stream);
}

// Those who connect and say nothing must not keep our peers out: the oldest goes.
void LinkKeeper::make_room_for_a_handshake() {
  std::size_t places = kMaxHandshakes + links_.size() * options_.config.links.streams;
  if (handshakes_.size() < places) return;
  for (const std::shared_ptr<Stream>& oldest : handshakes_) {
    if (oldest->failed()) continue;
    oldest->fail({ErrorCode::kResourceExhausted, "too many handshakes at once"});
    return;
  }
}

asio::awaitable<Result<Admission>> LinkKeeper::admit(std::shared_ptr<Stream> stream) {
  if (Status status = co_await stream->secure(Stream::Side::kAcceptor); !status.ok()) {
    note_unadmitted(*stream, status, nullptr);
    co_return status;
  }
  const Result<proto::Message> message = co_await stream->receive(0);
  if (!message.ok() && message.status().code() != ErrorCode::kProtocol) {
    note_unadmitted(*stream, message.status(), nullptr);
    co_return message.status();
  }
  std::variant<Admission, Refusal> verdict;
  if (!message.ok()) {
    verdict = Refusal{stream->refused_version() ? proto::REFUSE_VERSION : proto::REFUSE_BAD_REQUEST,
                      message.status().message()};
  } else if (const Result<proto::LinkHello> hello = proto::parse_meta<proto::LinkHello>(*message);
             message->kind != proto::Kind::kLinkHello || !hello.ok()) {
    verdict = Refusal{proto::REFUSE_BAD_REQUEST, "a link begins with a link hello"};
  } else {
    verdict = check_hello(local_, *hello, stream->identity());
  }
  if (const auto* admission = std::get_if<Admission>(&verdict)) {
    const Link& link = *find(admission->peer);
    if (auto older = check_incarnation(link.name(), link.newest_incarnation(), admission->incarnation))
      verdict = *std::move(older);
  }
  co_return co_await answer(std::move(stream), std::move(verdict));
}

asio::awaitable<Result<Admission>> LinkKeeper::answer(std::shared_ptr<Stream> stream,
                                                      std::variant<Admission, Refusal> verdict) {
  if (const auto* refusal = std::get_if<Refusal>(&verdict)) {
    note_unadmitted(*stream, refused("refused: " + refusal->text), claimed_link(*stream));
    const Status said = co_await stream->transmit(proto::make_refusal(0, refusal->reason, refusal->text));
    co_return said.ok() ? refused(refusal->text) : said;
  }
  const proto::LinkWelcome welcome = make_welcome(local_, clock_.load(std::memory_order_relaxed));
  if (Status status = co_await stream->transmit(proto::make_message(proto::Kind::kLinkWelcome, 0, welcome));
      !status.ok())
    co_return status;
  co_return std::get<Admission>(verdict);
}

// Only a proven identity is held against a link; a region's name on an untrusted certificate is anybody's.
Link* LinkKeeper::claimed_link(const Stream& stream) {
  if (!stream.identity()) return nullptr;
  for (const std::unique_ptr<Link>& link : links_)
    if (options_.config.regions[link->peer().region].name == stream.identity()->region) return link.get();
  return nullptr;
}

void LinkKeeper::note_unadmitted(const Stream& stream, const Status& why, Link* link) {
  const core::TimePoint now = std::chrono::steady_clock::now();
  if (link != nullptr) {
    link->count_bytes(stream);
    link->note_refusal(why, now);
    return;
  }
  if (why.code() == ErrorCode::kUnavailable || why.code() == ErrorCode::kCancelled) return;  // Merely cut.
  ++refused_strangers_;
  if (now - told_stranger_at_ < kTellStrangersEvery) return;
  told_stranger_at_ = now;
  say("wan: refused a connection: " + why.message());
}

asio::awaitable<void> LinkKeeper::dial(Dialer& dialer) {
  while (!stopping_) {
    const std::shared_ptr<Stream> stream = make_stream(Tcp::socket(io_));
    Status why;
    try {
      why = co_await dial_once(dialer, stream);
    } catch (const std::exception& error) {
      why = {ErrorCode::kInternal, error.what()};
    }
    stream->fail(why);
    streams_.erase(stream);
    if (stopping_) co_return;
    if (stream->opened()) dialer.backoff.reset();
    dialer.nap.expires_after(why.code() == ErrorCode::kRefused
                                 ? dialer.backoff.jittered(options_.timing.after_refusal)
                                 : dialer.backoff.next());
    co_await dialer.nap.async_wait(kToken);
  }
}

asio::awaitable<Status> LinkKeeper::dial_once(Dialer& dialer, std::shared_ptr<Stream> stream) {
  stream->expect_within(options_.timing.handshake,
                        "no answer within " + in_seconds(options_.timing.handshake));
  Result<Admission> admission = co_await greet(dialer, *stream);
  if (admission.ok()) {
    stream->no_deadline();
    admission->stream = dialer.stream;
    co_return co_await run(dialer.link, *admission, stream);
  }
  const Status& why = admission.status();
  if (stopping_) co_return why;
  dialer.link.count_bytes(*stream);
  if (why.code() == ErrorCode::kRefused || why.code() == ErrorCode::kProtocol) {
    dialer.link.note_refusal(why, std::chrono::steady_clock::now());
  } else {
    dialer.link.note_error(why);
  }
  co_return why;
}

// Connects, proves, says hello, and weighs the answer.
asio::awaitable<Result<Admission>> LinkKeeper::greet(Dialer& dialer, Stream& stream) {
  Link& link = dialer.link;
  const Result<TcpEndpoints> endpoints = co_await dialer.resolver.resolve(address_of(link.peer()));
  if (!endpoints.ok()) co_return endpoints.status();
  if (Status status = co_await stream.connect(*endpoints); !status.ok()) co_return status;
  if (Status status = co_await stream.secure(Stream::Side::kDialer); !status.ok()) co_return status;
  if (stream.identity())
    if (auto wrong = check_certificate(local_, link.peer(), *stream.identity()))
      co_return refused(wrong->text);

  const proto::LinkHello hello =
      make_hello(local_, link.id(), dialer.stream, clock_.load(std::memory_order_relaxed));
  if (Status status = co_await stream.transmit(proto::make_message(proto::Kind::kLinkHello, 0, hello));
      !status.ok())
    co_return status;
  const Result<proto::Message> message = co_await stream.receive(0);
  if (!message.ok()) co_return message.status();
  if (message->kind == proto::Kind::kRefuse)
    co_return proto::refusal_status(*message).with_context(link.name() + " refuses us");
  const Result<proto::LinkWelcome> welcome = proto::parse_meta<proto::LinkWelcome>(*message);
  if (message->kind != proto::Kind::kLinkWelcome || !welcome.ok())
    co_return Status(ErrorCode::kProtocol, "a link hello is answered by a welcome or a refusal");
  auto verdict = check_welcome(local_, link.peer(), *welcome);
  if (const auto* wrong = std::get_if<Refusal>(&verdict)) co_return refused(wrong->text);
  const auto& admission = std::get<Admission>(verdict);
  if (auto older = check_incarnation(link.name(), link.newest_incarnation(), admission.incarnation))
    co_return refused(older->text);
  co_return admission;
}

}  // namespace isthmus::wan
