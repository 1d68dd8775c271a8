/* Fetches a URL with libcurl: options of all kinds through one variadic function, data and headers through
 * functions of this program. Declared here, so that no header of libcurl is needed. */
#include <stdio.h>
#include <string.h>

typedef void CURL;
CURL *curl_easy_init(void);
int curl_easy_setopt(CURL *, int, ...), curl_easy_getinfo(CURL *, int, ...), curl_easy_perform(CURL *);
void curl_easy_cleanup(CURL *);
const char *curl_easy_strerror(int);

struct sum {
	unsigned long bytes, hash;
	const char *name;
};

static size_t add(char *bytes, size_t size, size_t n, void *to)
{
	struct sum *sum = to;
	for (size_t i = 0; i < size * n; i++)
		sum->hash = sum->hash * 31 + bytes[i];
	sum->bytes += size * n;
	return size * n;
}

static int progress(void *calls, long all, long now, long a, long b)
{
	(void)all, (void)now, (void)a, (void)b;
	++*(int *)calls;
	return 0;
}

int main(int count, char **words)
{
	struct sum body = {0, count, "body"}, head = {0, 0, "head"};
	int calls = 0;
	long code = -1;
	double seconds = -1;
	char *url = NULL;
	CURL *c = curl_easy_init();
	curl_easy_setopt(c, 10002, words[1]);
	curl_easy_setopt(c, 20011, add);
	curl_easy_setopt(c, 10001, &body);
	curl_easy_setopt(c, 20079, add);
	curl_easy_setopt(c, 10029, &head);
	curl_easy_setopt(c, 20219, progress);
	curl_easy_setopt(c, 10057, &calls);
	curl_easy_setopt(c, 43, 0L);
	int r = curl_easy_perform(c);
	curl_easy_getinfo(c, 0x200002, &code);
	curl_easy_getinfo(c, 0x300003, &seconds);
	curl_easy_getinfo(c, 0x100001, &url);
	printf("%s: %s %lu %lx, %s %lu %lx, %d calls, code %ld, %.9f s, %s\n", curl_easy_strerror(r), body.name, body.bytes,
	       body.hash, head.name, head.bytes, head.hash, calls > 0 ? calls : 0, code, seconds, url);
	curl_easy_cleanup(c);
	return 0;
}
