/* Signals as programs use them; argv[1] names the case, others that are to follow stand behind it. What is printed depends on where each one arrives. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t seen, last;
static sigjmp_buf back;
static int pipes[2];

static void count(int s) { seen++; last = s; }
static void full(int s, siginfo_t *info, void *context)
{
	char text[100];
	int n = snprintf(text, sizeof text, "handler %d code %d word %d pid %d context %d\n", s, info->si_code, info->si_value.sival_int, (int)info->si_pid, context != 0);
	if (write(1, text, n) < 0) _exit(9);
	seen++;
}
static void jump(int s) { siglongjmp(back, s); }
static void reading(int s)
{
	char byte;
	if (read(pipes[0], &byte, 1) == 1) printf("handler %d read %c\n", s, byte);
	seen++;
}
static void set(int s, void (*f)(int), int flags)
{
	struct sigaction a;
	memset(&a, 0, sizeof a);
	a.sa_handler = f; a.sa_flags = flags;
	sigaction(s, &a, 0);
}
static void soon(int ms) { struct itimerval v = { { 0, 0 }, { 0, ms * 1000 } }; setitimer(ITIMER_REAL, &v, 0); }

/* Each call that waits is interrupted. */
static void interrupted(void)
{
	char byte; struct pollfd p = { .fd = pipes[0], .events = POLLIN }; struct timespec t = { 5, 0 }, rest = { 0, 0 }; sigset_t none;
	set(SIGALRM, count, 0);
	soon(30); printf("read %d", (int)read(pipes[0], &byte, 1)); printf(" errno %d seen %d\n", errno, seen);
	soon(30); printf("poll %d", poll(&p, 1, 5000)); printf(" errno %d seen %d\n", errno, seen);
	soon(30); printf("nanosleep %d", nanosleep(&t, &rest)); printf(" errno %d rest %ld.%09ld\n", errno, (long)rest.tv_sec, rest.tv_nsec);
	soon(30); printf("pause %d", pause()); printf(" errno %d seen %d\n", errno, seen);
	sigemptyset(&none);
	soon(30); printf("sigsuspend %d", sigsuspend(&none)); printf(" seen %d\n", seen);
	alarm(1);
	unsigned left = sleep(9);
	printf("sleep left %u seen %d\n", left, seen);
}

static void restarted(void)
{
	char byte = 'r';
	set(SIGALRM, reading, SA_RESTART);
	if (fork() == 0) { nanosleep(&(struct timespec){ 0, 60000000 }, 0); if (write(pipes[1], "abc", 3) != 3) _exit(1); nanosleep(&(struct timespec){ 0, 60000000 }, 0); kill(getppid(), SIGALRM); _exit(0); }
	while (wait(0) < 0) printf("wait: %d\n", errno);
	printf("seen %d\n", seen);
	if (read(pipes[0], &byte, 1) == 1) printf("read %c\n", byte);
}

static void itself(void)
{
	struct sigaction a;
	memset(&a, 0, sizeof a);
	a.sa_sigaction = full; a.sa_flags = SA_SIGINFO;
	sigaction(SIGUSR1, &a, 0); sigaction(SIGRTMIN + 2, &a, 0);
	raise(SIGUSR1);
	kill(getpid(), SIGUSR1);
	pthread_kill(pthread_self(), SIGUSR1);
	for (int i = 0; i < 3; i++) sigqueue(getpid(), SIGRTMIN + 2, (union sigval){ .sival_int = 40 + i });
	printf("seen %d\n", seen);
}

