// Somebody else's program: it knows the installed headers and isthmus::client, nothing more.
// Nobody answers it, so it shows that the library links and that trouble is a Status.

#include <isthmus/client.h>
#include <isthmus/version.h>

#include <chrono>
#include <iostream>

int main() {
  isthmus::ClientConfig config;
  config.job = "consumer";
  config.region = "here";
  config.servers = {{.host = "127.0.0.1", .port = 1, .shards = 1}};
  config.tensors = {{.name = "weight", .shape = {3, 4}}};
  config.timeout = std::chrono::milliseconds(100);

  const auto client = isthmus::Client::connect(config);
  std::cout << "isthmus " << isthmus::kVersion << ": " << client.status().to_string() << "\n";
  return isthmus::is_retryable(client.status().code()) ? 0 : 1;
}
