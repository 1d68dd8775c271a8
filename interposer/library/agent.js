// Puts the stubs of library interfaces in place. The plan comes from interposer/library/engine.py.
const LIBC = ['memset', 'memcpy', 'memcmp', 'strlen', 'strnlen', 'wcslen', 'clock_gettime', '__errno_location',
  'malloc', 'realloc', 'free', '__register_atfork'];
const loaded = {};       // interface and path -> interface and module
const targets = new Map();
const problems = [];
const redirected = [];  // functions that take no jump: replaced where modules import them
const fresh = [];       // modules that are being loaded: not yet relocated
const imports = new Map();  // module path -> Map(imported name -> slot or null)
const sizes = new Map();    // address of a function -> its size, by the symbol table
const symbols = new Map();  // module path -> Map(name of a function -> its address, NULL for several)
const wanted = new Set();   // names that some module imports
// What functions that only put others together call (scandir, glob, fts, getmntent).
const BENEATH = ['opendir', 'readdir', 'readdir64', 'closedir', 'dirfd', 'fdopendir', 'stat', 'stat64', 'lstat', 'lstat64', 'fstat', 'fstat64',
  'fstatfs', 'fstatfs64', 'open', 'open64', 'close', 'chdir', 'fchdir', 'getlogin_r', 'getpwnam_r', 'fopen', 'fopen64', 'fgets_unlocked', 'fclose'];
let looksUp = false;        // a module may look any function up by its name
const STATE_SIZE = 262144;
const SLOTS = 64;
const POOL_SIZE = 16384;
const COPY_SIZE = 256;
const NEAR = 0x70000000;
const FAR = ptr('0x200000000000');  // where the log lies: out of the program's way
const pools = [];
const keep = [];
let foreign = null;
let runtime = null;
let trap = null;
let parts = [];
let plan = null;
let report = null;

function libc(name) {
  return Module.getGlobalExportByName(name);
}

// News for the tool, a line each, in a file: the tool may be gone and the program lives on.
function emit(news) {
  report.write(JSON.stringify(news) + '\n');
  report.flush();
}

// The runtime's own system calls: not those of the C library, whose function may be replaced, and no errno.
function rawSyscall() {
  const code = Memory.alloc(4096);
  Memory.patchCode(code, 32, at => at.writeByteArray([
    0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0x48, 0x89, 0xd6, 0x48, 0x89, 0xca,  // rax, rdi, rsi, rdx = the first four
    0x4d, 0x89, 0xc2, 0x4d, 0x89, 0xc8, 0x4c, 0x8b, 0x4c, 0x24, 0x08,        // r10, r8, r9 = the others
    0x0f, 0x05, 0xc3]));
  keep.push(code);
  return code;
}

// Where the log's signal handler returns to: rt_sigreturn, in the bytes that unwinders know.
function restorer() {
  const code = Memory.alloc(4096);
  Memory.patchCode(code, 16, at => at.writeByteArray([0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05]));
  keep.push(code);
  return code;
}

function compile(text, symbols) {
  return new CModule(text, symbols);
}

function exportsOf(module) {
  const found = {};
  for (const name of plan.runtime_exports) found[name] = module[name];
  return found;
}

function install(interfaceIndex, module) {
  const part = parts[interfaceIndex];
  for (const item of part.functions) {
    if (item.done || (isSystem(module) && !looksUp && !item.anywhere && !wanted.has(item.name))) continue;
    let target = item.symbol === '' ? module.findExportByName(item.name) : internal(module, item.symbol);
    if (target === null) continue;
    try {
      const stub = part.module['rr_f_' + item.name];
      const before = targets.get(target.toString());
      if (before !== undefined) {
        if (before.redirected) redirectAll({ name: item.name, target, stub: before.stub });
        item.done = true;
        continue;
      }
      const known = { stub, redirected: false };
      targets.set(target.toString(), known);
      if (item.variadic !== '') {
        const other = module.findExportByName(item.variadic);
        if (other === null) { problems.push([item.name, 'variadic', item.variadic]); continue; }
        part.alt.add(8 * item.index).writePointer(other);
      }
      const slot = part.orig.add(8 * item.index);
      slot.writePointer(target);
      const inside = target.compare(module.base) >= 0 && target.compare(module.base.add(module.size)) < 0;
      try {
        if (!inside) throw new Error('lies in the kernel\'s own page');
        if (leadsAway(target)) throw new Error('only leads to another function');
        slot.writePointer(Interceptor.replaceFast(target, stub));
      } catch (e) {
        if (inside && (moveTiny(target, stub, slot) || moveHead(target, stub, slot, sizes.get(target.toString())))) {
          item.done = true;
          continue;
        }
        if (item.symbol !== '') {
          problems.push([item.name, 'hook', String(e.message)]);
          continue;
        }
        known.redirected = true;
        redirectAll({ name: item.name, target, stub });
      }
      item.done = true;
    } catch (e) {
      problems.push([item.name, 'hook', String(e.message)]);
    }
  }
  Interceptor.flush();
}

