/* Functions of the C library that fewer programs use, over files that are gone at replay. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <fts.h>
#include <glob.h>
#include <grp.h>
#include <mntent.h>
#include <netdb.h>
#include <pthread.h>
#include <pwd.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/msg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>
#include <wchar.h>

static int visits(const char *path, const struct stat *s, int kind, struct FTW *at)
{
	printf("%s %d %d level %d\n", path, (int)s->st_size, kind, at->level);
	return 0;
}
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t never;
static void *waits(void *p) { sem_wait(&never); return p; }
static int no_dots(const struct dirent *e) { return e->d_name[0] != '.'; }
static void garbage(void *p, int n) { memset(p, (int)(long)&p >> 4 & 0xff, n); }	/* what a stack holds */

int main(void)
{
	char room[4096], *words[] = { "d", 0 }; struct dirent **names; glob_t found; int n; FTS *walk; FTSENT *entry;
	struct passwd user, *one = 0; struct group group, *any = 0; FILE *f; struct mntent *mount; struct tm tm; time_t now; wchar_t wide[64];
	struct utimbuf times = { 1000, 2000 }; struct stat s; struct hostent *host; struct servent *service; struct protoent *protocol;
	n = scandir("d", &names, no_dots, alphasort);
	for (int i = 0; i < n; i++) { printf("%s ", names[i]->d_name); free(names[i]); }
	free(names);
	printf("%d\nglob %d", n, glob("d/*", 0, 0, &found));
	for (size_t i = 0; i < found.gl_pathc; i++) printf(" %s", found.gl_pathv[i]);
	globfree(&found);
	printf("\nnftw %d\n", nftw("d", visits, 5, FTW_PHYS));
	walk = fts_open(words, FTS_PHYSICAL, 0);
	while ((entry = fts_read(walk)) != 0) printf("fts %s %d\n", entry->fts_path, entry->fts_info);
	fts_close(walk);
	f = setmntent("mounts", "r");
	while ((mount = getmntent(f)) != 0) printf("%s on %s\n", mount->mnt_fsname, mount->mnt_dir);
	endmntent(f);
	if (getpwuid_r(0, &user, room, sizeof room, &one) == 0 && one == &user) printf("%s %s %s\n", one->pw_name, one->pw_dir, one->pw_shell);
	if (getgrgid_r(0, &group, room, sizeof room, &any) == 0 && any) printf("%s %d\n", any->gr_name, any->gr_mem[0] == 0);
	printf("nobody: %d %d\n", getpwnam_r("no-such-user", &user, room, sizeof room, &one), one == 0);
	host = gethostbyname("127.0.0.1");
	printf("%s %d\n", inet_ntoa(*(struct in_addr *)host->h_addr_list[0]), host->h_addr_list[1] == 0);
	if ((service = getservbyname("http", "tcp")) != 0) printf("%s %d %s\n", service->s_name, ntohs(service->s_port), service->s_proto);
	if ((protocol = getprotobyname("udp")) != 0) printf("%s %d\n", protocol->p_name, protocol->p_proto);
	garbage(&tm, sizeof tm);
	now = time(0);
	struct tm *split = localtime(&now);
	tm.tm_sec = split->tm_sec; tm.tm_min = split->tm_min; tm.tm_hour = split->tm_hour; tm.tm_mday = split->tm_mday; tm.tm_mon = split->tm_mon;
	tm.tm_year = split->tm_year; tm.tm_isdst = -1;
	printf("mktime %d\n", mktime(&tm) == now);
	printf("utime %d", utime("d/a", &times));
	stat("d/a", &s);
	printf(" %d\n", (int)s.st_mtime);
	printf("xattr %d\n", setxattr("d/a", "user.x", "y", 1, 0) < 0);
	n = inotify_init();
	printf("inotify %d\n", inotify_add_watch(n, "d", IN_CREATE) > 0);
	f = fopen("wide", "w+");
	fputws(L"one\ntwo\n", f); fwprintf(f, L"%d\n", 3); rewind(f);
	while (fgetws(wide, 64, f)) printf("wide %d %c\n", (int)wcslen(wide), (int)wide[0]);
	fclose(f);
	int queue = msgget(IPC_PRIVATE, 0600); struct { long kind; char text[8]; } message = { 3, "queued" };
	if (queue >= 0) {
		msgsnd(queue, &message, 8, 0); memset(&message, 0, sizeof message);
		n = (int)msgrcv(queue, &message, 8, 0, 0); printf("%d %ld %s %d\n", n, message.kind, message.text, msgctl(queue, IPC_RMID, 0));
	}
	struct sockaddr_in address; struct sockaddr_un path; socklen_t size = 4; int peer[2], listener = socket(AF_INET, SOCK_STREAM, 0);
	garbage(&address, sizeof address);
	address.sin_family = AF_INET; address.sin_port = 0; address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	printf("bind %d\n", bind(listener, (struct sockaddr *)&address, sizeof address));
	/* An address longer than the room that is given for it. */
	memset(&path, 0, sizeof path);
	path.sun_family = AF_UNIX; strcpy(path.sun_path, "socket-with-a-long-name");
	peer[0] = socket(AF_UNIX, SOCK_DGRAM, 0);
	bind(peer[0], (struct sockaddr *)&path, sizeof path);
	memset(room, 'x', 16);
	n = getsockname(peer[0], (struct sockaddr *)room, &size);
	printf("name %d %d %.4s|%.6s\n", n, (int)size, room + 2, room + 4);
	/* Locked before there is a second thread, which waits when the program ends. */
	pthread_t thread;
	pthread_mutex_lock(&lock);
	pthread_create(&thread, 0, waits, 0);
	pthread_mutex_unlock(&lock);
	printf("destroyed %d\n", pthread_mutex_destroy(&lock));
	int file = (int)syscall(SYS_openat, AT_FDCWD, "mounts", O_RDONLY, 0);
	n = (int)syscall(SYS_read, file, room, 4);
	printf("by number %d %.4s %ld", n, room, syscall(SYS_close, file));
	printf(" %ld\n", syscall(SYS_close, file));
	return 6;
}
