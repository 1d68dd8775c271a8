/* Instructions that tell something: each is asked for by name in argv, RDTSC always. */
#include <immintrin.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <x86intrin.h>

__attribute__((section(".text"))) const unsigned char constant[2] = { 0x0f, 0x31 };
static volatile sig_atomic_t seen;
static void count(int s) { (void)s; seen++; }

static void *thread(void *arg)
{
	unsigned long long sum = 0;
	for (int i = 0; i < 50; i++) sum ^= __rdtsc();
	*(unsigned long long *)arg = sum;
	return 0;
}

int main(int argc, char **argv)
{
	unsigned aux; unsigned long long a, b[2]; unsigned i = 0; unsigned short s = 0; sigset_t all; pthread_t t[2];
	printf("%llx ", __rdtsc());
	a = __rdtscp(&aux);
	printf("%llx %u\n", a, aux);
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, 0);
	printf("blocked %llx\n", __rdtsc());
	sigprocmask(SIG_UNBLOCK, &all, 0);
	for (int n = 1; n < argc; n++) {
		if (!strcmp(argv[n], "rdrand")) {
			a = 0;
			int well = _rdrand64_step(&a) + _rdrand32_step(&i) + _rdrand16_step(&s);
			printf("%d %llx %x %x\n", well, a, i, s);
		} else {
			a = 0;
			int well = _rdseed64_step(&a) + _rdseed32_step(&i) + _rdseed16_step(&s);
			printf("%d %llx %x %x\n", well, a, i, s);
		}
	}
	signal(SIGALRM, count);
	ualarm(20000, 0);
	for (a = 0; !seen; a++) b[0] = __rdtsc();
	printf("%llu %llx\n", a, b[0]);
	for (int n = 0; n < 2; n++) pthread_create(t + n, 0, thread, b + n);
	for (int n = 0; n < 2; n++) pthread_join(t[n], 0);
	printf("%llx %llx\nconstant %x\n", b[0], b[1], *(const volatile unsigned short *)constant);
	return 0;
}