// A function of the module's own symbol table; null where there is none, or several of this name.
function internal(module, name) {
  if (!symbols.has(module.path)) {
    const found = new Map();
    for (const symbol of module.enumerateSymbols())
      if (symbol.type === 'function' && !symbol.address.isNull())
      {
        const twice = found.has(symbol.name) && !found.get(symbol.name).equals(symbol.address);
        found.set(symbol.name, twice ? NULL : symbol.address);
        sizes.set(symbol.address.toString(), symbol.size === undefined ? 0 : symbol.size);
      }
    symbols.set(module.path, found);
  }
  const address = symbols.get(module.path).get(name);
  if (address === undefined) return null;
  if (address.isNull()) { problems.push([name, 'symbol', 'several functions have this name']); return null; }
  return address;
}

// A leaf function that Frida finds too short: its few bytes are copied, and a jump is put over it and the padding
// behind it. `slot` is given the copy. False where the function is not such a one.
function moveTiny(target, stub, slot) {
  let at = target;
  let furthest = target;
  let tail = null;
  let size = 0;
  const relative = [];  // places that count from where the instruction stands
  for (let i = 0; i < 16; i++) {
    const found = Instruction.parse(at);
    at = found.next;
    const branch = found.groups.includes('jump') || found.groups.includes('call');
    if (branch) {
      if (found.groups.includes('call') || found.operands.length !== 1 || found.operands[0].type !== 'imm') return false;
      const to = ptr(found.operands[0].value.toString());
      if (found.mnemonic === 'jmp') {
        if (furthest.compare(at) >= 0) return false;
        tail = to;
        size = found.address.sub(target).toInt32();
        break;
      }
      if (to.compare(target) < 0 || to.compare(target.add(96)) > 0) return false;
      if (to.compare(furthest) > 0) furthest = to;
    } else if (found.operands.some(o => o.type === 'mem' && o.value.base === 'rip')) {
      const field = displacement(found);
      if (field === null) return false;
      relative.push({ at: field.sub(target).toInt32(), to: found.next.add(field.readS32()), next: found.next.sub(target).toInt32() });
    } else if (found.mnemonic === 'ret' && furthest.compare(at) < 0) {
      size = at.sub(target).toInt32();
      break;
    }
    if (i === 15) return false;
  }
  const room = (at.sub(target).toInt32() + 15) & ~15;
  if (room < 5 || !target.and(15).isNull() || size > COPY_SIZE - 32) return false;
  const copy = roomFor(target);
  if (copy === null) return false;
  const thunk = copy.add(COPY_SIZE - 16);
  Memory.copy(copy, target, size);
  for (const field of relative) copy.add(field.at).writeS32(field.to.sub(copy.add(field.next)).toInt32());
  if (tail !== null) {
    jumpTo(copy.add(size), tail);
  }
  jumpTo(thunk, stub);
  slot.writePointer(copy);  // first: Frida's own threads may call the function at this very moment
  nearJump(target, thunk);
  return true;
}

// Whether a function only goes on in another one (PQfreemem in free): Frida would replace that one.
function leadsAway(target) {
  let found = Instruction.parse(target);
  if (found.mnemonic === 'endbr64') found = Instruction.parse(found.next);
  return found.mnemonic === 'jmp';
}

function jumpTo(at, target) {
  at.writeByteArray([0xff, 0x25, 0, 0, 0, 0]);
  at.add(6).writePointer(target);
}