static void masks(void)
{
	sigset_t set_, old; int got = 0; struct signalfd_siginfo in; siginfo_t info;
	sigemptyset(&set_); sigaddset(&set_, SIGUSR1); sigaddset(&set_, SIGUSR2);
	set(SIGUSR1, count, 0);
	sigprocmask(SIG_BLOCK, &set_, &old);
	kill(getpid(), SIGUSR1);
	printf("blocked: seen %d\n", seen);
	sigpending(&old);
	printf("pending %d\n", sigismember(&old, SIGUSR1));
	sigprocmask(SIG_UNBLOCK, &set_, 0);
	printf("unblocked: seen %d\n", seen);
	sigprocmask(SIG_BLOCK, &set_, 0);
	kill(getpid(), SIGUSR2);
	sigwait(&set_, &got);
	kill(getpid(), SIGUSR2);
	int waited = sigwaitinfo(&set_, &info);
	printf("sigwait %d sigwaitinfo %d pid is mine %d\n", got, waited, info.si_pid == getpid());
	int fd = signalfd(-1, &set_, 0);
	kill(getpid(), SIGUSR1);
	if (read(fd, &in, sizeof in) != sizeof in) exit(1);
	printf("signalfd %u\n", in.ssi_signo);
}

static void jumps(void)
{
	int s;
	set(SIGALRM, jump, 0);
	for (volatile int i = 0; i < 3; i++) {
		if ((s = sigsetjmp(back, 1)) == 0) { soon(20); pause(); printf("never\n"); }
		printf("jumped with %d at %d\n", s, time(0) > 0);
	}
	set(SIGSEGV, jump, 0);
	for (volatile int i = 0; i < 3; i++) {
		if ((s = sigsetjmp(back, 1)) == 0) { *(volatile int *)(uintptr_t)i = 1; printf("never\n"); }
		printf("fault %d\n", s);
	}
}

static void once(void)
{
	char stack[65536]; stack_t alt = { .ss_sp = stack, .ss_size = sizeof stack }; struct sigaction old;
	sigaltstack(&alt, 0);
	set(SIGUSR1, count, SA_ONSTACK);
	raise(SIGUSR1);
	sigaction(SIGUSR1, 0, &old);
	printf("on another stack: seen %d, mine %d flags %x\n", seen, old.sa_handler == count, old.sa_flags & ~0x04000000);
	set(SIGUSR1, count, SA_RESETHAND);
	raise(SIGUSR1);
	sigaction(SIGUSR1, 0, &old);
	printf("reset %d seen %d\n", old.sa_handler == SIG_DFL, seen);
	printf("signal: was default %d", signal(SIGUSR2, count) == SIG_DFL);
	printf(" was mine %d\n", signal(SIGUSR2, SIG_IGN) == count);
	raise(SIGUSR2);
	raise(SIGUSR1);
	printf("never\n");
}

/* Calls made in earnest only, and none at all. */
static void busy(void)
{
	long n = 0;
	set(SIGALRM, count, 0);
	soon(20);
	while (!seen) { printf("."); fflush(stdout); n++; }
	printf("\n%ld\n", n);
}
static void spin(void)
{
	set(SIGALRM, count, 0);
	soon(20);
	while (!seen) ;
	printf("seen %d last %d\n", seen, last);
}

static void given(int s, siginfo_t *info, void *c) { (void)c; printf("timer %d word %d\n", s, *(int *)info->si_value.sival_ptr); }
static void posix_timer(void)
{
	timer_t t; struct sigevent e; struct itimerspec v = { { 0, 0 }, { 0, 20000000 } }; struct sigaction a; int *word = malloc(4);
	memset(&e, 0, sizeof e); memset(&a, 0, sizeof a);
	*word = 77;
	e.sigev_notify = SIGEV_SIGNAL; e.sigev_signo = SIGRTMIN; e.sigev_value.sival_ptr = word;
	a.sa_sigaction = given; a.sa_flags = SA_SIGINFO;
	sigaction(SIGRTMIN, &a, 0);
	printf("created %d\n", timer_create(CLOCK_MONOTONIC, &e, &t));
	timer_settime(t, 0, &v, 0);
	pause();
	printf("deleted %d\n", timer_delete(t));
}

static void reap(int s) { int status; (void)s; while (waitpid(-1, &status, WNOHANG) > 0) { printf("child ended %x\n", status); seen++; } }
static void children(void)
{
	int kids = 3;
	set(SIGCHLD, reap, SA_RESTART | SA_NOCLDSTOP);
	for (int i = 0; i < kids; i++) if (fork() == 0) { nanosleep(&(struct timespec){ 0, i * 40000000 }, 0); if (i == 1) abort(); _exit(i); }
	sigset_t chld, old; sigemptyset(&chld); sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, &old);
	while (seen < kids) sigsuspend(&old);
	printf("all %d\n", seen);
}

