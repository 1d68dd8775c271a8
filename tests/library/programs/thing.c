#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct thing { int n; char name[32]; char *room; };
struct thing *thing_new(const char *name) { struct thing *t = malloc(sizeof *t); t->n = rand() + getenv("SEED")[0];
  strcpy(t->name, name); return t; }
const char *thing_name(struct thing *t) { return t->name; }
int thing_fill(struct thing *t, unsigned char *to, int n) { for (int i = 0; i < n / 2; i++) to[i] = t->n + i; return n / 2; }
double thing_half(struct thing *t, float by) { return t->n * 0.5 + by; }
int thing_many(int a, int b, int c, int d, int e, int f, int g, double h, int *sum) { *sum = a + b + c + d + e + f + g + (int)h; return g; }
int thing_print(struct thing *t, char *to, const char *format, ...) { va_list l; va_start(l, format);
  int n = vsprintf(to, format, l); va_end(l); return n + t->n % 2; }
int thing_vprint(struct thing *t, char *to, const char *format, va_list l) { return vsprintf(to, format, l) + t->n % 2; }
int thing_each(struct thing *t, int (*f)(void *, int, const char *), void *data) { int sum = 0;
  for (int i = 0; i < 3; i++) sum += f(data, i + t->n % 7, t->name); return sum; }
/* Only leads to another function. */
__attribute__((optimize("optimize-sibling-calls"))) void thing_drop(void *p) { free(p); }
void thing_note(struct thing *t, char *room) { t->room = room; }
void thing_say(struct thing *t) { sprintf(t->room, "said %d", t->n % 5); }
int thing_tiny(struct thing *t) { return t->n; }
int thing_big(unsigned char *to, int n) { memset(to, n, n); return n; }
