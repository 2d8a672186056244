// Somebody else's program: it knows the installed headers and isthmus::client, nothing more.

#include <isthmus/status.h>
#include <isthmus/tensor.h>
#include <isthmus/version.h>

#include <iostream>

int main() {
  const isthmus::TensorSpec weight{.name = "weight", .shape = {3, 4}};
  std::cout << "isthmus " << isthmus::kVersion << ": " << weight.name << " has " << weight.elements()
            << " elements, " << isthmus::Status().to_string() << "\n";
  return weight.elements() == 12 ? 0 : 1;
}