static void *waits(void *set_) { int got; sigwait(set_, &got); printf("thread got %d\n", got); return 0; }
static void *works(void *arg) { for (int i = 0; i < 50; i++) { printf("%d", (int)time(0) < 0); usleep(1000); } return arg; }
static void threads(void)
{
	pthread_t a, b; sigset_t set_; struct itimerval v = { { 0, 5000 }, { 0, 5000 } }, none = { { 0, 0 }, { 0, 0 } };
	sigemptyset(&set_); sigaddset(&set_, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set_, 0);
	set(SIGALRM, count, SA_RESTART);
	pthread_create(&a, 0, waits, &set_); pthread_create(&b, 0, works, 0);
	setitimer(ITIMER_REAL, &v, 0);
	pthread_join(b, 0);
	setitimer(ITIMER_REAL, &none, 0);
	kill(getpid(), SIGTERM);
	pthread_join(a, 0);
	printf("\nalarms %d\n", seen);
}

/* Each signal comes while the one before is handled, after the last call of that handler. */
static pthread_t first;
static volatile int wanted, sent;
static void computes(void) { for (volatile int i = 0; i < 3000000; i++) ; }
static void *sends(void *arg)
{
	static const int signals[] = { SIGUSR1, SIGUSR2, SIGALRM };
	for (int i = 0; i < 3; i++) { while (wanted <= i) ; pthread_kill(first, signals[i]); sent = i + 1; }
	return arg;
}
static void again(int s)
{
	getppid();
	seen++; last = s;
	if (seen == 3) return;
	wanted = seen + 1;
	while (sent < wanted) ;
	computes();
}
static void follow(void)
{
	pthread_t t;
	first = pthread_self();
	set(SIGUSR1, again, 0); set(SIGUSR2, again, 0); set(SIGALRM, again, 0);
	pthread_create(&t, 0, sends, 0);
	wanted = 1;
	while (!sent) ;
	computes();
	printf("%d\n", fileno(stdout));	/* made in earnest: the first is delivered before it, and not in it */
	while (seen < 3) ;
	pthread_join(t, 0);
	printf("seen %d last %d\n", seen, last);
}

/* A handler waits for the next one, and makes no call. */
static void waits_for_next(int s) { last = s; if (++seen < 3) { wanted = seen + 1; while (seen < 3) ; } }
static void nested(void)
{
	pthread_t t;
	first = pthread_self();
	set(SIGUSR1, waits_for_next, 0); set(SIGUSR2, waits_for_next, 0); set(SIGALRM, waits_for_next, 0);
	pthread_create(&t, 0, sends, 0);
	wanted = 1;
	while (seen < 3) ;
	pthread_join(t, 0);
	printf("nested %d last %d\n", seen, last);
}

/* Two signals wait for the next call; the handler of the first never returns, and nothing is called after it. */
static volatile int left;
static void leaves(int s) { (void)s; left++; siglongjmp(back, 1); }
static void left_behind(void)
{
	pthread_t t;
	first = pthread_self();
	set(SIGUSR1, leaves, 0); set(SIGUSR2, count, 0); set(SIGALRM, count, 0);
	pthread_create(&t, 0, sends, 0);
	if (sigsetjmp(back, 1) == 0) { wanted = 3; while (sent < 3) ; getppid(); while (!left) ; }
	while (seen < 2) ;
	pthread_join(t, 0);
	printf("left %d seen %d\n", left, seen);
}

