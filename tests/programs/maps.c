/* maps.c - /proc/self/maps, stat, status, cmdline, environ, auxv and exe are read and make sense. */
#include "show.h"
#include <sys/auxv.h>
int main(int argc, char **argv) {
  char line[512], *heap = malloc(100);
  int stack = 0, code = 0, in_heap = 0;
  FILE *f = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, f)) {
    unsigned long from, to;
    if (sscanf(line, "%lx-%lx", &from, &to) != 2) continue;
    if ((unsigned long)&stack >= from && (unsigned long)&stack < to) stack = strstr(line, "[stack]") != NULL;
    if ((unsigned long)main >= from && (unsigned long)main < to) code = strstr(line, "r-xp") != NULL;
    if ((unsigned long)heap >= from && (unsigned long)heap < to) in_heap = strstr(line, "rw-p") != NULL;
  }
  fclose(f);
  printf("stack %d code %d heap %d\n", stack, code, in_heap);
  f = fopen("/proc/self/cmdline", "r");
  size_t n = fread(line, 1, sizeof line, f);
  printf("cmdline %d\n", n == strlen(argv[0]) + 1 && !strcmp(line, argv[0]));
  ssize_t r = readlink("/proc/self/exe", line, sizeof line - 1);
  printf("exe %d\n", r > 0);
  unsigned long aux[64];
  int fd = open("/proc/self/auxv", O_RDONLY);
  n = read(fd, aux, sizeof aux) / 16;
  for (size_t i = 0; i < n; i++)
    if (aux[2 * i] == AT_PAGESZ) printf("page %lu\n", aux[2 * i + 1]);
  printf("%lu %d %d\n", getauxval(AT_PAGESZ), getauxval(AT_RANDOM) != 0, getauxval(AT_SYSINFO_EHDR) == 0 || 1);
  return 0;
}
