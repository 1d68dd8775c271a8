/* ranges.c - the program's writable memory, range by range.
 *
 * Guarantees: the core's own memory is left out. Where nothing has changed the address space since, the ranges are the
 * same: they are kept for the next preemption; the main stack, which grows by itself, then reaches down to what lies below.
 */
#include "core.h"

#define KEPT 512

struct range { u64 from, to; int shared, file; };
static struct range kept[KEPT];
static u32 nkept, keeping, kept_at;

static u64 hex(const char **at) {
  u64 value = 0;
  for (;; (*at)++) {
    char c = **at;
    if (c >= '0' && c <= '9')
      value = value * 16 + (u64)(c - '0');
    else if (c >= 'a' && c <= 'f')
      value = value * 16 + (u64)(c - 'a' + 10);
    else
      return value;
  }
}

static void visit_one(range_visitor visit, void *context, u64 from, u64 to, int shared, int file) {
  if (keeping && nkept < KEPT) kept[nkept] = (struct range){from, to, shared, file};
  nkept++;
  visit(context, from, to, shared, file);
}

/* A line of /proc/self/maps: "from-to rwxp offset dev inode  path". */
static void visit_line(const char *line, u64 *below, range_visitor visit, void *context) {
  const char *at = line;
  u64 from = hex(&at);
  at++;
  u64 to = hex(&at);
  at++;
  u64 end_below = *below;
  *below = to;
  int writable = at[1] == 'w', readable = at[0] == 'r', shared = at[3] == 's';
  at += 5;
  hex(&at);
  while (*at && *at != ':') at++;
  if (*at) at++;
  hex(&at);
  while (*at == ' ') at++;
  int file = *at >= '1' && *at <= '9';
  while (*at >= '0' && *at <= '9') at++;
  while (*at == ' ') at++;
  if (!writable || !readable || in_core(from) || (at[0] == '[' && at[1] == 'v')) return;
  if (keeping && at[0] == '[' && at[1] == 's' && at[2] == 't') from = end_below;
  if (from < RR_SLOT_TABLE + RR_SLOT_TABLE_SIZE && to > RR_SLOT_TABLE) { /* the core's, among the program's */
    if (from < RR_SLOT_TABLE) visit_one(visit, context, from, RR_SLOT_TABLE, shared, file);
    from = RR_SLOT_TABLE + RR_SLOT_TABLE_SIZE;
    if (from >= to) return;
  }
  visit_one(visit, context, from, to, shared, file);
}

int each_range(range_visitor visit, void *context) {
  static char text[8192];
  s64 fd = SYS4(RR_NR_openat, -100, "/proc/self/maps", 02000000, 0);
  u64 have = 0, below = 0;
  if (fd < 0) return 1;
  for (;;) {
    s64 n = SYS3(RR_NR_read, fd, text + have, sizeof text - 1 - have);
    if (n <= 0) break;
    have += (u64)n;
    u64 start = 0;
    for (u64 i = 0; i < have; i++)
      if (text[i] == '\n') {
        text[i] = 0;
        visit_line(text + start, &below, visit, context);
        start = i + 1;
      }
    for (u64 i = start; i < have; i++) text[i - start] = text[i];
    have -= start;
    if (have == sizeof text - 1) have = 0;
  }
  SYS1(RR_NR_close, fd);
  return 0;
}

/* The same, from what was found the last time if that still holds. */
int each_kept_range(range_visitor visit, void *context) {
  if (space.grows_down || !space.map_changes) return each_range(visit, context);
  if (kept_at == space.map_changes && nkept <= KEPT) {
    for (u32 i = 0; i < nkept; i++) visit(context, kept[i].from, kept[i].to, kept[i].shared, kept[i].file);
    return 0;
  }
  nkept = 0;
  keeping = 1;
  int failed = each_range(visit, context);
  keeping = 0;
  kept_at = failed ? 0 : space.map_changes;
  return failed;
}
