/* bad_pointers.c - bad addresses given to many calls: EFAULT (or what the kernel says), never a crash. */
#include "show.h"
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
int main(void) {
  void *bad[] = {(void *)8, (void *)0x7fffdeadb000, (void *)0xffff800000000000, (void *)-1};
  int fd = open("/etc/passwd", O_RDONLY), pair[2];
  NEED(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
  write(pair[0], "data", 4);
  for (int i = 0; i < 4; i++) {
    void *p = bad[i];
    SHOW(read(fd, p, 10));
    SHOW(write(1, p, 10));
    SHOW(pread(fd, p, 10, 0));
    SHOW(syscall(SYS_openat, AT_FDCWD, p, 0));
    SHOW(syscall(SYS_stat, p, p));
    SHOW(syscall(SYS_fstat, fd, p));
    SHOW(syscall(SYS_poll, p, 2, 0));
    SHOW(syscall(SYS_select, 10, p, 0, 0, 0));
    SHOW(syscall(SYS_rt_sigprocmask, 0, p, 0, 8));
    SHOW(syscall(SYS_rt_sigaction, SIGUSR1, p, 0, 8));
    SHOW(syscall(SYS_rt_sigaction, SIGUSR1, 0, p, 8));
    SHOW(syscall(SYS_sigaltstack, p, 0));
    SHOW(syscall(SYS_rt_sigsuspend, p, 8));
    SHOW(syscall(SYS_rt_sigtimedwait, p, 0, 0, 8));
    SHOW(syscall(SYS_nanosleep, p, 0));
    SHOW(syscall(SYS_clock_gettime, 0, p));
    SHOW(syscall(SYS_gettimeofday, p, 0));
    SHOW(syscall(SYS_getrlimit, 0, p));
    SHOW(syscall(SYS_uname, p));
    SHOW(syscall(SYS_pipe, p));
    SHOW(syscall(SYS_execve, p, p, p));
    SHOW(syscall(SYS_wait4, -1, p, WNOHANG, 0));
    SHOW(syscall(SYS_getcwd, p, 100));
    SHOW(syscall(SYS_readlink, "/proc/self/exe", p, 100));
    SHOW(syscall(SYS_recvmsg, pair[1], p, MSG_DONTWAIT));
    SHOW(syscall(SYS_sendmsg, pair[1], p, MSG_DONTWAIT));
    SHOW(syscall(SYS_recvfrom, pair[1], p, 2, MSG_PEEK, 0, 0));
    SHOW(syscall(SYS_getsockname, pair[1], p, p));
    SHOW(syscall(SYS_getsockopt, pair[1], SOL_SOCKET, SO_TYPE, p, p));
    SHOW(syscall(SYS_readv, fd, p, 2));
    SHOW(syscall(SYS_epoll_ctl, fd, EPOLL_CTL_ADD, fd, p));
    SHOW(syscall(SYS_futex, p, 0, 0, 0, 0, 0));
    SHOW(syscall(SYS_ioctl, 0, 0x5401, p) < 0);
    SHOW(syscall(SYS_getdents64, open("/", O_RDONLY), p, 100));
    SHOW(syscall(SYS_mincore, 0x1000, 4096, p));
    SHOW(syscall(SYS_sysinfo, p));
    SHOW(syscall(SYS_times, p) < 0);
    SHOW(syscall(SYS_getrandom, p, 4, 0));
    SHOW(syscall(SYS_sched_getaffinity, 0, 8, p));
    SHOW(syscall(SYS_prctl, 16, p));
    SHOW(syscall(SYS_arch_prctl, 0x1003, p));
    SHOW(syscall(SYS_statx, AT_FDCWD, p, 0, 0, p));
  }
  SHOW(read(fd, NULL, 0));
  char *edge = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(edge + 4096, 4096);
  SHOW(pread(fd, edge + 4090, 100, 0));
  strcpy(edge + 4086, "/etc/pass");
  SHOW(syscall(SYS_openat, AT_FDCWD, edge + 4086, 0));
  edge[4095] = 'x';
  SHOW(syscall(SYS_openat, AT_FDCWD, edge + 4086, 0));
  return 0;
}