function nearJump(at, target) {
  Memory.patchCode(at, 5, code => { code.writeU8(0xe9); code.add(1).writeS32(target.sub(at).toInt32() - 5); });
}

const HEAD = 5;           // bytes of a near jump
const SCANNED = 1024;     // bytes of a function in which branches into its head are looked for

// A longer function that Frida does not take: the instructions of its first five bytes are copied, a jump back behind
// them. `known` is the size of a function of the program itself, `slot` is given the copy. False where an instruction
// cannot be moved or a branch leads between them.
function moveHead(target, stub, slot, known) {
  const head = [];
  let at = target;
  let ends = false;
  while (at.sub(target).toInt32() < HEAD && !ends) {
    const found = Instruction.parse(at);
    head.push(found);
    at = found.next;
    ends = found.mnemonic === 'jmp' || found.mnemonic === 'ret';
  }
  const size = at.sub(target).toInt32();
  if (size < HEAD || branchesInto(target, size, known || SCANNED)) return false;
  const copy = roomFor(target, known !== undefined);
  if (copy === null) return false;
  let to = copy;
  for (const found of head) {
    const direct = found.operands.length === 1 && found.operands[0].type === 'imm' ? ptr(found.operands[0].value.toString()) : null;
    if (found.groups.includes('jump') || found.groups.includes('call')) {
      if (direct === null) return false;
      if (found.mnemonic === 'jmp') { jumpTo(to, direct); to = to.add(14); continue; }
      const first = found.address.readU8();
      const opcode = found.mnemonic === 'call' && first === 0xe8 ? [0xe8] :
        first >= 0x70 && first < 0x80 ? [0x0f, first + 0x10] :
        first === 0x0f ? [0x0f, found.address.add(1).readU8()] : null;
      if (opcode === null) return false;
      to.writeByteArray(opcode);
      to = to.add(opcode.length);
      to.writeS32(direct.sub(to).toInt32() - 4);
      to = to.add(4);
      continue;
    }
    Memory.copy(to, found.address, found.size);
    if (found.operands.some(o => o.type === 'mem' && o.value.base === 'rip')) {
      const field = displacement(found);
      if (field === null) return false;
      const moved = to.add(field.sub(found.address).toInt32());
      moved.writeS32(found.next.add(field.readS32()).sub(to.add(found.size)).toInt32());
    }
    to = to.add(found.size);
  }
  if (!ends) jumpTo(to, at);
  const thunk = copy.add(COPY_SIZE - 16);
  jumpTo(thunk, stub);
  slot.writePointer(copy);  // first: Frida's own threads may call the function at this very moment
  nearJump(target, thunk);
  return true;
}

// Whether a branch leads into the first bytes of a function, but not to its begin.
function branchesInto(target, size, scanned) {
  const end = target.add(scanned);
  for (let at = target; at.compare(end) < 0;) {
    let found;
    try { found = Instruction.parse(at); } catch (e) { return false; }
    if (found.groups.includes('jump') && found.operands.length === 1 && found.operands[0].type === 'imm') {
      const by = ptr(found.operands[0].value.toString()).sub(target);
      if (by.compare(ptr(size)) < 0 && !by.isNull()) return true;
    }
    at = found.next;
  }
  return false;
}

// Room for a copy near a function. Calls made by copies of a library's functions are its own: the whole pool is foreign.
function roomFor(target, own = false) {
  const free = pools.filter(p => p.own === own && p.used < POOL_SIZE);
  let pool = free.find(p => target.sub(p.base).compare(ptr(NEAR)) < 0);
  if (pool === undefined) pool = free.find(p => p.base.sub(target).compare(ptr(NEAR)) < 0);
  if (pool === undefined) {
    pool = { base: Memory.alloc(POOL_SIZE, { near: target, maxDistance: NEAR }), used: 0, own };
    // Both at once, and for good: what protects memory may itself be a function that was moved here.
    if (!Memory.protect(pool.base, POOL_SIZE, 'rwx')) return null;
    pools.push(pool);
    if (!own) foreign(uint64(pool.base.toString()), POOL_SIZE);
  }
  pool.used += COPY_SIZE;
  return pool.base.add(pool.used - COPY_SIZE);
}

