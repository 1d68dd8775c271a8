/* long_paths.c - names of 255 bytes, paths of 4095, ENAMETOOLONG beyond, a folder 300 levels deep. */
#include "show.h"
int main(void) {
  char name[300], path[5000] = "";
  memset(name, 'n', 255);
  name[255] = 0;
  SHOW(mkdir(name, 0700));
  name[255] = 'n', name[256] = 0;
  SHOW(mkdir(name, 0700));
  while (strlen(path) < 4094) strcat(path, "./");
  path[4094] = 'f', path[4095] = 0;
  SHOW(open(path, O_CREAT | O_RDWR, 0600) >= 0);
  strcat(path, "x");
  SHOW(open(path, O_RDONLY));
  int depth = 0;
  while (depth < 300 && !mkdir("deeper", 0700) && !chdir("deeper")) depth++;
  printf("%d\n", depth);
  SHOW(getcwd(path, sizeof path) != NULL);
  printf("%d\n", strlen(path) > 2000);
  while (depth-- > 0) {
    chdir("..");
    rmdir("deeper");
  }
  return 0;
}
