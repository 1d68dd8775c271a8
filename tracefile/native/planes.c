/* planes.c - events as byte planes of differences, and back; what a replay asks of a chunk of events.
 *
 * Guarantees: no memory is touched but that of the arguments, of the sizes stated; whatever the bytes are, nothing is
 * read or written outside; no library is needed, not even libc. docs/trace-format.md has the two layouts.
 *
 * Events are rows of WORDS 64-bit words. Each word is replaced by its difference to the same word of the row above, and
 * a plane is one byte of one word of all rows. A plane that holds nothing but zeros need not be stored, or be read.
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef long s64;
#define NULL ((void *)0)

#define EXPORT __attribute__((visibility("default")))
#define WORDS 12u
#define EVENT 96u
#define PLANES (WORDS * 8)
#define MASK WORDS /* bytes that say which planes there are: bit p of byte w is byte p of word w */
#define BLOCK 64u  /* rows at a time: they stay in the nearest cache */

/* Sign and magnitude, the sign lowest: multiples of 256 keep their zero bytes. -2^63 is what would be a negative zero. */
static inline u64 folded(u64 difference) {
  u64 sign = difference >> 63;
  return ((difference ^ -sign) + sign) << 1 | sign;
}
static inline u64 unfolded(u64 number) {
  u64 sign = number & 1, magnitude = number >> 1 | (u64)(number == 1) << 63;
  return (magnitude ^ -sign) + sign;
}

static inline u64 word_at(const u8 *events, u64 row, u32 word) {
  u64 value;
  __builtin_memcpy(&value, events + row * EVENT + word * 8, 8);
  return value;
}

/* ---- packing ---- */

static inline u64 difference_at(const u8 *events, u64 row, u32 word) {
  return folded(word_at(events, row, word) - word_at(events, row - 1, word));
}

static void find_changes(const u8 *events, u64 count, u64 *changes) {
  u64 seen[WORDS] = {0}, first[WORDS];
  __builtin_memcpy(first, events, EVENT);
  for (u64 row = 1; row < count; row++) {
    u64 words[WORDS];
    __builtin_memcpy(words, events + row * EVENT, EVENT);
    for (u32 word = 0; word < WORDS; word++) seen[word] |= words[word] ^ first[word];
  }
  for (u32 word = 0; word < WORDS; word++) changes[word] = seen[word];
}

static u32 planes_of(const u8 *events, u64 count, u32 word) {
  u64 all = 0;
  u32 planes = 0;
  for (u64 row = 1; row < count; row++) all |= difference_at(events, row, word);
  for (u32 plane = 0; plane < 8; plane++)
    if (all >> 8 * plane & 0xff) planes |= 1u << plane;
  return planes;
}

/* Returns where the next word's planes go. */
static u8 *put_planes(const u8 *events, u64 count, u32 word, u32 planes, u8 *out) {
  u64 numbers[BLOCK];
  u8 *end = out;
  for (u64 done = 1; done < count; done += BLOCK) {
    u32 rows = count - done < BLOCK ? (u32)(count - done) : BLOCK;
    u8 *to = out + done - 1;
    for (u32 i = 0; i < rows; i++) numbers[i] = difference_at(events, done + i, word);
    for (u32 plane = 0; plane < 8; plane++) {
      if (!(planes >> plane & 1)) continue;
      for (u32 i = 0; i < rows; i++) to[i] = (u8)(numbers[i] >> 8 * plane);
      to += count - 1;
    }
    end = to - (done - 1);
  }
  return end;
}

/* `count` events (1 or more) become at most EVENT * count + MASK bytes of `out`. Returns how many. */
EXPORT u64 rr_pack_events(const u8 *events, u64 count, u8 *out) {
  u64 changes[WORDS];
  u8 *mask = out + EVENT, *to = mask + MASK;
  __builtin_memcpy(out, events, EVENT);
  find_changes(events, count, changes);
  for (u32 word = 0; word < WORDS; word++) {
    u32 planes = changes[word] ? planes_of(events, count, word) : 0;
    mask[word] = (u8)planes;
    if (planes) to = put_planes(events, count, word, planes, to);
  }
  return (u64)(to - out);
}

/* ---- unpacking ---- */

struct planes {
  const u8 *at[PLANES]; /* byte of row 1; NULL: all are 0 */
  int folded;
};

/* Rows [done, done + rows) of a word, `stride` bytes apart; `value` is the row above. */
static inline void put_column(const struct planes *planes, u32 word, u64 done, u32 rows, u64 *value, u8 *out, u64 stride) {
  u64 numbers[BLOCK] = {0}, now = *value;
  for (u32 plane = 0; plane < 8; plane++) {
    const u8 *from = planes->at[word * 8 + plane];
    if (!from) continue;
    from += done - 1;
    if (rows == BLOCK)
      for (u32 i = 0; i < BLOCK; i++) numbers[i] |= (u64)from[i] << 8 * plane;
    else
      for (u32 i = 0; i < rows; i++) numbers[i] |= (u64)from[i] << 8 * plane;
  }
  if (planes->folded)
    for (u32 i = 0; i < rows; i++) numbers[i] = unfolded(numbers[i]);
  for (u32 i = 0; i < rows; i++) {
    now += numbers[i];
    __builtin_memcpy(out + i * stride, &now, 8);
  }
  *value = now;
}

