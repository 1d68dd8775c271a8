/* Reads a large file for a few numbers: the place to cut is inside the program, at load_total(). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct summary {
	long lines;
	long total;
	double mean;
};

/* The sum of the numbers in a file, one a line; 0, or -1 where there is no such file. */
static __attribute__((noinline)) int load_total(const char *path, struct summary *out)
{
	char line[256];
	FILE *file = fopen(path, "r");
	if (file == NULL)
		return -1;
	memset(out, 0, sizeof(*out));
	while (fgets(line, sizeof(line), file) != NULL) {
		out->lines++;
		out->total += atol(line);
	}
	if (out->lines > 0)
		out->mean = (double)out->total / out->lines;
	fclose(file);
	return 0;
}

int main(int count, char **words)
{
	int failed = 0;
	for (int i = 1; i < count; i++) {
		struct summary found;
		if (load_total(words[i], &found) == 0) {
			printf("%s: %ld lines, total %ld, mean %.3f\n", words[i], found.lines, found.total, found.mean);
		} else {
			printf("%s: cannot be read\n", words[i]);
			failed = 1;
		}
	}
	return failed;
}
