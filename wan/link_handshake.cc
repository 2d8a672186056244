#include "wan/link_handshake.h"

#include "proto/meta.h"

namespace isthmus::wan {
namespace {

// A small table rides on each stream's hello; a large one only on the first's.
constexpr std::size_t kSmallTable = 64 << 10;

Refusal refuse(proto::RefuseReason reason, std::string text) { return {reason, std::move(text)}; }

std::optional<std::uint32_t> find_region(const core::JobConfig& config, const std::string& name) {
  for (std::uint32_t i = 0; i < config.regions.size(); ++i)
    if (config.regions[i].name == name) return i;
  return std::nullopt;
}

// Only what the peer's certificate proves counts; without TLS there is only its word.
std::optional<Refusal> check_identity(const std::string& job, const std::string& region,
                                      const Identity& certificate) {
  if (certificate.job != job)
    return refuse(proto::REFUSE_JOB, "certificate of " + certificate.region + " belongs to job '" +
                                         certificate.job + "', not to '" + job + "'");
  if (certificate.region != region)
    return refuse(proto::REFUSE_REGION,
                  "certificate of " + certificate.region + " does not prove to be region " + region);
  return std::nullopt;
}

std::optional<Refusal> check_layout(const LocalSide& local, const proto::LinkHello& hello) {
  if (hello.layout_hash() == local.layout.hash()) return std::nullopt;
  std::string text = "layouts differ";
  if (hello.layout().tensors_size() > 0) {
    const Result<core::Layout> theirs = proto::from_table(hello.layout());
    if (!theirs.ok()) return refuse(proto::REFUSE_LAYOUT, theirs.status().message());
    const std::string difference = core::Layout::difference(local.layout, *theirs);
    if (!difference.empty())
      text += " (here is " + local.name() + ", there " + hello.region() + "): " + difference;
  }
  return refuse(proto::REFUSE_LAYOUT, text);
}

std::optional<Refusal> check_streams(const LocalSide& local, const proto::LinkHello& hello) {
  const std::uint32_t streams = local.config.links.streams;
  if (hello.streams() != streams)
    return refuse(proto::REFUSE_BAD_REQUEST, "links.streams is " + std::to_string(streams) + " in " +
                                                 local.name() + " and " + std::to_string(hello.streams()) +
                                                 " in " + hello.region());
  if (hello.stream() >= streams)
    return refuse(proto::REFUSE_BAD_REQUEST,
                  "stream " + std::to_string(hello.stream()) + " of " + std::to_string(streams));
  return std::nullopt;
}

}  // namespace

std::string peer_name(const core::JobConfig& config, Peer peer) {
  const core::RegionConfig& region = config.regions[peer.region];
  return region.servers.size() == 1 ? region.name : region.name + " server " + std::to_string(peer.server);
}

proto::LinkHello make_hello(const LocalSide& local, std::uint64_t link_id, std::uint32_t stream, Step clock) {
  proto::LinkHello hello;
  hello.set_job(local.config.job);
  hello.set_region(local.name());
  hello.set_server(local.server);
  hello.set_incarnation(local.incarnation);
  hello.set_link_id(link_id);
  hello.set_stream(stream);
  hello.set_streams(local.config.links.streams);
  hello.set_layout_hash(local.layout.hash());
  proto::LayoutTable table = proto::to_table(local.layout);
  if (stream == 0 || table.ByteSizeLong() <= kSmallTable) *hello.mutable_layout() = std::move(table);
  hello.set_clock(clock);
  return hello;
}

proto::LinkWelcome make_welcome(const LocalSide& local, Step clock) {
  proto::LinkWelcome welcome;
  welcome.set_region(local.name());
  welcome.set_server(local.server);
  welcome.set_incarnation(local.incarnation);
  welcome.set_clock(clock);
  return welcome;
}

std::variant<Admission, Refusal> check_hello(const LocalSide& local, const proto::LinkHello& hello,
                                             const std::optional<Identity>& certificate) {
  if (certificate)
    if (auto bad = check_identity(local.config.job, hello.region(), *certificate)) return *bad;
  if (hello.job() != local.config.job)
    return refuse(proto::REFUSE_JOB, "this is job '" + local.config.job + "', not '" + hello.job() + "'");
  const std::optional<std::uint32_t> region = find_region(local.config, hello.region());
  if (!region)
    return refuse(proto::REFUSE_REGION,
                  "region '" + hello.region() + "' is not in the config of " + local.name());
  if (hello.server() >= local.config.regions[*region].servers.size())
    return refuse(proto::REFUSE_REGION, "region " + hello.region() + " has no server " +
                                            std::to_string(hello.server()) + " in the config of " +
                                            local.name());
  if (*region <= local.region)
    return refuse(proto::REFUSE_REGION, "region " + hello.region() + " does not come after " + local.name() +
                                            " in its config: the configs differ");
  if (auto bad = check_streams(local, hello)) return *bad;
  if (auto bad = check_layout(local, hello)) return *bad;
  return Admission{{*region, hello.server()}, hello.stream(), hello.incarnation(), hello.clock()};
}

std::optional<Refusal> check_certificate(const LocalSide& local, Peer dialed, const Identity& certificate) {
  return check_identity(local.config.job, local.config.regions[dialed.region].name, certificate);
}

std::variant<Admission, Refusal> check_welcome(const LocalSide& local, Peer dialed,
                                               const proto::LinkWelcome& welcome) {
  const std::string& name = local.config.regions[dialed.region].name;
  if (welcome.region() != name || welcome.server() != dialed.server)
    return refuse(proto::REFUSE_REGION, "dialed " + peer_name(local.config, dialed) + ", but server " +
                                            std::to_string(welcome.server()) + " of region '" +
                                            welcome.region() + "' answers there");
  return Admission{dialed, 0, welcome.incarnation(), welcome.clock()};
}

std::optional<Refusal> check_incarnation(const std::string& name, std::uint64_t newest,
                                         std::uint64_t offered) {
  if (offered >= newest) return std::nullopt;
  return refuse(proto::REFUSE_EPOCH, "incarnation " + std::to_string(offered) + " of " + name +
                                         " is an older life: " + std::to_string(newest) + " was here");
}

}  // namespace isthmus::wan
