/* Streams in every way at once: macros and functions in turn, formatted input, pushing back, seeking, copies. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <netdb.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static unsigned hash(const char *s, size_t n)
{
	unsigned h = 5381;
	while (n--)
		h = h * 33 + (unsigned char)*s++;
	return h;
}

int main(void)
{
	char line[200], word[50], *text = NULL, *made;
	size_t room = 0;
	int c, n, number;
	double real;
	unsigned sum = 0;

	FILE *f = fopen("in", "r");
	for (n = 0; n < 5000; n++)
		sum = sum * 31 + getc_unlocked(f);
	printf("%u %ld\n", sum, ftell(f));
	printf("%s", fgets(line, sizeof line, f));
	for (n = 0; n < 3; n++)
		putchar(getc_unlocked(f));
	printf(" %zu", fread(line, 1, 100, f));
	printf(" %u %zd\n", hash(line, 100), getline(&text, &room, f));
	while ((c = getc_unlocked(f)) != '\n')
		;
	ungetc('7', f);
	printf("%d %c", getc(f), getc_unlocked(f));
	while (getc_unlocked(f) != '\n')
		;
	n = fscanf(f, "%d %49s %lf%n", &number, word, &real, &c);
	printf(" scanned %d: %d %s %f %d\n", n, number, word, real, c);
	n = fscanf(f, " %m[a-z] %*d %c", &made, word);
	printf("scanned %d: %s %c\n", n, made, word[0]);
	free(made);
	fseek(f, 100000, SEEK_SET);
	while ((c = getc_unlocked(f)) != EOF)
		sum += c;
	printf("%u %d %d\n", sum, feof_unlocked(f), ferror(f));
	fclose(f);

	f = fopen("out", "w+");
	for (n = 0; n < 6000; n++)
		putc_unlocked('a' + n % 26, f);
	fputs("text", f);
	putc_unlocked('!', f);
	fprintf(f, "%d\n", n);
	rewind(f);
	printf("%s", fgets(line, 20, f));
	printf("\n%d\n", fclose(f));

	f = open_memstream(&text, &room);
	fprintf(f, "in memory %d", 42);
	fclose(f);
	puts(text);

	int copy = dup(1);
	dprintf(copy, "through a copy\n");
	f = fdopen(copy, "w");
	fprintf(f, "and a stream of it\n");
	fclose(f);
	fflush(stdout);
	int saved = dup(1), file = open("other", O_CREAT | O_TRUNC | O_RDWR, 0600);
	dup2(file, 1);
	puts("this is not for the terminal");
	fflush(stdout);
	dup2(saved, 1);
	close(saved);
	printf("%ld\n", (long)lseek(file, 0, SEEK_END));

	char a[3], b[30] = "";
	struct iovec parts[] = {{a, 3}, {b, 20}};
	lseek(file, 0, SEEK_SET);
	printf("%zd %.3s %s", readv(file, parts, 2), a, b);
	struct stat st;
	fstat(file, &st);
	char *map = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, file, 0);
	printf("%u\n", hash(map, st.st_size));

	struct addrinfo *list, *each;
	if (!getaddrinfo("127.0.0.1", "80", NULL, &list)) {
		for (each = list; each; each = each->ai_next)
			printf("%d %u\n", each->ai_family, hash((char *)each->ai_addr, each->ai_addrlen));
		freeaddrinfo(list);
	}
	struct passwd *user = getpwuid(getuid());
	time_t now = time(NULL);
	struct tm *tm = localtime(&now);
	printf("%s %s %d %s\n", user->pw_name, user->pw_dir, tm->tm_year + 1900, tm->tm_zone);

	if (!(f = popen("echo from a child; exit 3", "r")))
		return 1;
	while ((c = getc_unlocked(f)) != EOF)
		putchar(c);
	printf("%d %d\n", pclose(f) >> 8, system("exit 4") >> 8);
	while ((n = getchar_unlocked()) != EOF)
		putchar_unlocked(n);
	printf("%d %d\n", rand(), getpid() > 1);
	return 5;
}
