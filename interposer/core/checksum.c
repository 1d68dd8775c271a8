/* checksum.c - walking all writable memory of the program: to hash it, and to save it at a preemption.
 *
 * Guarantees: pages that were never touched and pages of zeros count alike, so that recording and replay agree
 * however the kernel laid them out; the core's own memory does not count.
 */
#include "core.h"

#define BATCH 4096
#define LARGE (64ul << 20)
#define PRESENT (3ul << 62)
#define FILE_PAGE (1ul << 61)

struct walk {
  s64 pagemap;
  int only_own; /* private file pages that were not written are left out */
  void (*page)(struct walk *walk, u64 address, u64 pages);
  struct thread *th;
  u64 sum, bytes;
};

/* PAGEMAP_SCAN (Linux 6.7): a sanitizer's shadow has terabytes that were never touched. */
struct scan { u64 size, flags, start, end, walk_end, regions, nregions, max_pages, inverted, mask, anyof, wanted; };
struct scanned { u64 start, end, categories; };
#define SCAN 0xc0606610u
#define SCAN_FILE 4ul
#define SCAN_PRESENT 8ul
#define SCAN_SWAPPED 16ul

/* 0: the kernel cannot do this. */
static int visit_large(struct walk *walk, u64 from, u64 to, int leave_files) {
  static struct scanned found[256];
  struct scan scan = {.size = sizeof scan, .start = from, .end = to, .regions = (u64)found, .nregions = 256,
                      .anyof = SCAN_PRESENT | SCAN_SWAPPED, .wanted = SCAN_FILE | SCAN_PRESENT | SCAN_SWAPPED};
  while (scan.start < to) {
    s64 n = SYS3(RR_NR_ioctl, walk->pagemap, SCAN, &scan);
    if (n < 0) return scan.start > from;
    for (s64 i = 0; i < n; i++)
      if (!(leave_files && found[i].categories & SCAN_FILE)) walk->page(walk, found[i].start, (found[i].end - found[i].start) / PAGE);
    if (scan.walk_end <= scan.start) break;
    scan.start = scan.walk_end;
  }
  return 1;
}

static void visit_dirty(void *context, u64 address, u64 pages) {
  struct walk *walk = context;
  walk->page(walk, address, pages);
}

static void visit_present(struct walk *walk, u64 from, u64 to, int shared, int file) {
  static u64 map[BATCH];
  if (to - from >= LARGE && walk->pagemap >= 0 && (!file || walk->only_own) && visit_large(walk, from, to, file && !shared)) return;
  for (u64 at = from; at < to;) {
    u64 pages = (to - at) / PAGE < BATCH ? (to - at) / PAGE : BATCH, run = 0;
    s64 got = walk->pagemap < 0 ? -1 : SYS4(RR_NR_pread64, walk->pagemap, map, pages * 8, at / PAGE * 8);
    for (u64 i = 0; i < pages; i++) {
      int take = got != (s64)(pages * 8) || map[i] & PRESENT;
      if (file && !walk->only_own) take = 1;
      if (take && walk->only_own && file && !shared && got == (s64)(pages * 8) && map[i] & FILE_PAGE) take = 0;
      if (take) {
        run++;
        continue;
      }
      if (run) walk->page(walk, at + (i - run) * PAGE, run);
      run = 0;
    }
    if (run) walk->page(walk, at + (pages - run) * PAGE, run);
    at += pages * PAGE;
  }
}

static void visit_range(void *context, u64 from, u64 to, int shared, int file) {
  struct walk *walk = context;
  int watch = walk->only_own && !shared;
  if (watch && dirty_pages((s32)walk->pagemap, from, to, visit_dirty, walk)) return;
  visit_present(walk, from, to, shared, file);
  if (watch) dirty_watch((s32)walk->pagemap, from, to); /* which makes pages that were never touched look present */
}

static int walk_memory(struct walk *walk) {
  walk->pagemap = SYS4(RR_NR_openat, -100, "/proc/self/pagemap", 02000000, 0);
  int failed = walk->only_own && dirty_watching() ? each_kept_range(visit_range, walk) : each_range(visit_range, walk);
  if (walk->pagemap >= 0) SYS1(RR_NR_close, walk->pagemap);
  return failed;
}

static void hash_pages(struct walk *walk, u64 address, u64 pages) {
  u64 buffer[PAGE / 8];
  for (u64 p = 0; p < pages; p++, address += PAGE) {
    if (rr_copy(buffer, (void *)address, PAGE)) continue;
    u64 a = 0x9e3779b97f4a7c15ul, b = 0xc2b2ae3d27d4eb4ful, any = 0;
    for (u32 i = 0; i < PAGE / 8; i += 2) {
      any |= buffer[i] | buffer[i + 1];
      a = (a ^ buffer[i]) * 0x9fb21c651e98df25ul;
      a ^= a >> 29;
      b = (b ^ buffer[i + 1]) * 0xd6e8feb86659fd93ul;
      b ^= b >> 31;
    }
    if (!any) continue;
    walk->sum = (walk->sum ^ address ^ a ^ (b << 1)) * 0x9fb21c651e98df25ul;
    walk->sum ^= walk->sum >> 32;
    walk->bytes += PAGE;
  }
}

u64 checksum_memory(u64 *bytes) {
  struct walk walk = {.page = hash_pages};
  walk_memory(&walk);
  *bytes = walk.bytes;
  return walk.sum;
}

void checksum_event(struct thread *th) {
  u64 bytes = 0, sum = checksum_memory(&bytes);
  if (!bytes) return; /* no /proc here */
  log_begin(th, RR_K_CHECKSUM, 0, 0, (u64[6]){bytes, 0, 0, 0, 0, 0});
  log_commit(th, (s64)sum);
}

static void save_pages(struct walk *walk, u64 address, u64 pages) {
  log_region(walk->th, RR_R_OUT, 255, address, pages * PAGE);
  walk->bytes += pages * PAGE;
}

/* All memory that the program may have written since the last event, into the event under construction. */
u64 save_memory(struct thread *th) {
  struct walk walk = {.page = save_pages, .only_own = 1, .th = th};
  walk_memory(&walk);
  return walk.bytes;
}
