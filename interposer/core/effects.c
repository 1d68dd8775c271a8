/* effects.c - what memory a call reads and writes, from the generated table.
 *
 * Guarantees: every byte the kernel wrote for a known call is in the event (at most more is); lengths that the
 * program's memory holds are read once before the call, so that a racing or lying program cannot make the core
 * read outside of what it could read itself.
 */
#include "core.h"

#define IN_BULK 64u   /* bytes logged of a bulk input */
#define IN_STRUCT 256u
#define IN_STRINGS 512u

static const struct rr_sub_row *sub_row(const struct rr_sub *sub, u32 arg, const u64 *args) {
  u32 key = sub->pair ? ((u32)args[arg] << 16 | ((u32)args[arg + 1] & 0xffff)) : (((u32)args[arg] >> sub->shift) & sub->mask);
  u32 low = sub->first_row, high = low + sub->nrows;
  while (low < high) {
    u32 middle = (low + high) / 2;
    if (rr_sub_rows[middle].key == key) return &rr_sub_rows[middle];
    if (rr_sub_rows[middle].key < key)
      low = middle + 1;
    else
      high = middle;
  }
  return sub->has_default ? &sub->default_row : NULL;
}

void effects_of(struct effects *to, u64 nr, const u64 *args) {
  to->unknown = 0;
  if (nr >= RR_NCALLS || !rr_calls[nr].treat) {
    to->treat = RR_T_UNKNOWN;
    to->count = to->block = to->flags = 0;
    return;
  }
  const struct rr_call *call = &rr_calls[nr];
  to->rows = &rr_effects[call->first_effect];
  to->count = call->neffects;
  to->treat = call->treat;
  to->block = call->block;
  to->flags = call->flags;
  if (!call->sub) return;
  const struct rr_sub_row *row = sub_row(&rr_subs[call->sub - 1], call->sub_arg, args);
  if (row) {
    to->rows = &rr_effects[row->first_effect];
    to->count = row->neffects;
    to->treat = row->treat;
    to->block = row->block;
  } else if (nr == RR_NR_ioctl) {
    u32 request = (u32)args[1], size = request >> 16 & 0x3fff, direction = request >> 30;
    clear_bytes(&to->made, sizeof to->made);
    to->rows = &to->made;
    if (!size || !direction) {
      to->unknown = !(direction == 0 && size == 0 && (request & 0xff00)) || request < 0x10000;
      to->count = 0;
      return;
    }
    to->made.op = RR_E_FIXED;
    to->made.out = direction >> 1;
    to->made.arg = 2;
    to->made.len_arg = RR_NONE;
    to->made.size = size;
    to->count = 1;
  } else {
    to->unknown = 1;
  }
}

static u64 smaller(u64 a, u64 b) { return a < b ? a : b; }

static u64 counter(u64 address, u32 width) {
  u64 value = 0;
  if (rr_copy(&value, (void *)address, width == 8 ? 8 : width == 2 ? 2 : width == 1 ? 1 : 4)) return 0;
  return value;
}

/* What LENPTR-like effects need from before the call; `lengths` has 16 entries. */
u32 save_lengths(const struct effects *fx, const u64 *args, u64 *lengths) {
  for (u32 i = 0; i < fx->count && i < 16; i++) {
    const struct rr_effect *e = &fx->rows[i];
    lengths[i] = 0;
    if (!e->out) continue;
    if (e->op == RR_E_LENPTR && args[e->len_arg])
      lengths[i] = counter(args[e->len_arg], 4);
    else if ((e->op == RR_E_COUNTED || e->op == RR_E_VIA) && args[e->arg])
      lengths[i] = counter(args[e->arg] + e->off2, e->unit);
    else if (e->op == RR_E_MSGHDR && args[e->arg])
      lengths[i] = counter(args[e->arg] + offsetof(struct msghdr_k, namelen), 4) << 32 |
                   smaller(counter(args[e->arg] + offsetof(struct msghdr_k, controllen), 8), 0xffffffff);
  }
  return fx->count;
}

