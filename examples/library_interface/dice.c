/* A small library to make an interface for: dice that are thrown with the kernel's random numbers. */
#include "dice.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

struct dice { unsigned sides; char name[16]; };

struct dice *dice_new(unsigned sides)
{
	struct dice *d = malloc(sizeof *d);
	d->sides = sides;
	snprintf(d->name, sizeof d->name, "d%u", sides);
	return d;
}

const char *dice_name(const struct dice *d) { return d->name; }

size_t dice_throw(struct dice *d, unsigned *to, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned r;
		if (getrandom(&r, sizeof r, 0) != sizeof r)
			return i;
		to[i] = r % d->sides + 1;
	}
	return n;
}

int dice_until(struct dice *d, int (*enough)(unsigned thrown, void *data), void *data)
{
	int count = 0;
	unsigned one;
	do {
		dice_throw(d, &one, 1);
		count++;
	} while (!enough(one, data));
	return count;
}

void dice_free(struct dice *d) { free(d); }
