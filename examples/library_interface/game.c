/* Throws five dice, then one until it shows a six twice. */
#include "dice.h"

#include <stdio.h>

static int two_sixes(unsigned thrown, void *data)
{
	int *sixes = data;
	printf(" %u", thrown);
	return thrown == 6 && ++*sixes == 2;
}

int main(void)
{
	struct dice *d = dice_new(6);
	unsigned five[5];
	int sixes = 0;
	dice_throw(d, five, 5);
	printf("%s: %u %u %u %u %u, then", dice_name(d), five[0], five[1], five[2], five[3], five[4]);
	int count = dice_until(d, two_sixes, &sixes);
	printf(" (%d throws)\n", count);
	dice_free(d);
	return 0;
}
