/* file_writers.c - a file mapping shows what other processes write to the file; a shared one, how they shorten and lengthen it. */
#include "show.h"
static char *shared, *view, *private;
static void child(void (*work)(int), int options) {
  int status;
  pid_t pid = fork();
  NEED(pid >= 0);
  if (!pid) {
    munmap(shared, 65536);
    munmap(view, 65536);
    munmap(private, 65536);
    work(open("file", O_RDWR | options));
    _exit(0);
  }
  NEED(waitpid(pid, &status, 0) == pid && status == 0);
}
static void one(int fd) { pwrite(fd, "one", 3, 100); }
static void many(int fd) {
  for (int i = 0; i < 100; i++) pwrite(fd, "many", 4, 4096 + i * 100);
}
static void shorter(int fd) { ftruncate(fd, 4096); }
static void longer(int fd) { pwrite(fd, "longer", 6, 20000); }
static void nothing(int fd) {}
static void program(int fd) {
  close(fd);
  execl("/bin/sh", "sh", "-c", "printf shell 1<>file", NULL);
  _exit(1);
}
static void later(int fd) {
  NEED(pwrite(fd, "!", 1, 50) == 1);
}
int main(void) {
  int fd = open("file", O_CREAT | O_RDWR | O_TRUNC, 0600), ready[2];
  setbuf(stdout, NULL);
  ftruncate(fd, 32768);
  shared = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  view = mmap(NULL, 65536, PROT_READ, MAP_SHARED, fd, 0);
  private = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  close(fd);
  private[4096] = 'p';
  child(one, 0);
  printf("%s %s %s\n", shared + 100, view + 100, private + 100);
  child(many, 0);
  printf("%s %s %s %s\n", shared + 4096 + 9900, view + 4096, private + 4096, private + 4096 + 5000);
  child(program, 0);
  printf("%s %s %s\n", shared, view, private);
  munmap(private, 65536);
  child(shorter, 0);
  printf("%s\n", view);
  child(longer, 0);
  printf("%s %d\n", view + 20000, view[9000]);
  child(nothing, O_TRUNC);
  child(longer, 0);
  printf("%s %d %s\n", shared + 20000, view[100], view + 20000);
  NEED(!pipe(ready));
  pid_t pid = fork();
  if (!pid) {
    munmap(shared, 65536);
    close(ready[1]);
    char c;
    NEED(read(ready[0], &c, 1) == 1);
    later(open("file", O_WRONLY));
    _exit(0);
  }
  write(ready[1], "g", 1);
  while (!*(volatile char *)(view + 50)) sched_yield();
  printf("%c\n", shared[50]);
  wait(NULL);
  return 0;
}
