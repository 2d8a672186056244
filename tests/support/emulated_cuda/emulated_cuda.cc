#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <memory>
#include <vector>

#include <ucontext.h>

#include "tests/support/emulated_cuda/cuda_runtime.h"

namespace emulated_cuda {
namespace {

constexpr std::size_t kStackBytes = 64 * 1024;

// A thread of a block. Its context is entered once; from then on it is left and resumed by jumps, which ask
// nothing of the kernel.
struct Fiber {
  std::jmp_buf place;
  std::unique_ptr<char[]> stack;
  bool ended = true;
};

// A barrier: who waits at it goes on when its turn has passed.
struct Barrier {
  unsigned threads = 0;
  unsigned waiting = 0;
  unsigned turn = 0;
};

struct Block {
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::jmp_buf scheduler;
  unsigned current = 0;
  const std::function<void()>* thread = nullptr;
  bool moved = false;  // Since the last round began, some thread got further.
  Barrier whole;
  std::vector<Barrier> warps;
  std::vector<std::uint64_t> given;  // By thread.
};

Block block;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "emulated device: %s\n", what);
  std::abort();
}

void leave() {
  if (_setjmp(block.fibers[block.current]->place) == 0) _longjmp(block.scheduler, 1);
}

void run_fiber() {
  for (;;) {
    Fiber& self = *block.fibers[block.current];
    (*block.thread)();
    if (block.warps[block.current / kWarpThreads].waiting > 0)
      fail("a thread ended while others of its warp wait");
    if (block.whole.waiting > 0) fail("a thread ended while others of its block wait");
    self.ended = true;
    block.moved = true;
    leave();
  }
}

// Returns when the fiber leaves.
void enter(Fiber& fiber) {
  if (_setjmp(block.scheduler) != 0) return;
  if (fiber.stack) _longjmp(fiber.place, 1);
  fiber.stack = std::make_unique<char[]>(kStackBytes);
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = fiber.stack.get();
  context.uc_stack.ss_size = kStackBytes;
  context.uc_link = nullptr;
  makecontext(&context, run_fiber, 0);
  setcontext(&context);
}

void wait_at(Barrier& barrier) {
  const unsigned turn = barrier.turn;
  block.moved = true;
  if (++barrier.waiting == barrier.threads) {
    barrier.waiting = 0;
    ++barrier.turn;
    return;
  }
  while (barrier.turn == turn) leave();
  block.moved = true;
}

}  // namespace

void wait_for_block() { wait_at(block.whole); }
void wait_for_warp() { wait_at(block.warps[block.current / kWarpThreads]); }

const std::uint64_t* exchange(std::uint64_t mine) {
  block.given[block.current] = mine;
  const unsigned first = block.current / kWarpThreads * kWarpThreads;
  wait_for_warp();
  return &block.given[first];
}

void run_block(unsigned threads, const std::function<void()>& thread) {
  if (threads == 0 || (threads > 1 && threads % kWarpThreads != 0)) fail("a block of whole warps is wanted");
  while (block.fibers.size() < threads) block.fibers.push_back(std::make_unique<Fiber>());
  block.thread = &thread;
  block.whole = {threads, 0, 0};
  block.warps.assign((threads + kWarpThreads - 1) / kWarpThreads, {std::min(threads, kWarpThreads), 0, 0});
  block.given.assign(threads, 0);
  for (unsigned i = 0; i < threads; ++i) {
    block.fibers[i]->ended = false;
  }
  for (unsigned left = threads; left > 0;) {
    block.moved = false;
    left = 0;
    for (unsigned i = 0; i < threads; ++i) {
      if (block.fibers[i]->ended) continue;
      block.current = i;
      threadIdx = dim3(i, 0, 0);
      enter(*block.fibers[i]);
      if (!block.fibers[i]->ended) ++left;
    }
    if (left > 0 && !block.moved) fail("threads wait at a barrier that not all of them reach");
  }
}

}  // namespace emulated_cuda
