// A client's session object resolves its server's name in the constructor, on the loop, or (FIXED) in a thread.
#include <netdb.h>
#include <poll.h>
#include <string>
#include <sys/timerfd.h>
#include <thread>
#include <unistd.h>
class Session {
 public:
  __attribute__((noinline)) explicit Session(const std::string &host) : host_(host) {
#ifdef FIXED
    std::thread([host] { resolve(host); }).detach();
#else
    resolve(host_);
#endif
  }
 private:
  __attribute__((noinline)) static void resolve(const std::string &host) {
    addrinfo *found = nullptr;
    if (!getaddrinfo(host.c_str(), "443", nullptr, &found)) freeaddrinfo(found);
  }
  std::string host_;
};
int main() {
  int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  itimerspec every{{0, 50000000}, {0, 50000000}};
  timerfd_settime(timer, 0, &every, nullptr);
  pollfd watched{timer, POLLIN, 0};
  for (int i = 0; i < 30; i++) {
    poll(&watched, 1, -1);
    unsigned long expired;
    if (read(timer, &expired, sizeof expired) < 0) continue;
    if (i == 2) Session session("files.example.test");
  }
}
