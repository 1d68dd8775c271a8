/* kernel_rings.c - mappings that the kernel itself fills (of a TCP socket, of a perf event) are refused, as is a ring for packets; sockets
 * and events work without. */
#include "show.h"
#include <linux/perf_event.h>
#include <sys/socket.h>
int main(void) {
  int tcp = socket(AF_INET, SOCK_STREAM, 0);
  NEED(tcp >= 0);
  void *ring = mmap(NULL, 4096, PROT_READ, MAP_SHARED, tcp, 0);
  printf("%d\n", ring != MAP_FAILED || errno == ENODEV);
  struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof attr, .config = PERF_COUNT_SW_DUMMY, .exclude_kernel = 1};
  int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  uint64_t value;
  printf("%d\n", fd < 0 || read(fd, &value, sizeof value) == sizeof value);
  ring = fd < 0 ? NULL : mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  printf("%d\n", ring != MAP_FAILED || errno == ENODEV);
  printf("%d\n", setsockopt(tcp, 263, 5, &value, sizeof value)); /* SOL_PACKET, PACKET_RX_RING */
  return 0;
}
