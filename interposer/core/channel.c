/* channel.c - datagrams to and from the tool, and the hidden descriptors they travel on.
 *
 * Guarantees: a send never blocks for ever and never raises SIGPIPE; when the tool is gone every call says so
 * (a negative result) and the caller goes on without it.
 */
#include "core.h"

struct control_message { u64 len; s32 level, type; s32 fds[4]; };

s64 channel_send(s32 socket, struct rr_msg *msg, const s32 *fds, u32 nfds) {
  struct control_message control;
  struct iovec iov = {(u64)msg, sizeof *msg};
  struct msghdr_k hdr = {0};
  hdr.iov = (u64)&iov;
  hdr.iovlen = 1;
  if (nfds) {
    control.len = 16 + 4 * nfds;
    control.level = SOL_SOCKET;
    control.type = SCM_RIGHTS;
    for (u32 i = 0; i < nfds; i++) control.fds[i] = fds[i];
    hdr.control = (u64)&control;
    hdr.controllen = (16 + 4 * nfds + 7) & ~7ul;
  }
  msg->pid = (u32)SYS0(RR_NR_getpid);
  msg->tid = (u32)SYS0(RR_NR_gettid);
  s64 result;
  do result = SYS3(RR_NR_sendmsg, socket, &hdr, MSG_NOSIGNAL);
  while (result == -EINTR);
  return result;
}

/* Receives one datagram: `msg`, then up to extra_size bytes; descriptors into `fds` (missing ones are -1). */
s64 channel_receive(s32 socket, struct rr_msg *msg, void *extra, u64 extra_size, s32 *fds, u32 nfds) {
  struct control_message control;
  struct iovec iov[2] = {{(u64)msg, sizeof *msg}, {(u64)extra, extra_size}};
  struct msghdr_k hdr = {0};
  hdr.iov = (u64)iov;
  hdr.iovlen = extra_size ? 2 : 1;
  hdr.control = (u64)&control;
  hdr.controllen = sizeof control;
  control.len = 0;
  s64 result;
  do result = SYS3(RR_NR_recvmsg, socket, &hdr, MSG_CMSG_CLOEXEC);
  while (result == -EINTR);
  for (u32 i = 0; i < nfds; i++)
    fds[i] = result > 0 && hdr.controllen >= 16 + 4 * (i + 1) && control.len >= 16 + 4 * (i + 1) ? control.fds[i] : -1;
  return result < (s64)sizeof *msg ? (result < 0 ? result : -ESRCH) : result;
}

/* One question on the control socket. The answer's result field, or -ESRCH when the tool is gone. */
s64 ask(struct rr_msg *msg, const s32 *fds, u32 nfds, void *extra, u64 extra_size) {
  if (channel_send(CONTROL, msg, fds, nfds) < 0) return -ESRCH;
  if (channel_receive(CONTROL, msg, extra, extra_size, NULL, 0) < 0) return -ESRCH;
  return msg->result;
}

void report(u32 what, u64 b, u64 c, u64 d) {
  struct rr_msg msg = {.type = RR_M_REPORT, .a = what, .b = b, .c = c, .d = d};
  channel_send(CONTROL, &msg, NULL, 0);
}

/* Moves a descriptor to its hidden number. */
s32 hide_fd(s32 fd, u32 which, int cloexec) {
  s32 target = HIDDEN(which);
  if (fd != target) {
    if (SYS3(RR_NR_dup3, fd, target, cloexec ? SOCK_CLOEXEC : 0) < 0) { /* the program has lowered its limit */
      struct limits limits;
      limits_lift(&limits);
      SYS3(RR_NR_dup3, fd, target, cloexec ? SOCK_CLOEXEC : 0);
      limits_restore(&limits);
    }
    SYS1(RR_NR_close, fd);
  }
  return target;
}

/* The control socket goes to its hidden number; where the limit of descriptors or another process that shares the
 * table is in the way, to a high one. */
void hide_control(s32 fd) {
  struct limits limits;
  s64 target = fd == HIDDEN(RR_FD_CONTROL) ? fd : space.shares_fds ? -1 : SYS3(RR_NR_dup3, fd, HIDDEN(RR_FD_CONTROL), SOCK_CLOEXEC);
  if (target < 0) {
    limits_lift(&limits);
    if (!space.shares_fds) target = SYS3(RR_NR_dup3, fd, HIDDEN(RR_FD_CONTROL), SOCK_CLOEXEC);
    for (u64 from = space.fd_base + RR_FD_COUNT; target < 0 && from > 2; from /= 2) target = SYS3(RR_NR_fcntl, fd, F_DUPFD_CLOEXEC, from);
    limits_restore(&limits);
  }
  if (target >= 0 && target != fd) SYS1(RR_NR_close, fd);
  space.control_fd = (u32)(target >= 0 ? target : fd);
}

int tool_alive(void) {
  struct pollfd_k p = {CONTROL, 0, 0};
  s64 ready = SYS3(RR_NR_poll, &p, 1, 0);
  return !(ready > 0 && (p.revents & (POLLHUP | 8 | 32)));
}
