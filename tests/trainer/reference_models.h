// The reference models once more, as plain loops in double precision: what torch_model.cc is held to.
//
// Written from the models' definitions (linear layer, convolution, GRU, cross-entropy), with no code in
// common with the library but the names of the tensors.
//
// Threads: pure.  Memory: values.  Errors: a tensor that is not there throws std::out_of_range.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trainer/dataset.h"

namespace isthmus::models {

using Doubles = std::vector<double>;
using ReferenceParameters = std::map<std::string, Doubles>;

inline Doubles reference_linear(const Doubles& weight, const Doubles& bias, const Doubles& input) {
  Doubles output = bias;
  for (std::size_t o = 0; o < output.size(); ++o)
    for (std::size_t i = 0; i < input.size(); ++i) output[o] += weight[o * input.size() + i] * input[i];
  return output;
}

inline Doubles reference_relu(Doubles values) {
  for (double& value : values) value = std::max(value, 0.0);
  return values;
}

// 3x3 with a border of zeros, over square images of `side`, channel after channel.
inline Doubles reference_convolution(const Doubles& weight, const Doubles& bias, const Doubles& input,
                                     int side) {
  const int pixels = side * side, channels = static_cast<int>(input.size()) / pixels;
  Doubles output;
  for (int o = 0; o < static_cast<int>(bias.size()); ++o)
    for (int at = 0; at < pixels; ++at) {
      double sum = bias[static_cast<std::size_t>(o)];
      for (int c = 0; c < channels; ++c)
        for (int tap = 0; tap < 9; ++tap) {
          const int y = at / side + tap / 3 - 1, x = at % side + tap % 3 - 1;
          if (y < 0 || x < 0 || y >= side || x >= side) continue;
          sum += weight[static_cast<std::size_t>((o * channels + c) * 9 + tap)] *
                 input[static_cast<std::size_t>(c * pixels + y * side + x)];
        }
      output.push_back(sum);
    }
  return output;
}

// The largest of each 2x2 pixels.
inline Doubles reference_pool(const Doubles& input, std::size_t side) {
  Doubles output;
  for (std::size_t base = 0; base < input.size(); base += side * side)
    for (std::size_t y = 0; y < side; y += 2)
      for (std::size_t x = 0; x < side; x += 2) {
        const double* corner = input.data() + base + y * side + x;
        output.push_back(std::max({corner[0], corner[1], corner[side], corner[side + 1]}));
      }
  return output;
}

inline Doubles reference_mlp(const ReferenceParameters& p, Doubles x) {
  x = reference_relu(reference_linear(p.at("fc1.weight"), p.at("fc1.bias"), x));
  x = reference_relu(reference_linear(p.at("fc2.weight"), p.at("fc2.bias"), x));
  return reference_linear(p.at("fc3.weight"), p.at("fc3.bias"), x);
}

inline Doubles reference_cnn(const ReferenceParameters& p, Doubles x) {
  x = reference_convolution(p.at("conv1.weight"), p.at("conv1.bias"), x, 28);
  x = reference_pool(reference_relu(x), 28);
  x = reference_convolution(p.at("conv2.weight"), p.at("conv2.bias"), x, 14);
  x = reference_pool(reference_relu(x), 14);
  x = reference_relu(reference_linear(p.at("fc1.weight"), p.at("fc1.bias"), x));
  return reference_linear(p.at("fc2.weight"), p.at("fc2.bias"), x);
}

// One step of a GRU whose weights hold the reset, update and new gates one after another.
inline Doubles reference_gru(const ReferenceParameters& p, const Doubles& input, const Doubles& state) {
  const auto sigmoid = [](double value) { return 1.0 / (1.0 + std::exp(-value)); };
  const Doubles in = reference_linear(p.at("gru.weight_ih_l0"), p.at("gru.bias_ih_l0"), input);
  const Doubles from = reference_linear(p.at("gru.weight_hh_l0"), p.at("gru.bias_hh_l0"), state);
  const std::size_t hidden = state.size();
  Doubles next(hidden);
  for (std::size_t i = 0; i < hidden; ++i) {
    const double reset = sigmoid(in[i] + from[i]);
    const double update = sigmoid(in[hidden + i] + from[hidden + i]);
    const double fresh = std::tanh(in[2 * hidden + i] + reset * from[2 * hidden + i]);
    next[i] = (1.0 - update) * fresh + update * state[i];
  }
  return next;
}

// One vector of logits for each target of the batch.
inline std::vector<Doubles> reference_logits(const std::string& model, const ReferenceParameters& p,
                                             const Batch& batch) {
  std::vector<Doubles> logits;
  if (model == "charlm") {
    const std::size_t sequence = batch.tokens.size() / batch.samples;
    const std::size_t hidden = p.at("gru.bias_hh_l0").size() / 3;
    const Doubles& embedding = p.at("embedding.weight");
    const std::size_t width = embedding.size() / 256;
    Doubles state;
    for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
      if (i % sequence == 0) state.assign(hidden, 0.0);
      const auto row = embedding.begin() + static_cast<std::ptrdiff_t>(width) * batch.tokens[i];
      state = reference_gru(p, Doubles(row, row + static_cast<std::ptrdiff_t>(width)), state);
      logits.push_back(reference_linear(p.at("head.weight"), p.at("head.bias"), state));
    }
    return logits;
  }
  const std::size_t pixels = batch.pixels.size() / batch.samples;
  for (std::size_t s = 0; s < batch.samples; ++s) {
    const auto image = batch.pixels.begin() + static_cast<std::ptrdiff_t>(s * pixels);
    const Doubles input(image, image + static_cast<std::ptrdiff_t>(pixels));
    logits.push_back(model == "mlp" ? reference_mlp(p, input) : reference_cnn(p, input));
  }
  return logits;
}

// Mean of -log softmax(logits)[target].
inline double reference_loss(const std::vector<Doubles>& logits, const std::vector<std::int64_t>& targets) {
  double sum = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    double total = 0;
    for (double logit : logits[i]) total += std::exp(logit);
    sum += std::log(total) - logits[i][static_cast<std::size_t>(targets[i])];
  }
  return sum / static_cast<double>(targets.size());
}

// The share of targets that have the largest logit.
inline double reference_accuracy(const std::vector<Doubles>& logits,
                                 const std::vector<std::int64_t>& targets) {
  int right = 0;
  for (std::size_t i = 0; i < targets.size(); ++i)
    right += std::max_element(logits[i].begin(), logits[i].end()) - logits[i].begin() == targets[i] ? 1 : 0;
  return right / static_cast<double>(targets.size());
}

}  // namespace isthmus::models
