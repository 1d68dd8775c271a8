/* C++: threads, async, futures, promises, condition variables, shared mutexes, call_once, exceptions between threads. */
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <vector>
int main() {
  std::vector<std::future<long>> futures;
  for (long i = 0; i < 8; i++)
    futures.push_back(std::async(std::launch::async, [i] { long s = 0; for (long k = 0; k < 10000 * i; k++) s += k; return s; }));
  long total = 0;
  for (auto &f : futures) total += f.get();
  std::shared_mutex lock;
  std::atomic<long> reads{0};
  long value = 0, order = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++)
    threads.emplace_back([&, i] {
      for (int k = 0; k < 100; k++) {
        if (k % 10 == i) { std::unique_lock l(lock); value++; order = order * 31 + i; }
        else { std::shared_lock l(lock); reads += value; }
        if (k % 20 == 0) std::this_thread::yield();
      }
    });
  for (auto &t : threads) t.join();
  std::promise<int> p;
  std::thread thrower([&] { try { throw std::runtime_error("x"); } catch (...) { p.set_exception(std::current_exception()); } });
  const char *caught = "nothing";
  try { p.get_future().get(); } catch (const std::runtime_error &) { caught = "caught"; }
  thrower.join();
  std::printf("%ld %ld %ld %lx %s\n", total, value, reads.load(), (unsigned long)order, caught);
}
