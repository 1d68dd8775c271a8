/* qsort and bsearch with functions of the program, snprintf with numbers of every kind; qsort also by a name that is
 * looked up. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int compared;

static int order(const void *a, const void *b)
{
	compared++;
	return *(const int *)a - *(const int *)b;
}

static int backwards(const void *a, const void *b)
{
	return order(b, a);
}

int main(void)
{
	int numbers[40], key = 7;
	char text[100];
	for (int i = 0; i < 40; i++)
		numbers[i] = i * 7919 % 41;
	qsort(numbers, 40, sizeof(int), order);
	int *found = bsearch(&key, numbers, 40, sizeof(int), order);
	printf("%d %d %d at %d\n", numbers[0], numbers[39], compared, (int)(found - numbers));
	qsort(numbers, 40, sizeof(int), backwards);
	int n = snprintf(text, sizeof text, "%d %s %.3f %c %ld %5.1f|%-8s|", 42, "words", 2.5, 'x', 1L << 40, 9.25, "left");
	printf("%d %d %s\n", numbers[0], n, text);
	n = snprintf(NULL, 0, "%d of %ld", n, (long)time(NULL));
	printf("%d\n", n);
	void (*sort)(void *, size_t, size_t, int (*)(const void *, const void *)) = dlsym(RTLD_DEFAULT, "qsort");
	sort(numbers, 40, sizeof(int), order);
	printf("%d %d\n", numbers[0], compared);
	return 0;
}
