// A small config that is right, as text, for tests that spoil one thing in it.

#pragma once

#include <string>

namespace isthmus::core {

inline std::string good_config() {
  return R"(job: test
regions:
  - name: frankfurt
    workers: 2
    servers:
      - { lan: "127.0.0.1:7100", wan: "127.0.0.1:7200", shards: 2 }
  - name: virginia
    servers:
      - { lan: "127.0.0.1:7110", wan: "127.0.0.1:7210", shards: 2 }
trainer: { stop: { steps: 100 } }
)";
}

}  // namespace isthmus::core
