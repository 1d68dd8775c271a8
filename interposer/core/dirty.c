/* dirty.c - which pages the program has written since they were last saved, so that a preemption saves only those.
 *
 * Pages are write-protected for the kernel to note the next write to them (userfaultfd with UFFD_FEATURE_WP_ASYNC, read
 * by PAGEMAP_SCAN, Linux 6.7). Guarantees: what is said to be unwritten has not been written since the last save of this
 * process; a range that is new, moved, or that the kernel cannot watch counts as written completely.
 */
#include "core.h"

struct uffd_api { u64 api, features, ioctls; };
struct uffd_register { u64 start, len, mode, ioctls; };
struct page_scan { u64 size, flags, start, end, walk_end, regions, nregions, max_pages, inverted, mask, anyof, wanted; };
struct page_region { u64 start, end, categories; };

#define UFFDIO_API 0xc018aa3fu
#define UFFDIO_REGISTER 0xc020aa00u
#define UFFD_API 0xaaul
#define UFFD_USER_MODE_ONLY 1u
#define UFFD_FEATURES (1ul << 15 | 1ul << 12) /* WP_ASYNC, WP_HUGETLBFS_SHMEM */
#define UFFD_WRITE_PROTECT 2ul
#define PAGEMAP_SCAN 0xc0606610u
#define SCAN_PROTECT 1ul
#define SCAN_CHECK 2ul
#define PAGE_WRITTEN 2ul
#define PAGE_THERE (8ul | 16ul) /* present, swapped: what was never touched, or is given back, needs no mark and has no contents */
#define FOUND 256

static enum { UNKNOWN, WATCHING, NEVER } state;

/* After a fork: nothing of this address space is watched yet. */
void dirty_forget(void) {
  if (state != WATCHING) return;
  state = space.shares_fds ? NEVER : UNKNOWN;
  if (state == UNKNOWN) SYS1(RR_NR_close, HIDDEN(RR_FD_DIRTY));
}

static void begin(void) {
  struct uffd_api api = {UFFD_API, UFFD_FEATURES, 0};
  s64 fd = SYS1(RR_NR_userfaultfd, 02000000 | UFFD_USER_MODE_ONLY);
  state = NEVER;
  if (fd < 0) return;
  if (SYS3(RR_NR_ioctl, fd, UFFDIO_API, &api) < 0) {
    SYS1(RR_NR_close, fd);
    return;
  }
  hide_fd((s32)fd, RR_FD_DIRTY, 1);
  state = WATCHING;
}

int dirty_watching(void) {
  if (state == UNKNOWN) begin();
  return state == WATCHING;
}

/* From now on it is known which pages of a range are written. */
void dirty_watch(s32 pagemap, u64 from, u64 to) {
  if (state != WATCHING || pagemap < 0) return;
  struct uffd_register range = {from, to - from, UFFD_WRITE_PROTECT, 0};
  if (SYS3(RR_NR_ioctl, HIDDEN(RR_FD_DIRTY), UFFDIO_REGISTER, &range) < 0) return;
  struct page_scan scan = {.size = sizeof scan, .flags = SCAN_PROTECT | SCAN_CHECK, .start = from, .end = to,
                           .mask = PAGE_WRITTEN, .anyof = PAGE_THERE, .wanted = PAGE_WRITTEN};
  SYS3(RR_NR_ioctl, pagemap, PAGEMAP_SCAN, &scan);
}

/* Visits the pages of a private range that were written since the last time. 0: it is not known which; nothing was
 * visited, and all of it is to be saved (and watched from then on). */
int dirty_pages(s32 pagemap, u64 from, u64 to, void (*page)(void *context, u64 address, u64 pages), void *context) {
  static struct page_region found[FOUND];
  if (!dirty_watching() || pagemap < 0) return 0;
  struct page_scan scan = {.size = sizeof scan, .flags = SCAN_PROTECT | SCAN_CHECK, .start = from, .end = to,
                           .regions = (u64)found, .nregions = FOUND, .mask = PAGE_WRITTEN, .anyof = PAGE_THERE,
                           .wanted = PAGE_WRITTEN};
  while (scan.start < to) {
    s64 n = SYS3(RR_NR_ioctl, pagemap, PAGEMAP_SCAN, &scan);
    if (n < 0) return 0;
    for (s64 i = 0; i < n; i++) page(context, found[i].start, (found[i].end - found[i].start) / PAGE);
    if (scan.walk_end <= scan.start) break;
    scan.start = scan.walk_end;
  }
  return 1;
}