/* The argument that bounds an effect; the upper half of a 32-bit one means nothing. */
static u64 bound(const struct effects *fx, const struct rr_effect *e, const u64 *args) {
  if (e->len_arg == RR_NONE) return 0;
  return fx->flags >> RR_CF_INTS_SHIFT & (1u << e->len_arg) ? (u32)args[e->len_arg] : args[e->len_arg];
}

static u64 extent(const struct effects *fx, const struct rr_effect *e, const u64 *args, s64 result, u64 before, u64 *address) {
  u64 n = bound(fx, e, args);
  *address = args[e->arg];
  switch (e->op) {
    case RR_E_FIXED:
      *address += e->off;
      return e->size;
    case RR_E_RESULT: {
      u64 bytes = result > 0 ? (u64)result * e->size : 0;
      if (e->len_arg != RR_NONE) bytes = smaller(bytes, n * e->unit);
      *address += e->off;
      return bytes;
    }
    case RR_E_ARG: return n * e->size;
    case RR_E_BITS: return (n + 63) / 64 * 8;
    case RR_E_LENPTR: return e->out ? smaller(before, n ? counter(n, 4) : 0) * e->size : (n ? counter(n, 4) : 0) * e->size;
    case RR_E_PAGES: return (n + PAGE - 1) / PAGE;
    case RR_E_CPUMASK: return result > 0 ? (u64)result : 0;
    case RR_E_COUNTED: {
      u64 count = counter(args[e->arg] + e->off2, e->unit);
      return (e->size & 0xffff) + (u64)(e->size >> 16) * (e->out ? smaller(before, count) : count);
    }
    case RR_E_VIA: {
      u64 count = counter(args[e->arg] + e->off2, e->unit), pointer = 0;
      rr_load64(&pointer, (void *)(args[e->arg] + e->off));
      *address = pointer;
      return (u64)e->size * (e->out ? smaller(before, count) : count);
    }
    default: return 0;
  }
}

static void log_strings(struct thread *th, u32 arg, u64 array) {
  for (u32 i = 0; i < IN_STRINGS; i++) {
    u64 pointer;
    if (rr_load64(&pointer, (void *)(array + 8 * i)) || !pointer) return;
    log_string(th, arg, pointer);
  }
}

static void log_input_vector(struct thread *th, u32 arg, u64 array, u64 count) {
  u64 room = IN_BULK;
  log_region(th, RR_R_IN, arg, array, smaller(count, 16) * sizeof(struct iovec));
  for (u64 i = 0; i < count && i < 16 && room; i++) {
    struct iovec v;
    if (rr_copy(&v, (void *)(array + i * sizeof v), sizeof v)) return;
    u64 bytes = smaller(v.len, room);
    if (bytes) log_region(th, RR_R_IN, arg, v.base, bytes);
    room -= bytes;
  }
}

static void log_input_message(struct thread *th, u32 arg, u64 address) {
  struct msghdr_k hdr;
  log_region(th, RR_R_IN, arg, address, sizeof hdr);
  if (rr_copy(&hdr, (void *)address, sizeof hdr)) return;
  if (hdr.name && hdr.namelen) log_region(th, RR_R_IN, arg, hdr.name, smaller(hdr.namelen, 128));
  log_input_vector(th, arg, hdr.iov, hdr.iovlen);
  if (hdr.control && hdr.controllen) log_region(th, RR_R_IN, arg, hdr.control, smaller(hdr.controllen, IN_STRUCT));
}

