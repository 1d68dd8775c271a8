/* outside.c - memory to be shared with an X server, nscd's, and PulseAudio's is refused while recording: prints the errors. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <stdio.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int server(const char *path) {
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  strcpy(name.sun_path, path);
  unlink(path);
  return bind(listener, (struct sockaddr *)&name, sizeof name) || listen(listener, 1) ? -1 : listener;
}

static int client(const char *path) {
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  strcpy(name.sun_path, path);
  return connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&name, sizeof name) ? errno : 0;
}

int main(void) {
  mkdir(".X11-unix", 0700);
  mkdir("nscd", 0700);
  if (server(".X11-unix/X9") < 0 || server("./nscd/socket") < 0) return 1;
  int before = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
  printf("%s\n", before < 0 ? strerror(errno) : "a segment");
  if (before >= 0) shmctl(before, IPC_RMID, NULL);
  printf("display %d, nscd %s\n", client(".X11-unix/X9"), strerror(client("./nscd/socket")));
  int after = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
  printf("%s\n", after < 0 ? strerror(errno) : "a segment");
  if (after >= 0) shmctl(after, IPC_RMID, NULL);
  int pool = memfd_create("pulseaudio", MFD_ALLOW_SEALING);
  printf("pool: %s\n", pool < 0 ? strerror(errno) : "there");
  pool = open("/dev/shm/pulse-shm-1234567", O_RDWR | O_CREAT | O_EXCL, 0600);
  printf("old pool: %s\n", pool < 0 ? strerror(errno) : "there");
  if (pool >= 0) unlink("/dev/shm/pulse-shm-1234567");
  printf("other memory: %d\n", memfd_create("pulseaudio2", 0) >= 0);
  return 0;
}
