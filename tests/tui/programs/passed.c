/* A parent opens a file and passes it to its child over a socket pair; the child reads it. And back: the child passes a pipe. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
static void pass(int s, const int *fds, int n) {
    char data = 'x', control[CMSG_SPACE(4 * sizeof(int))];
    struct iovec part = {&data, 1};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = CMSG_SPACE(n * sizeof(int))};
    memset(control, 0, sizeof control);
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET; c->cmsg_type = SCM_RIGHTS; c->cmsg_len = CMSG_LEN(n * sizeof(int));
    memcpy(CMSG_DATA(c), fds, n * sizeof(int));
    if (sendmsg(s, &m, 0) != 1) perror("sendmsg");
}
static int take(int s, int *fds) {
    char data, control[CMSG_SPACE(4 * sizeof(int))];
    struct iovec part = {&data, 1};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    if (recvmsg(s, &m, 0) != 1) return 0;
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    int n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(fds, CMSG_DATA(c), n * sizeof(int));
    return n;
}
int main(void) {
    int s[2], fds[4]; char b[64];
    socketpair(AF_UNIX, SOCK_STREAM, 0, s);
    pid_t child = fork();
    if (!child) {
        close(s[0]);
        int n = take(s[1], fds);
        for (int i = 0; i < n; i++) { int got = read(fds[i], b, sizeof b); (void)got; }
        int out = open("/etc/passwd", O_RDONLY);
        pass(s[1], &out, 1);
        _exit(0);
    }
    close(s[1]);
    int pair[2] = {open("/etc/hostname", O_RDONLY), open("/etc/hosts", O_RDONLY)};
    pass(s[0], pair, 2);
    close(pair[0]); close(pair[1]);
    if (take(s[0], fds) == 1) { int got = read(fds[0], b, sizeof b); (void)got; }
    waitpid(child, 0, 0);
    return 0;
}
