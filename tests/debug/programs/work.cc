// As many threads as the first argument says add to a total, in turns.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>
#include <unistd.h>
static std::mutex lock;
long total, noted;
long twice(long n) {
  long result = n * 2; // line: twice
  return result;       // line: returns
}
struct Adder {
  virtual ~Adder() = default;
  virtual void add(long who, long n) {
    long value = twice(n); // line: calls
    total += value;        // line: adds
    noted = who;           // line: notes
  }
};
static void worker(Adder &adder, long who) {
  for (long n = 1; n <= 12; n++) {
    {
      std::lock_guard<std::mutex> guard(lock);
      adder.add(who, n); // line: works
    }
    usleep(100);
  }
}
int main(int argc, char **argv) {
  long count = argc > 1 ? std::atol(argv[1]) : 1;
  auto adder = std::make_unique<Adder>();
  std::vector<std::thread> threads;
  for (long i = 1; i < count; i++) threads.emplace_back([&adder, i] { worker(*adder, i); });
  worker(*adder, 0);
  for (auto &one : threads) one.join();
  std::printf("%ld\n", total); // line: prints
  std::fflush(stdout);
}
