/* What the C library allocates within a call is not the program's: addresses are those of the recording. What the
 * library hands over is freed and made larger as any other memory. */
#define _GNU_SOURCE
#include <dirent.h>
#include <malloc.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static void *keep[64];

int main(int argc, char **argv)
{
	char *line = 0, *word = 0, *path; size_t room = 0; long when = 86400; struct dirent *e; void *p; int n = 0;
	for (int i = 0; i < 8; i++) keep[i] = malloc(100 * (i + 1));
	FILE *f = fopen(argv[argc - 1], "r");
	printf("%p\n", malloc(10));
	while (getline(&line, &room, f) > 0) n++;
	rewind(f);
	if (fscanf(f, "%ms", &word) != 1) return 1;
	fclose(f);
	DIR *d = opendir(".");
	while ((e = readdir(d)) != 0) keep[8 + n++ % 50] = strdup(e->d_name);
	closedir(d);
	path = realpath("/usr/bin/../lib", 0);
	path = realloc(path, 1000);
	strcat(path, getcwd(0, 0));
	printf("%s %s %.8s %d %p\n", path, word, line, malloc_usable_size(word) >= strlen(word) + 1, malloc(3000));
	word = realloc(word, 5000);
	strcat(word, asctime(localtime(&when)));
	for (int i = 0; i < 8; i++) free(keep[i]);
	free(line); free(word); free(path); free(0);
	if (posix_memalign(&p, 64, 200)) return 1;
	printf("%p %p %p %d\n", p, malloc(200), calloc(3, 100), sbrk(0) == sbrk(0));
	printf("%p %p\n", sbrk(0), mmap(0, 100000, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	return 0;
}
