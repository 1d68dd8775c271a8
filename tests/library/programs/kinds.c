/* Functions that read a file and change memory, each in another way. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <unistd.h>
#include <fcntl.h>
#include <setjmp.h>
#include <sys/mman.h>
#define N __attribute__((noinline, noclone)) static
struct ctx { char *name; long total; struct { int a, b; double d; } in; void (*cb)(void); int tail[4]; };
struct node { struct node *next; int v; };
static int counter;
static int file_cache;
struct big { char bytes[100]; short s; };
N int plain(const char *p) { FILE *f = fopen(p, "r"); int c = 0; while (fgetc(f) != EOF) c++; fclose(f); return c; }
N void fills(struct ctx *c, const char *p) { c->total = plain(p); c->in.d = c->total / 2.0; c->tail[2] = 3; }
N void stores(struct ctx *c, const char *p) { c->name = strdup(p); c->total = plain(p); }
N int counts(const char *p) { counter++; return plain(p); }
N int cached(const char *p) { static int own; if (!own) own = plain(p); return own; }
N char *dups(const char *p) { char b[64]; FILE *f = fopen(p, "r"); if (!fgets(b, 64, f)) b[0] = 0; fclose(f); return strdup(b); }
N const char *constant(const char *p) { return plain(p) > 10 ? "many" : "few"; }
N long reads(const char *p, char *to, size_t n) { int fd = open(p, O_RDONLY); long r = read(fd, to, n); close(fd); return r; }
N int array(const char *p, int *to, int n) { int i, c = plain(p); for (i = 0; i < n; i++) to[i] = c + i; return 0; }
N int unsized(const char *p, int *to) { int i, c = plain(p); for (i = 0; i < 5; i++) to[i] = c + i; return 0; }
N void lists(struct node *n, const char *p) { n->next->v = plain(p); }
N int prints(const char *p) { int c = plain(p); printf("inner %d\n", c); return c; }
N int opens(const char *p) { int fd = open(p, O_RDONLY); return fd < 0 ? -1 : fd; }
N double flt(const char *p, double by, float *out) { *out = plain(p) * 2; return plain(p) * by; }
N int err(const char *p) { if (open(p, O_RDONLY) < 0) return -errno; return 0; }
N FILE *opened(const char *p) { return fopen(p, "r"); }
__thread int mine;
N int threads_own(const char *p) { mine = plain(p); return mine; }
N int maps(const char *p) { char *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); m[0] = plain(p); return 1; }
static jmp_buf out;
N void jumps(const char *p, int by) { if (plain(p) > by) longjmp(out, 1); }
N int many(const char *p, int a, int b, int c, int d, int e, int f) { return plain(p) + a + b + c + d + e + f; }
N struct pair { int a, b; double c, d; } pairs(const char *p) { struct pair x = { plain(p), 2, 3, 4 }; return x; }
N int dots(const char *p, ...) { return plain(p); }
N int raws(int a)
{
	long r;
	__asm__ volatile("syscall" : "=a"(r) : "a"(39L) : "rcx", "r11", "memory");
	return r > a;
}
static inline int inlined(const char *p) { return plain(p) + 1; }
N int usesfile(FILE *f) { return fgetc(f); }
N void *allocs(const char *p) { int *x = malloc(100); *x = plain(p); return x; }
N int cachefile(const char *p) { if (!file_cache) file_cache = plain(p); return file_cache; }
N void big_(struct big *b, const char *p) { memset(b, 'x', 50); b->s = plain(p); }
N void callback(int (*f)(const char *), const char *p) { f(p); }
N void envs(const char *p) { char b[16]; snprintf(b, 16, "%d", plain(p)); setenv("COUNT", b, 1); }
N int frees(char *q, const char *p) { free(q); return plain(p); }
N char *inbuf(const char *p, char *to) { sprintf(to, "%d", plain(p)); return to; }
N int nonconst(char *p) { return plain(p) + 1; }
int main(int c, char **v)
{
	char *p = v[1]; struct ctx x = { .name = "x" }; struct node a = { 0, 1 }, b = { &a, 2 }; char buf[4096]; int ints[8]; float fl; struct big bg;
	for (int i = 0; i < 3; i++) {
		fills(&x, p); stores(&x, p); counts(p); cached(p); char *d = dups(p); printf("%s %s %ld\n", d, constant(p), reads(p, buf, sizeof buf)); free(d);
		array(p, ints, 6); unsized(p, ints); lists(&b, p); prints(p); close(opens(p)); printf("%f\n", flt(p, 1.5, &fl)); printf("%d\n", err("none"));
		FILE *f = opened(p); usesfile(f); fclose(f); free(allocs(p)); cachefile(p); big_(&bg, p); callback(plain, p); envs(p); frees(malloc(40), p); inbuf(p, buf); nonconst(p);
		threads_own(p); maps(p); if (!setjmp(out)) jumps(p, 1); many(p, 1, 2, 3, 4, 5, 6); printf("%g %d %d\n", pairs(p).c, dots(p), inlined(p) + raws(1));
		printf("%ld %g %d %d %d %g %d %s\n", x.total, x.in.d, ints[3], a.v, bg.s, fl, counter, buf);
	}
}