void log_inputs(struct thread *th, const struct effects *fx, const u64 *args) {
  for (u32 i = 0; i < fx->count; i++) {
    const struct rr_effect *e = &fx->rows[i];
    u64 address, bytes;
    if (e->out || !args[e->arg]) continue;
    switch (e->op) {
      case RR_E_STRING: log_string(th, e->arg, args[e->arg]); break;
      case RR_E_STRINGS: log_strings(th, e->arg, args[e->arg]); break;
      case RR_E_IOVEC: log_input_vector(th, e->arg, args[e->arg], e->len_arg != RR_NONE ? args[e->len_arg] : 0); break;
      case RR_E_MSGHDR: log_input_message(th, e->arg, args[e->arg]); break;
      case RR_E_MMSGHDR:
        for (u64 k = 0; k < args[e->len_arg] && k < 4; k++)
          log_input_message(th, e->arg, args[e->arg] + k * sizeof(struct mmsghdr_k));
        break;
      case RR_E_SPECIAL: break;
      default:
        bytes = extent(fx, e, args, 0, 0, &address);
        if (address && bytes) log_region(th, RR_R_IN, e->arg, address, smaller(bytes, e->op == RR_E_FIXED ? IN_STRUCT : IN_BULK));
    }
  }
}

static void log_output_vector(struct thread *th, u32 arg, u64 array, u64 count, u64 total) {
  for (u64 i = 0; i < count && total; i++) {
    struct iovec v;
    if (rr_copy(&v, (void *)(array + i * sizeof v), sizeof v)) return;
    u64 bytes = smaller(v.len, total);
    if (bytes) log_region(th, RR_R_OUT, arg, v.base, bytes);
    total -= bytes;
  }
}

static void log_output_message(struct thread *th, u32 arg, u64 address, u64 header, u64 total, u64 namecap, u64 controlcap) {
  struct msghdr_k hdr;
  log_region(th, RR_R_OUT, arg, address, header);
  if (rr_copy(&hdr, (void *)address, sizeof hdr)) return;
  if (hdr.name && hdr.namelen) log_region(th, RR_R_OUT, arg, hdr.name, smaller(hdr.namelen, namecap));
  log_output_vector(th, arg, hdr.iov, hdr.iovlen, total);
  if (hdr.control && hdr.controllen) log_region(th, RR_R_OUT, arg, hdr.control, smaller(hdr.controllen, controlcap));
}

static void log_special(struct thread *th, const struct rr_effect *e, const u64 *args) {
  u64 data[16] = {0};
  if (e->size == RR_S_SEM_ARRAY) {
    if (SYS4(RR_NR_semctl, args[0], 0, 2 | 0x100, data) >= 0) log_region(th, RR_R_OUT, e->arg, args[e->arg], 2 * data[10]);
  } else if (e->size == RR_S_ETHTOOL) {
    u64 pointer = 0;
    if (!rr_load64(&pointer, (void *)(args[e->arg] + 16)) && pointer)
      log_region(th, RR_R_OUT, e->arg, pointer, smaller(4096 - (pointer & 4095), 512));
  }
}

void log_outputs(struct thread *th, const struct effects *fx, const u64 *args, s64 result, const u64 *lengths) {
  for (u32 i = 0; i < fx->count && i < 16; i++) {
    const struct rr_effect *e = &fx->rows[i];
    u64 address, bytes;
    if (!e->out || !args[e->arg]) continue;
    if (e->when == RR_W_SUCCESS && result < 0) continue;
    if (e->when == RR_W_POSITIVE && result <= 0) continue;
    switch (e->op) {
      case RR_E_STRING: {
        char text[256];
        s64 len = rr_strcopy(text, (char *)args[e->arg], sizeof text);
        if (len > 0) log_region(th, RR_R_OUT, e->arg, args[e->arg], (u64)len);
        break;
      }
      case RR_E_IOVEC:
        log_output_vector(th, e->arg, args[e->arg], args[e->len_arg], result > 0 ? (u64)result : 0);
        break;
      case RR_E_MSGHDR:
        log_output_message(th, e->arg, args[e->arg], sizeof(struct msghdr_k), result > 0 ? (u64)result : 0,
                           lengths[i] >> 32, lengths[i] & 0xffffffff);
        break;
      case RR_E_MMSGHDR:
        for (s64 k = 0; k < result; k++) {
          u64 at = args[e->arg] + (u64)k * sizeof(struct mmsghdr_k);
          log_output_message(th, e->arg, at, sizeof(struct mmsghdr_k), counter(at + sizeof(struct msghdr_k), 4), 128, 65536);
        }
        break;
      case RR_E_SPECIAL: log_special(th, e, args); break;
      default:
        bytes = extent(fx, e, args, result, lengths[i], &address);
        if (address && bytes) log_region(th, RR_R_OUT, e->arg, address, bytes);
    }
  }
}