// Where an instruction's displacement stands in its bytes.
function displacement(instruction) {
  const value = instruction.operands.find(o => o.type === 'mem').value.disp;
  for (let i = instruction.size - 4; i > 0; i--)
    if (instruction.address.add(i).readS32() === value) return instruction.address.add(i);
  return null;
}

// The program's allocator is replaced for what the C library allocates within logged calls; where that does not
// work, all is as if there were no such region.
const HEAP = ['free', 'realloc', 'malloc', 'calloc', 'memalign', 'aligned_alloc', 'posix_memalign', 'malloc_usable_size'];
function divideHeap() {
  const stub = new NativeFunction(runtime.rr_heap_stub, 'pointer', ['uint32']);
  const slot = new NativeFunction(runtime.rr_heap_slot, 'pointer', ['uint32']);
  // A program that is not position-independent may have entries of its linkage table in the place of functions.
  let home = Process.findModuleByAddress(libc('free'));
  if (home === null || home.findExportByName('free') === null) home = Process.findModuleByName('libc.so.6');
  for (let i = 0; i < HEAP.length; i++) {
    const target = home === null ? null : home.findExportByName(HEAP[i]);
    if (target === null) return;
    const place = slot(i);
    place.writePointer(target);
    try {
      place.writePointer(Interceptor.replaceFast(target, stub(i)));
    } catch (e) {
      if (!moveTiny(target, stub(i), place) && !moveHead(target, stub(i), place)) return;
    }
  }
  Interceptor.flush();
  new NativeFunction(runtime.rr_heap_begin, 'void', [])();
}

function redirectAll(item) {
  redirected.push(item);
  for (const module of Process.enumerateModules()) redirect(module, item);
}

// Replaces a function where a module imports it: in its linkage table, bound or not, and wherever else the linker
// has put the address into the module's data.
function redirect(module, item) {
  const names = importsOf(module);
  if (!names.has(item.name)) return;
  const slot = names.get(item.name);
  if (slot !== null) put(slot, item.stub);
  const pattern = new Uint8Array(8);
  new DataView(pattern.buffer).setBigUint64(0, BigInt(item.target.toString()), true);
  const text = Array.from(pattern, byte => byte.toString(16).padStart(2, '0')).join(' ');
  for (const range of [...module.enumerateRanges('rw-'), ...module.enumerateRanges('r--')]) {
    if (range.protection.includes('x')) continue;
    for (const found of Memory.scanSync(range.base, range.size, text))
      if (found.address.and(7).isNull()) put(found.address, item.stub);
  }
}

function put(slot, value) {
  const range = Process.findRangeByAddress(slot);
  const readOnly = range !== null && !range.protection.includes('w');
  if (readOnly) Memory.protect(slot, 8, 'rw-');
  slot.writePointer(value);
  if (readOnly) Memory.protect(slot, 8, range.protection);
}

function importsOf(module) {
  let names = imports.get(module.path);
  if (names !== undefined) return names;
  names = new Map();
  imports.set(module.path, names);
  if (isFridas(module)) return names;
  for (const entry of module.enumerateImports()) {
    names.set(entry.name, entry.slot === undefined ? null : entry.slot);
    if (isSystem(module)) continue;
    wanted.add(entry.name);
    if (plan.through.includes(entry.name)) for (const name of BENEATH) wanted.add(name);
  }
  if (!isSystem(module) && (names.has('dlsym') || names.has('dlvsym'))) looksUp = true;
  return names;
}

function isFridas(module) {
  return module.name.startsWith('frida-agent');
}

function isSystem(module) {
  return /^(ld-linux|libc\.so|libpthread\.so)/.test(module.name);
}

function matches(module, soname) {
  return module.name === soname || module.name.startsWith(soname + '.');
}

// Instructions that tell something, found as the program's modules describe their functions (.eh_frame_hdr): what only
// looks like one, in constants amid the code, is none. Their opcode is made an invalid one, which the runtime answers.
const PATTERNS = ['0f 31', '0f 01 f9', '0f c7 f?'];
const KINDS = { rdtsc: 0, rdtscp: 1, rdrand: 2, rdseed: 2 };
const REGISTERS = ['a', 'c', 'd', 'b', 'sp', 'bp', 'si', 'di'];
const FUNCTION_MAX = 65536;

