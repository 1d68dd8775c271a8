/* Variadic functions of the C library: to the output, to a file under the name of the output, to others; their results. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int given(const char *format, ...)
{
	va_list list;
	va_start(list, format);
	int n = vprintf(format, list);
	va_end(list);
	return n;
}

int main(int argc, char **argv)
{
	double big = atof(argv[1]);
	int here = 0, out = dup(1), file;
	long double wide = 1.25L;
	int n = printf("%s %d %c %5.2f %g %Lg %ld %p %n", argv[1], argc, 'x', big, big * 3, wide, 1L << 40, (void *)0, &here);
	printf("%d %d %f %f %f %f %f %f %f %f %f %d %s\n", n, here, big, 1., 2., 3., 4., 5., 6., 7., 8., 9, "last");
	n = given("%d %s %.1f %lld\n", 1, "two", 3.5, 4LL);
	n = fprintf(stderr, "error %d %.3e\n", n, big);
	fflush(stdout);
	file = open("printed", O_WRONLY | O_CREAT | O_TRUNC, 0600);
	dup2(file, 1);
	n = printf("in the file %d %f %s %d\n", n, big, "words", 7);
	n += printf("%d\n", n);
	putchar('c');
	fflush(stdout);
	dup2(out, 1);
	n += dprintf(file, "by number %d %s\n", n, "more");
	printf("back %d\n", n);
	FILE *back = fopen("printed", "r");
	double got;
	char word[20];
	n = fscanf(back, "in the file %d %lf %19s", &here, &got, word);
	printf("%d: %d %f %s\n", n, here, got, word);
	return ferror(back) + 4;
}