/* ---- scratch: where a call that waits writes while other tasks run ---- */

struct piece { u64 app, scratch, bytes; };
struct redirects {
  u64 at, end; /* free scratch */
  u32 count;
  struct piece pieces[1100];
};

static u64 scratch_area(struct thread *th, u64 bytes) {
  if (bytes <= THREAD_SCRATCH_SIZE) return THREAD_SCRATCH(th);
  if (bytes > 0x8000000) return 0;
  if (th->scratch_size >= bytes) return th->scratch;
  u64 index = ((u64)th - RR_THREADS) / RR_THREAD_STRIDE;
  if (index >= 4096) return 0;
  u64 address = RR_SCRATCH + index * 0x8000000;
  bytes = (bytes + 0xfffff) & ~0xffffful;
  s64 got = SYS6(RR_NR_mmap, address, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  if (got < 0) return 0;
  th->scratch = address;
  th->scratch_size = bytes;
  return address;
}

/* Memory that cannot be written stays the kernel's to refuse: it takes nothing out of a pipe or socket then. */
static u64 redirect(struct redirects *r, u64 app, u64 bytes) {
  if (!app || !bytes || r->count >= 1100) return app;
  for (u32 i = 0; i < r->count; i++)
    if (app >= r->pieces[i].app && app + bytes <= r->pieces[i].app + r->pieces[i].bytes)
      return r->pieces[i].scratch + (app - r->pieces[i].app);
  u64 start = (r->at + 15) & ~15ul;
  if (start + bytes > r->end || rr_touch((void *)app)) return app;
  r->at = start + bytes;
  struct piece *piece = &r->pieces[r->count++];
  piece->app = app;
  piece->scratch = start;
  piece->bytes = bytes;
  return start;
}

/* Memory of the program's buffer is copied in, so that what the kernel leaves alone keeps its value. Only small
 * buffers: a large one is written front to back. */
static u64 redirect_filled(struct redirects *r, u64 app, u64 bytes) {
  u64 to = redirect(r, app, bytes);
  if (to != app) rr_copy((void *)to, (void *)app, smaller(bytes, 65536));
  return to;
}

static u64 own_copy(struct redirects *r, u64 app, u64 bytes) {
  u64 start = (r->at + 15) & ~15ul;
  if (start + bytes > r->end || rr_copy((void *)start, (void *)app, bytes)) return 0;
  r->at = start + bytes;
  return start;
}

static u64 capacity(const struct effects *fx, const struct rr_effect *e, const u64 *args, u64 before, u64 *address) {
  u64 n = bound(fx, e, args);
  if (e->op == RR_E_RESULT) {
    *address = args[e->arg];
    return e->off + (e->len_arg != RR_NONE ? n * e->unit : PAGE);
  }
  if (e->op == RR_E_LENPTR) {
    *address = args[e->arg];
    return before * e->size;
  }
  if (e->op == RR_E_CPUMASK) {
    *address = args[e->arg];
    return 1024;
  }
  return extent(fx, e, args, 0, before, address);
}

static void redirect_vector(struct redirects *r, u64 array, u64 count) {
  struct iovec *v = (struct iovec *)array;
  for (u64 i = 0; i < count; i++) v[i].base = redirect(r, v[i].base, v[i].len);
}

static void redirect_message(struct redirects *r, u64 header) {
  struct msghdr_k *hdr = (struct msghdr_k *)header;
  hdr->name = redirect_filled(r, hdr->name, hdr->namelen);
  hdr->control = redirect_filled(r, hdr->control, hdr->controllen);
  u64 iov = hdr->iovlen <= 1024 ? own_copy(r, hdr->iov, hdr->iovlen * sizeof(struct iovec)) : 0;
  if (!iov) return;
  hdr->iov = iov;
  redirect_vector(r, iov, hdr->iovlen);
}

static u64 vector_bytes(u64 array, u64 count) {
  u64 total = 0;
  for (u64 i = 0; i < count && i < 1024; i++) {
    struct iovec v;
    if (rr_copy(&v, (void *)(array + i * sizeof v), sizeof v)) break;
    total += v.len + 16;
  }
  return total;
}

static u64 message_bytes(u64 address) {
  struct msghdr_k hdr;
  if (rr_copy(&hdr, (void *)address, sizeof hdr)) return 0;
  return vector_bytes(hdr.iov, hdr.iovlen) + hdr.namelen + hdr.controllen + hdr.iovlen * 16 + 256;
}

/* Points the outputs of `args` into scratch memory. 0: nothing was redirected (or there is no room). */
int scratch_redirect(struct thread *th, const struct effects *fx, u64 *args, u64 *area) {
  u64 app[6], lengths[16], need = sizeof(struct redirects) + 4096;
  for (u32 i = 0; i < 6; i++) app[i] = args[i];
  save_lengths(fx, app, lengths);
  u32 outputs = 0;
  for (u32 i = 0; i < fx->count && i < 16; i++) {
    const struct rr_effect *e = &fx->rows[i];
    u64 address;
    if (!e->out || !app[e->arg]) continue;
    outputs++;
    if (e->op == RR_E_IOVEC)
      need += vector_bytes(app[e->arg], app[e->len_arg]) + smaller(app[e->len_arg], 1024) * 16;
    else if (e->op == RR_E_MSGHDR)
      need += message_bytes(app[e->arg]);
    else if (e->op == RR_E_MMSGHDR)
      for (u64 k = 0; k < smaller(app[e->len_arg], 1024); k++) need += message_bytes(app[e->arg] + k * 64) + 64;
    else if (e->op != RR_E_VIA && e->op != RR_E_SPECIAL && e->op != RR_E_STRING)
      need += capacity(fx, e, app, lengths[i], &address) + 64;
  }
  if (!outputs) return 0;
  u64 base = scratch_area(th, need);
  if (!base) return 0;
  struct redirects *r = (struct redirects *)base;
  r->count = 0;
  r->at = base + sizeof *r;
  r->end = base + need;
  *area = base;
  for (u32 i = 0; i < fx->count && i < 16; i++) {
    const struct rr_effect *e = &fx->rows[i];
    u64 address, bytes;
    if (!e->out || !app[e->arg]) continue;
    switch (e->op) {
      case RR_E_VIA: case RR_E_SPECIAL: case RR_E_STRING: break;
      case RR_E_IOVEC: {
        u64 count = app[e->len_arg];
        u64 copy = count <= 1024 ? own_copy(r, app[e->arg], count * 16) : 0;
        if (!copy) break;
        args[e->arg] = copy;
        redirect_vector(r, copy, count);
        break;
      }
      case RR_E_MSGHDR: {
        u64 copy = redirect_filled(r, app[e->arg], sizeof(struct msghdr_k));
        if (copy == app[e->arg]) break;
        args[e->arg] = copy;
        redirect_message(r, copy);
        break;
      }
      case RR_E_MMSGHDR: {
        u64 count = smaller(app[e->len_arg], 1024);
        u64 copy = redirect_filled(r, app[e->arg], count * sizeof(struct mmsghdr_k));
        if (copy == app[e->arg]) break;
        args[e->arg] = copy;
        for (u64 k = 0; k < count; k++) redirect_message(r, copy + k * sizeof(struct mmsghdr_k));
        break;
      }
      default:
        bytes = capacity(fx, e, app, lengths[i], &address);
        if (address >= app[e->arg] && bytes)
          args[e->arg] = redirect_filled(r, app[e->arg], bytes + (address - app[e->arg]));
    }
  }
  return r->count > 0;
}

static u64 scratch_of(struct redirects *r, u64 app, u64 *run) {
  for (u32 i = 0; i < r->count; i++) {
    struct piece *p = &r->pieces[i];
    if (app >= p->app && app < p->app + p->bytes) {
      *run = p->bytes - (app - p->app);
      return p->scratch + (app - p->app);
    }
  }
  return 0;
}

/* Everything the kernel wrote goes from the pieces to where the program wanted it. */
static int piece_back(struct redirects *r, u64 app, u64 bytes) {
  while (bytes) {
    u64 run = 0, from = scratch_of(r, app, &run);
    if (!from) return 0;
    run = smaller(run, bytes);
    if (rr_copy((void *)app, (void *)from, run)) return 1;
    app += run;
    bytes -= run;
  }
  return 0;
}

static int message_back(struct redirects *r, u64 app, u64 total) {
  u64 run;
  struct msghdr_k *made = (struct msghdr_k *)scratch_of(r, app, &run);
  struct msghdr_k hdr;
  if (!made || rr_copy(&hdr, (void *)app, sizeof hdr)) return 0;
  hdr.namelen = made->namelen;
  hdr.controllen = made->controllen;
  hdr.flags = made->flags;
  if (rr_copy((void *)app, &hdr, sizeof hdr)) return 1;
  int bad = hdr.name ? piece_back(r, hdr.name, smaller(hdr.namelen, 128)) : 0;
  if (hdr.control) bad |= piece_back(r, hdr.control, hdr.controllen);
  for (u64 i = 0; i < hdr.iovlen && total; i++) {
    struct iovec v;
    if (rr_copy(&v, (void *)(hdr.iov + i * sizeof v), sizeof v)) return 1;
    u64 bytes = smaller(v.len, total);
    bad |= piece_back(r, v.base, bytes);
    total -= bytes;
  }
  return bad;
}

/* Copies outputs back to the program. Returns the result, or -EFAULT where its memory is not writable. */
s64 scratch_return(struct thread *th, const struct effects *fx, const u64 *app, const u64 *args, s64 result, const u64 *lengths) {
  struct redirects *r = (struct redirects *)lengths[15];
  int bad = 0;
  (void)th;
  for (u32 i = 0; i < fx->count && i < 15; i++) {
    const struct rr_effect *e = &fx->rows[i];
    u64 address, bytes;
    if (!e->out || !app[e->arg]) continue;
    if (e->op == RR_E_MSGHDR) {
      bad |= message_back(r, app[e->arg], result > 0 ? (u64)result : 0);
    } else if (e->op == RR_E_MMSGHDR) {
      for (s64 k = 0; k < result; k++) {
        u64 at = app[e->arg] + (u64)k * sizeof(struct mmsghdr_k), run;
        u64 made = scratch_of(r, at, &run);
        if (!made) continue;
        u32 len = ((struct mmsghdr_k *)made)->len;
        bad |= rr_copy((void *)(at + sizeof(struct msghdr_k)), &len, 4);
        bad |= message_back(r, at, len);
      }
    } else if (e->op == RR_E_IOVEC) {
      u64 total = result > 0 ? (u64)result : 0;
      for (u64 k = 0; k < app[e->len_arg] && total; k++) {
        struct iovec v;
        if (rr_copy(&v, (void *)(app[e->arg] + k * sizeof v), sizeof v)) break;
        bytes = smaller(v.len, total);
        bad |= piece_back(r, v.base, bytes);
        total -= bytes;
      }
    } else if (args[e->arg] != app[e->arg]) {
      if (e->op == RR_E_RESULT && result <= 0) continue;
      if (e->when != RR_W_ALWAYS && result < 0) continue;
      if (e->op == RR_E_LENPTR) {
        u64 run, at = scratch_of(r, app[e->len_arg], &run);
        bytes = smaller(lengths[i], at ? *(u32 *)at : lengths[i]) * e->size;
        address = app[e->arg];
      } else {
        bytes = extent(fx, e, app, result, lengths[i], &address);
      }
      bad |= piece_back(r, address, bytes);
    }
  }
  return bad ? -EFAULT : result;
}
