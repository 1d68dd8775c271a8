#include <stddef.h>

struct dice;
struct dice *dice_new(unsigned sides);
const char *dice_name(const struct dice *d);
size_t dice_throw(struct dice *d, unsigned *to, size_t n);
int dice_until(struct dice *d, int (*enough)(unsigned thrown, void *data), void *data);
void dice_free(struct dice *d);