function trapInstructions(module) {
  if (Object.keys(plan.instructions).length === 0 || isSystem(module) || isFridas(module) || module.name.includes('vdso')) return;
  const candidates = [];
  for (const range of module.enumerateRanges('--x'))
    for (const pattern of PATTERNS)
      try { for (const found of Memory.scanSync(range.base, range.size, pattern)) candidates.push(found.address); } catch (e) { continue; }
  if (candidates.length === 0) return;
  const frames = framesOf(module);
  if (frames === null) { emit({ type: 'undescribed', path: module.path }); return; }
  // All are decoded before the first is changed.
  const instructions = candidates.map(address => [address, instructionAt(frames, address)]);
  for (const [address, found] of instructions) {
    if (found === null || plan.instructions[found.mnemonic] === undefined) continue;
    const opcode = address.sub(found.address).toInt32();
    const register = found.operands.length === 1 ? found.operands[0].value : 'rax';
    trap(uint64(found.address.toString()), KINDS[found.mnemonic], plan.instructions[found.mnemonic], found.size, registerNumber(register),
      found.operands.length === 1 ? found.operands[0].size : 8);
    Memory.patchCode(found.address.add(opcode), 2, code => { code.writeByteArray([0x0f, 0x0b]); });
  }
}

function registerNumber(name) {
  const numbered = /^r(\d+)/.exec(name);
  return numbered !== null ? parseInt(numbered[1]) : REGISTERS.indexOf(name.replace(/^[er]/, '').replace(/x$/, ''));
}

// The sorted table of an .eh_frame_hdr: where functions begin and how long they are.
function framesOf(module) {
  const headers = module.base.add(module.base.add(32).readU64());
  const count = module.base.add(56).readU16();
  let bias = null;
  let frames = null;
  for (let i = 0; i < count; i++) {
    const header = headers.add(56 * i);
    const kind = header.readU32();
    if (kind === 1 && bias === null) bias = module.base.sub(ptr(header.add(16).readU64().toString()).and(ptr('0xfffffffffffff000')));
    if (kind === 0x6474e550) frames = ptr(header.add(16).readU64().toString());
  }
  if (bias === null || frames === null) return null;
  const at = bias.add(frames);
  if (at.readU32() !== 0x3b031b01) return null;
  return { at, count: at.add(8).readU32(), entry: i => at.add(12 + 8 * i) };
}

// The instruction that has its opcode at an address, decoded from where its function begins; null where there is none.
function instructionAt(frames, address) {
  let low = 0;
  let high = frames.count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (frames.at.add(frames.entry(middle).readS32()).compare(address) <= 0) low = middle + 1; else high = middle;
  }
  if (low === 0) return null;
  const start = frames.at.add(frames.entry(low - 1).readS32());
  const size = frames.at.add(frames.entry(low - 1).add(4).readS32()).add(12).readU32();
  const into = address.sub(start).toUInt32();
  if (into >= size || into > FUNCTION_MAX) return null;
  for (let at = start; at.compare(address) <= 0;) {
    let found;
    try { found = Instruction.parse(at); } catch (e) { return null; }
    if (found.next.compare(address) > 0) return found.mnemonic in KINDS ? found : null;
    at = found.next;
  }
  return null;
}

// Functions that the library imports from the program: what it calls of them during a logged call is a call back.
// They are replaced where they stand: a library that is being loaded has no linkage table yet.
function importsFrom(index) {
  const part = parts[index];
  for (const name of Object.keys(part.symbols)) {
    const symbol = part.symbols[name];
    const slot = part.names['rr_fns_' + name];
    if (!slot.readPointer().isNull()) continue;
    const target = Module.findGlobalExportByName(symbol);
    if (target === null) { problems.push([symbol, 'symbol', 'nobody exports it']); continue; }
    const stub = new NativeFunction(part.module['rr_first_' + name], 'pointer', [])();
    slot.writePointer(target);
    try {
      slot.writePointer(Interceptor.replaceFast(target, stub));
    } catch (e) {
      if (!moveTiny(target, stub, slot) && !moveHead(target, stub, slot)) problems.push([symbol, 'hook', String(e.message)]);
    }
  }
  Interceptor.flush();
}