static void put_events(const struct planes *planes, const u8 *first, u64 count, u8 *events) {
  u64 row[WORDS];
  u32 live[WORDS], nlive = 0;
  for (u32 word = 0; word < WORDS; word++)
    for (u32 plane = 0; plane < 8; plane++)
      if (planes->at[word * 8 + plane]) {
        live[nlive++] = word;
        break;
      }
  __builtin_memcpy(row, first, EVENT);
  __builtin_memcpy(events, row, EVENT);
  for (u64 done = 1; done < count; done += BLOCK) {
    u32 rows = count - done < BLOCK ? (u32)(count - done) : BLOCK;
    u8 *out = events + done * EVENT;
    for (u32 i = 0; i < rows; i++) __builtin_memcpy(out + i * EVENT, row, EVENT);
    for (u32 i = 0; i < nlive; i++) put_column(planes, live[i], done, rows, &row[live[i]], out + live[i] * 8, EVENT);
  }
}

static void put_word(const struct planes *planes, const u8 *first, u64 count, u32 word, u8 *column) {
  u64 value;
  __builtin_memcpy(&value, first + word * 8, 8);
  __builtin_memcpy(column, &value, 8);
  for (u64 done = 1; done < count; done += BLOCK)
    put_column(planes, word, done, count - done < BLOCK ? (u32)(count - done) : BLOCK, &value, column + done * 8, 8);
}

static int find_packed(const u8 *packed, u64 size, u64 count, struct planes *planes) {
  const u8 *mask = packed + EVENT, *from = mask + MASK;
  if (size < EVENT + MASK || !count || count > 1ul << 32) return 0;
  planes->folded = 1;
  for (u32 plane = 0; plane < PLANES; plane++) {
    planes->at[plane] = NULL;
    if (!(mask[plane / 8] >> plane % 8 & 1)) continue;
    planes->at[plane] = from;
    from += count - 1;
  }
  return (u64)(from - packed) == size;
}

/* The inverse of rr_pack_events: 0 where `size` bytes are not what `count` events (1 or more) are packed into. */
EXPORT int rr_unpack_events(const u8 *packed, u64 size, u64 count, u8 *events) {
  struct planes planes;
  if (!find_packed(packed, size, count, &planes)) return 0;
  put_events(&planes, packed, count, events);
  return 1;
}

/* One word (0 to 11) of each event; 0 as above. */
EXPORT int rr_unpack_column(const u8 *packed, u64 size, u64 count, u32 word, u8 *column) {
  struct planes planes;
  if (word >= WORDS || !find_packed(packed, size, count, &planes)) return 0;
  put_word(&planes, packed, count, word, column);
  return 1;
}

/* ---- the older layout: all planes, row 0 among them, differences not folded; EVENT * count bytes ---- */

static int zeros(const u8 *bytes, u64 count) {
  u64 i = 0, word, seen = 0;
  for (; i + 64 <= count && !seen; i += 64)
    for (u32 part = 0; part < 64; part += 8) {
      __builtin_memcpy(&word, bytes + i + part, 8);
      seen |= word;
    }
  for (; i < count && !seen; i++) seen |= bytes[i];
  return !seen;
}

static void find_shuffled(const u8 *shuffled, u64 count, u32 plane, u32 end, struct planes *planes, u8 *first) {
  planes->folded = 0;
  for (; plane < end; plane++) {
    const u8 *from = shuffled + plane * count;
    first[plane] = *from;
    planes->at[plane] = zeros(from + 1, count - 1) ? NULL : from + 1;
  }
}

EXPORT int rr_unshuffle_events(const u8 *shuffled, u64 size, u64 count, u8 *events) {
  struct planes planes;
  u8 first[EVENT];
  if (!count || count > 1ul << 32 || size != count * EVENT) return 0;
  find_shuffled(shuffled, count, 0, PLANES, &planes, first);
  put_events(&planes, first, count, events);
  return 1;
}

EXPORT int rr_unshuffle_column(const u8 *shuffled, u64 size, u64 count, u32 word, u8 *column) {
  struct planes planes;
  u8 first[EVENT];
  if (word >= WORDS || !count || count > 1ul << 32 || size != count * EVENT) return 0;
  find_shuffled(shuffled, count, word * 8, word * 8 + 8, &planes, first);
  put_word(&planes, first, count, word, column);
  return 1;
}

/* ---- looking through events ---- */

#define KIND_SYSCALL 1u
struct survey {
  u64 payload_end; /* payload bytes that at least one event's payload needs */
  u64 longest;     /* bytes of the longest payload of an event */
  u64 clone;       /* number of the first event that made a task or a process; `count`: none did */
};
_Static_assert(sizeof(struct survey) == 24, "Survey of planes.py");

static inline int makes_task(u32 nr) { return (nr >= 56 && nr <= 58) || nr == 435; }

/* `count` may be 0. */
EXPORT void rr_survey_events(const u8 *events, u64 count, struct survey *survey) {
  u64 end = 0, longest = 0, clone = count;
  for (u64 row = 0; row < count; row++) {
    u64 head = word_at(events, row, 0), place = word_at(events, row, WORDS - 1), last = (place & 0xffffffff) + (place >> 32);
    end = last > end ? last : end;
    longest = place >> 32 > longest ? place >> 32 : longest;
    if (makes_task((u32)(head >> 48)) && (u8)(head >> 32) == KIND_SYSCALL && (s64)word_at(events, row, 8) > 0 && row < clone) clone = row;
  }
  survey->payload_end = end;
  survey->longest = longest;
  survey->clone = clone;
}
