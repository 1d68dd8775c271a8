/* A child is killed while it waits to write to the full pipe of standard output; the parent still writes to both. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	static char much[1 << 20];
	int have, status, size = fcntl(1, F_GETPIPE_SZ);
	memset(much, 'x', sizeof much);
	pid_t child = fork();
	if (child == 0) {
		write(1, much, sizeof much);
		_exit(0);
	}
	while (ioctl(1, FIONREAD, &have) == 0 && have < size)
		usleep(1000);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	write(2, "killed\n", 7);
	write(1, "end\n", 4);
	return WTERMSIG(status);
}
