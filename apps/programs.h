// Where the programs of an installation are.
//
// Threads: any.  Memory: none.  Errors: none; a program that is missing shows when it is started.

#pragma once

#include <string>

namespace isthmus::apps {

std::string this_program();     // `isthmus` itself.
std::string trainer_program();  // isthmus-trainer, beside it.

}  // namespace isthmus::apps