// Functions of the C library are replaced when somebody imports them, or may look them up: there are many.
function completeSystem() {
  plan.interfaces.forEach((item, index) => {
    for (const module of Object.values(loaded))
      if (module.interface === item.name && isSystem(module.module)) install(index, module.module);
  });
}

// A library is seen before it is relocated, which overwrites what stands in its linkage table: again behind dlopen.
let loading = false;
let running = false;
function watchLoading() {
  Interceptor.attach(libc('dlopen'), {
    onLeave() {
      for (const module of fresh.splice(0)) for (const item of redirected) redirect(module, item);
    }
  });
  loading = true;
}

// Functions of an interface's library that the program imports and the interface does not have.
const exported = {};  // interface -> names its libraries export
const told = new Set();
function lacks() {
  plan.interfaces.forEach(item => {
    if (!(item.name in exported)) return;
    const own = new Set(item.functions.map(f => f.name));
    const found = [];
    for (const [path, names] of imports) {
      if (item.libraries.some(soname => matches({ name: path.split('/').pop() }, soname))) continue;
      for (const name of names.keys())
        if (exported[item.name].has(name) && !own.has(name) && !told.has(item.name + name)) { told.add(item.name + name); found.push(name); }
    }
    if (found.length) emit({ type: 'lacks', name: item.name, functions: found });
  });
}

function seen(module) {
  if (!plan.image.domain) emit({ type: 'module', base: module.base.toString(), size: module.size, path: module.path });
  const before = wanted.size;
  const couldLookUp = looksUp;
  importsOf(module);
  trapInstructions(module);
  for (const item of redirected) redirect(module, item);
  if (loading && redirected.length) fresh.push(module);
  if (wanted.size !== before || looksUp !== couldLookUp) completeSystem();
  plan.interfaces.forEach((item, index) => {
    if (item.libraries.some(soname => matches(module, soname))) {
      if (!((item.name + module.path) in loaded)) {
        loaded[item.name + module.path] = { interface: item.name, module };
        install(index, module);
        importsFrom(index);
        const missing = parts[index].functions.filter(f => !f.optional && !f.done && (f.symbol !== '' || module.findExportByName(f.name) === null))
          .map(f => f.name);
        if (item.closed) {
          if (!(item.name in exported)) exported[item.name] = new Set();
          for (const one of module.enumerateExports()) if (one.type === 'function') exported[item.name].add(one.name);
        }
        emit({ type: 'loaded', name: item.name, module: module.name, path: module.path, missing, problems: problems.splice(0) });
      }
    }
  });
  if (running) lacks();
}

// The script outlives its tool, whichever way that ends: code of stubs stays for threads that are in it. It looks itself
// whether the stubs are to be taken out.
function watchForEnd() {
  const over = new NativeFunction(runtime.rr_over, 'int', []);
  const timer = setInterval(() => {
    if (!over()) return;
    clearInterval(timer);
    new NativeFunction(runtime.rr_stop, 'void', [])();
    for (const target of targets.keys()) Interceptor.revert(ptr(target));
    Interceptor.flush();
    new NativeFunction(runtime.rr_left, 'void', [])();
  }, 200);
}

