#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct thing; struct thing *thing_new(const char *); const char *thing_name(struct thing *);
int thing_fill(struct thing *, unsigned char *, int); double thing_half(struct thing *, float);
int thing_many(int, int, int, int, int, int, int, double, int *); int thing_print(struct thing *, char *, const char *, ...);
int thing_each(struct thing *, int (*)(void *, int, const char *), void *); int thing_tiny(struct thing *);
int thing_big(unsigned char *, int); void thing_note(struct thing *, char *); void thing_say(struct thing *); void thing_drop(void *);
int each(void *data, int n, const char *name) { char *p = data; printf("%d %s %s\n", n, name, p); return n * strlen(p); }
/* Ends with a jump to a function of the library, which then returns to whoever called this one. */
static struct thing *kept;
__attribute__((optimize("optimize-sibling-calls"))) int jumps(void *data, int n, const char *name) { (void)data; (void)n; (void)name; return thing_tiny(kept); }
int main(int argc, char **argv) {
  struct thing *t = thing_new(argc > 1 ? argv[1] : "one"); unsigned char b[16]; char text[99]; int sum;
  printf("%s %d %f\n", thing_name(t), thing_tiny(t), thing_half(t, 1.25f));
  printf("%d %d\n", thing_fill(t, b, 16), b[7]);
  printf("%d", thing_many(1, 2, 3, 4, 5, 6, 7, 8.0, &sum)); printf(" %d\n", sum);
  printf("%d %s\n", thing_print(t, text, "%d %.2f %s", 3, 2.5, "x"), text);
  char *data = malloc(8); strcpy(data, "data"); printf("%d\n", thing_each(t, each, data));
  kept = t; printf("%d\n", thing_each(t, jumps, data)); thing_note(t, text); thing_say(t); printf("%s\n", text);
  free(data); thing_drop(malloc(9)); free(malloc(7));
  int n = 3000000; unsigned char *big = malloc(n); thing_big(big, n); unsigned h = 0; for (int i = 0; i < n; i++) h = h * 31 + big[i];
  printf("%u\n", h);
  if (getenv("MORE")) thing_fill(t, b, 8);
  return 3;
}
