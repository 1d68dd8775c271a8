/* A parent and a child that talk over a pipe, a child that ends by a signal, programs that are started. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(void)
{
	int ends[2], status;
	struct timespec now;
	pipe(ends);
	pid_t child = fork();
	if (child == 0) {
		clock_gettime(CLOCK_REALTIME, &now);
		printf("child %d of %d at %ld\n", getpid(), getppid(), now.tv_nsec);
		fflush(stdout);
		write(ends[1], &now, sizeof now);
		close(ends[1]);
		if (read(0, &status, 1) == 1)
			printf("child has %c\n", (char)status);
		exit(7);
	}
	close(ends[1]);
	read(ends[0], &now, sizeof now);
	waitpid(child, &status, 0);
	printf("parent %d has %ld, child %d ended with %d\n", getpid(), now.tv_nsec, child, WEXITSTATUS(status));
	fflush(stdout);
	child = fork();
	if (child == 0) {
		getpid();
		kill(getpid(), SIGKILL);
		pause();
	}
	waitpid(child, &status, 0);
	printf("by signal %d\n", WTERMSIG(status));
	fflush(stdout);
	child = fork();
	if (child == 0) {
		execlp("no-such-program", "no", (char *)0);
		execlp("true", "true", "words", (char *)0);
	}
	waitpid(child, &status, 0);
	printf("started: %d\n", status);
	child = vfork();
	if (child == 0) {
		execl("/bin/false", "false", (char *)0);
		_exit(1);
	}
	wait(&status);
	printf("started: %d\n", WEXITSTATUS(status));
	fflush(stdout);
	execlp("sh", "sh", "-c", "exit 9", (char *)0);
	return 1;
}
