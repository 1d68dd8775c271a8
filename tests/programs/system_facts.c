/* system_facts.c - uname, sysinfo, times, getrusage, getcpu, clocks, limits, affinity, statfs: read and plausible. */
#include "show.h"
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
int main(void) {
  struct utsname u;
  struct sysinfo info;
  struct tms t;
  struct rusage usage;
  struct rlimit limit;
  struct timespec now, res;
  struct statfs fs;
  struct timex adjust = {0};
  unsigned cpu = 99999, node;
  cpu_set_t set;
  SHOW(uname(&u));
  puts(u.sysname);
  SHOW(sysinfo(&info));
  SHOW(times(&t) > 0);
  SHOW(getrusage(RUSAGE_SELF, &usage));
  SHOW(getcpu(&cpu, &node));
  printf("%d %d %d\n", info.totalram > 0, usage.ru_maxrss > 0, cpu != 99999);
  for (int clock = 0; clock < 12; clock++)
    if (clock != 10) printf("clock %d: %d %d\n", clock, clock_gettime(clock, &now), clock_getres(clock, &res));
  SHOW(clock_gettime(77, &now));
  SHOW(getrlimit(RLIMIT_NOFILE, &limit));
  SHOW(getpriority(PRIO_PROCESS, 0));
  SHOW(sched_getaffinity(0, sizeof set, &set));
  printf("%d\n", CPU_COUNT(&set) > 0);
  SHOW(sched_getscheduler(0));
  SHOW(statfs("/", &fs));
  SHOW(adjtimex(&adjust) >= 0);
  SHOW(gettimeofday((struct timeval *)&now, NULL));
  SHOW(syscall(SYS_time, NULL) > 1000000000);
  SHOW(getpgrp() > 0);
  SHOW(syscall(SYS_getrandom, &set, 16, 0));
  SHOW(getentropy(&set, 32));
  return 0;
}
