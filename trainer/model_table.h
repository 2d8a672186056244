// Which tensors each of the reference models has, and how they start.
//
// A model is declared as a table before anything is trained, so that a job can be planned and its
// servers told without libtorch. `torch_model.h` computes with these tables; the names are PyTorch's.
//
// Threads: pure functions.
// Memory:  initial_parameters() fills the caller's memory.
// Errors:  a model that is not known, or does not fit its data set or its numbers, is kInvalidArgument
//   with the config's key.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/job_config.h"
#include "isthmus/status.h"
#include "isthmus/tensor.h"

namespace isthmus::models {

inline constexpr std::uint64_t kImageRows = 28, kImageColumns = 28, kImageClasses = 10;
inline constexpr std::uint64_t kBytesVocabulary = 256;  // charlm: every byte is a character.

// mlp      784-256-128-10 with ReLU.
// cnn      two 3x3 convolutions, each with ReLU and a 2x2 max pool, then two linear layers.
// charlm   an embedding of bytes, one GRU, a linear layer to the next byte.
// synthetic  `synthetic.tensors` vectors of `synthetic.elements`: tensor0, tensor1, ...
Result<std::vector<TensorSpec>> model_table(const core::TrainerConfig& config);

// The parameters that `seed` stands for: the same bits on every machine. A matrix or a convolution is
// uniform in +-1/sqrt(fan-in), a vector is zero.
// REQUIRES: views[i].size() == table[i].elements().
void initial_parameters(std::span<const TensorSpec> table, std::uint64_t seed,
                        std::span<const TensorView> views);

}  // namespace isthmus::models