rpc.exports = {
  start(given) {
    let placed = null;
    plan = given;
    report = new File(plan.news, 'ab');
    const names = {};
    for (const name of LIBC) names[name] = libc(name);
    names.syscall = rawSyscall();
    names.rr_restorer = restorer();
    for (const name of ['stdin', 'stdout', 'stderr']) names[name] = libc(name);
    const open = new NativeFunction(libc('open'), 'int', ['pointer', 'int']);
    const mmap = new NativeFunction(libc('mmap'), 'pointer', ['pointer', 'size_t', 'int', 'int', 'int', 'int64']);
    const close = new NativeFunction(libc('close'), 'int', ['int']);
    const fd = open(Memory.allocUtf8String(plan.path), 2);
    if (fd < 0) throw new Error('cannot open ' + plan.path);
    const control = mmap(FAR, plan.control, 3, 1, fd, 0);
    const area = mmap(FAR.add(plan.control), plan.area, 3, plan.replaying ? 2 : 1, fd, plan.control);
    close(fd);
    for (const spare of plan.spare) close(spare);
    const image = plan.image;
    if (image.buffer[1] > 0) {
      // The buffer of standard output as it was recorded, whatever it leads to now: output goes out in the same pieces.
      const buffer = Memory.alloc(image.buffer[1]);
      keep.push(buffer);
      new NativeFunction(libc('setvbuf'), 'int', ['pointer', 'pointer', 'int', 'size_t'])(
        libc('stdout').readPointer(), buffer, image.buffer[0] ? 1 : 0, image.buffer[1]);
    }
    const state = Memory.alloc(STATE_SIZE);
    names.rr_state = state;
    keep.push(state);
    runtime = compile(plan.runtime, names);
    if (new NativeFunction(runtime.rr_state_size, 'uint64', [])() > STATE_SIZE) throw new Error('state is too small');
    const callbacks = state.add(Number(new NativeFunction(runtime.rr_callbacks_offset, 'uint64', [])()));
    new NativeFunction(runtime.rr_init, 'int', ['pointer', 'pointer'])(control, area);
    new NativeFunction(runtime.rr_signals_init, 'void', [])();
    const hush = new NativeFunction(runtime.rr_hush, 'void', ['uint64']);
    for (const thread of plan.others) hush(thread);
    trap = new NativeFunction(runtime.rr_trap, 'void', ['uint64', 'uint32', 'uint32', 'uint32', 'uint32', 'uint32']);
    placed = () => new NativeFunction(runtime.rr_image, 'void', ['uint32', 'uint32', 'uint64', 'uint64', 'uint64'])(
      image.task, image.domain, uint64(image.outputs), uint64(image.errors), uint64(image.kind));
    if (!image.domain) placed();
    foreign = new NativeFunction(runtime.rr_foreign, 'void', ['uint64', 'uint64']);
    for (const module of Process.enumerateModules())
      if (isSystem(module) || isFridas(module)) foreign(uint64(module.base.toString()), module.size);
    for (const [base, size] of plan.foreign) foreign(uint64(base), size);
    const symbols = exportsOf(runtime);
    const forks = Memory.alloc(8).writePointer(libc('fork'));
    keep.push(forks);
    for (const name of ['strlen', 'strnlen', 'wcslen', 'memcpy', 'malloc', 'free']) symbols[name] = names[name];
    plan.interfaces.forEach(item => {
      let module;
      const orig = Memory.alloc(8 * (item.functions.length + 1));
      const alt = Memory.alloc(8 * (item.functions.length + 1));
      const mine = Object.assign({ rr_orig: orig, rr_alt: alt, rr_fork_function: forks }, symbols);
      for (const name of Object.keys(item.callbacks)) mine['rr_fns_' + name] = Memory.alloc(8 * SLOTS);
      keep.push(mine);
      try {
        module = compile(item.source, mine);
      } catch (e) {
        throw new Error(item.name + ': ' + e.message);
      }
      // A function that is replaced may go on in another one: calls made by stubs are not the program's.
      foreign(uint64(module.rr_begins.toString()), module.rr_ends.sub(module.rr_begins).toInt32());
      for (const name of Object.keys(item.callbacks))
        callbacks.add(8 * item.callbacks[name]).writePointer(module['rr_cbr_' + name]);
      parts.push({ module, orig, alt, symbols: item.symbols, names: mine, functions: item.functions.map(f => Object.assign({ done: false }, f)) });
    });
    for (const module of Process.enumerateModules()) importsOf(module);
    Process.attachModuleObserver({ onAdded(module) { seen(module); }, onRemoved() {} });
    if (plan.divide) divideHeap();
    watchLoading();
    if (image.domain) placed();
    running = true;
    lacks();
    if (plan.watching) watchForEnd();
    return Object.keys(loaded);
  },
  modules() {
    return Process.enumerateModules().map(m => [m.base.toString(), m.size, m.path]);
  },
  stack(tid) {
    const thread = Process.enumerateThreads().find(t => t.id === tid);
    if (thread === undefined) return [];
    // Names are looked up by the tool: here they would need locks that the standing thread may hold.
    const found = [];
    for (const a of Thread.backtrace(thread.context, Backtracer.FUZZY)) {
      const module = Process.findModuleByAddress(a);
      if (module !== null && !isFridas(module)) found.push([module.path, a.sub(module.base).toInt32()]);
    }
    return found.slice(0, 16);
  },
};