/* A thread is sent a signal before it has begun, or one ends before it has made another call. */
static pthread_t newest;
static volatile int mine, go_on;
static void here(int s) { (void)s; mine += pthread_equal(newest, pthread_self()) != 0; seen++; }
static void *born(void *until) { while (seen < *(int *)until) ; return 0; }
static void *ends(void *by_exit) { while (!go_on) ; if (by_exit) pthread_exit(0); return 0; }
static void young(void)
{
	sigset_t set_, old;
	set(SIGUSR1, here, 0);
	for (int i = 1; i <= 5; i++) {
		pthread_create(&newest, 0, born, &i);
		pthread_kill(newest, SIGUSR1);
		pthread_join(newest, 0);
	}
	printf("born %d, there %d\n", seen, mine);
	sigemptyset(&set_); sigaddset(&set_, SIGUSR1);
	for (int i = 0; i < 2; i++) {
		go_on = 0;
		pthread_create(&newest, 0, ends, i ? &i : 0);
		pthread_sigmask(SIG_BLOCK, &set_, &old);
		kill(getpid(), SIGUSR1);	/* the other thread takes it, and makes no call */
		computes();
		go_on = 1;
		pthread_join(newest, 0);
		pthread_sigmask(SIG_SETMASK, &old, 0);
	}
	printf("ended %d, there %d\n", seen, mine);
}

/* Children that are sent a signal at once, and wait for it without a call. */
static void forked(void)
{
	int status, all = 0;
	set(SIGUSR1, count, 0);
	for (int i = 0; i < 8; i++) {
		pid_t pid = fork();
		if (pid == 0) { while (!seen) ; _exit(seen); }
		kill(pid, SIGUSR1);
		waitpid(pid, &status, 0);
		all += WEXITSTATUS(status);
	}
	printf("children saw %d\n", all);
}

/* Signals come again and again while a process becomes another program. */
static void becomes(void)
{
	timer_t t; struct sigevent e; struct itimerspec v = { { 0, 300000 }, { 0, 300000 } }; char *words[] = { "signals", "pipe", 0 };
	memset(&e, 0, sizeof e);
	e.sigev_notify = SIGEV_SIGNAL; e.sigev_signo = SIGALRM;
	set(SIGALRM, count, SA_RESTART);
	if (fork() == 0) words[1] = "segv";
	else wait(0);
	timer_create(CLOCK_MONOTONIC, &e, &t);
	timer_settime(t, 0, &v, 0);
	execv("/proc/self/exe", words);
}

/* What was written before is in the log, whatever comes now. */
static void ready(void)
{
	int told = open("ready", O_WRONLY);
	if (write(told, "x", 1) != 1 || close(told)) abort();
}

int main(int argc, char **argv)
{
	const char *which = argc > 1 ? argv[1] : "";
	static const struct { const char *name; void (*run)(void); } cases[] = {
		{ "interrupted", interrupted }, { "restarted", restarted }, { "itself", itself }, { "masks", masks }, { "jumps", jumps }, { "once", once },
		{ "busy", busy }, { "spin", spin }, { "timer", posix_timer }, { "children", children }, { "threads", threads },
		{ "follow", follow }, { "nested", nested }, { "left", left_behind }, { "young", young }, { "forked", forked }, };
	setvbuf(stdout, 0, _IOLBF, 0);
	if (pipe(pipes)) return 1;
	int ran = 0;
	for (int n = 1; n < argc; n++) {
		wanted = sent = seen = last = 0;
		for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) if (!strcmp(argv[n], cases[i].name)) { cases[i].run(); ran++; }
	}
	if (ran) return 7;
	if (!strcmp(which, "becomes")) becomes();
	set(SIGABRT, count, 0);
	if (!strcmp(which, "abort")) abort();
	if (!strcmp(which, "term")) { printf("before\n"); kill(getpid(), SIGTERM); }
	if (!strcmp(which, "pipe")) { close(pipes[0]); printf("before\n"); if (write(pipes[1], "x", 1) < 0) printf("never\n"); }
	if (!strcmp(which, "segv")) { printf("before\n"); *(volatile int *)8 = 1; }
	if (!strcmp(which, "forever")) { printf("before\n"); ready(); for (;;) pause(); }
	if (!strcmp(which, "loop")) { printf("before\n"); ready(); for (;;) ; }
	return 2;
}
