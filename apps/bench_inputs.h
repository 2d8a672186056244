// What `isthmus bench codec` feeds to the codecs: made by a formula, or read from a file of real gradients.
//
// Threads: pure but for the file.
// Memory:  the caller's; a file is read whole.
// Errors:  kInvalidArgument for a name that is no input and for values that are not finite; otherwise those
// of
//          the file.

#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "isthmus/status.h"

namespace isthmus::apps {

// gaussian: standard normal. laplace: of scale 1. heavy: standard normal times exp(1.25 z), z standard normal
// and the same for 8 neighbours, so that magnitudes differ between rows as they do in embeddings.
std::span<const std::string_view> made_inputs();

// Whether `input` is taken for the path of a file: it has a '/' or a '.'.
bool is_input_file(std::string_view input);

// The input's name in the table: a file's is its own, without folder and extension.
std::string input_name(const std::string& input);

// Fills `out`. The same name gives the same numbers. A file (safetensors, as `isthmus worker --gradients`
// writes it) is its tensors one after the other, again and again until `out` is full.
Status fill_input(const std::string& input, std::span<float> out);

}  // namespace isthmus::apps
