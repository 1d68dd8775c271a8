"""Real programs: natively, recorded with checksums, replayed without their inputs; none on the acceptance list."""

# ruff: noqa: E501 - scripts stay on one line each

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass

import pytest

from tests.programs.conftest import Recorder


@dataclass(frozen=True)
class Workload:
    """`script` is run by sh in a folder where `setup` was run before; `varies`: prints other things each time.

    `said`: what rr-py reports about it, a part of the sentence.
    """

    name: str
    script: str
    setup: str = ""
    needs: str = ""
    varies: bool = False
    said: str = ""
    every: int = 2000

    def __str__(self) -> str:
        return self.name


HELLO_C = 'printf "#include <stdio.h>\\nint main(){puts(\\"built\\");return 3;}\\n" > p.c'
THREADS_C = r"""cat > p.c <<'END'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int n; pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
void *f(void *a) { for (int i = 0; i < 100; i++) { pthread_mutex_lock(&m); n++; pthread_mutex_unlock(&m); } return 0; }
int main() { pthread_t t[3]; for (int i = 0; i < 3; i++) pthread_create(t + i, 0, f, 0);
for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
char *p = malloc(100); strcpy(p, "sanitized"); printf("%s %d\n", p, n); free(p); return 0; }
END
"""
SERVER = "python3 -m http.server 0 --bind 127.0.0.1 > log 2>&1 & P=$!; "
PORT = "until N=$(sed -n 's/.*port \\([0-9]*\\).*/\\1/p' log) && [ -n \"$N\" ]; do :; done; "

WORKLOADS = [
    Workload("sed", "sed -E 's/(1+)/<\\1>/g; 5,9d; $!N; P; D' data | cksum; sed -i s/7/seven/ data; grep -c seven data", "seq 3000 > data"),
    Workload("gawk", "gawk 'BEGIN{srand(1)} {s[$1%7]+=$1} END{n=asorti(s,k); for(i=1;i<=n;i++) print k[i],s[k[i]]; \"date +%Y\"|getline y; print (y>2000); system(\"echo sub\")}' data", "seq 3000 > data", "gawk"),
    Workload("bc", "echo 'scale=60; 4*a(1); 2^300' | bc -l", needs="bc"),
    Workload("dc", "dc -e '40k 2v p [p 1+ d 8>x]sx 1 lxx'", needs="dc"),
    Workload("jq", "jq -c '[.[]|select(.a>2)|{b:(.a*2),c:.s}]|length, .[0]' data", "python3 -c \"import json;print(json.dumps([{'a':i%7,'s':'x'*i} for i in range(300)]))\" > data", "jq"),
    Workload("rsync", "rsync -a --delete in/ out/ && rsync -avn in/ out/ | head -1; ls -R out | cksum", "mkdir -p in/a/b; seq 9999 > in/a/b/f; ln -s b in/a/l", "rsync"),
    Workload("ssh-keygen", "ssh-keygen -q -t ed25519 -N '' -f key && ssh-keygen -y -f key | cut -c1-11; ssh-keygen -lf key.pub", needs="ssh-keygen", varies=True),
    Workload("openssl", "openssl rand -hex 16; openssl genrsa 1024 2>/dev/null | openssl rsa -check -noout 2>&1; openssl speed -seconds 1 -evp sha256 2>/dev/null | wc -l; echo x | openssl dgst -sha512", needs="openssl", varies=True),
    Workload("gpg", "export GNUPGHOME=$PWD/g; mkdir -m 700 g; echo secret | gpg --batch --no-tty --passphrase p --pinentry-mode loopback -c -o c.gpg 2>/dev/null; gpg --batch --no-tty --passphrase p --pinentry-mode loopback -d c.gpg 2>/dev/null; gpgconf --kill all", needs="gpg", varies=True),
    Workload("vim", "vim -es -u NONE -c '%s/1/one/g' -c 'g/9/d' -c 'normal ggdd' -c wq data; cksum < data", "seq 500 > data", "vim"),
    Workload("less", "script -qec 'less data' /dev/null < keys | cksum", "seq 500 > data; printf ' G/4\\nq' > keys", "less script", varies=True),
    Workload("man", "man -P cat ls 2>/dev/null | head -5; man -k nothing-such 2>&1 | head -1; true", needs="man", varies=True, said="seccomp"),
    Workload("zip", "zip -qr a.zip in && unzip -qo a.zip -d out && diff -r in out/in && unzip -l a.zip | tail -1 | awk '{print $2}'", "mkdir in; seq 9999 > in/f; seq 99 > in/g", "zip unzip"),
    Workload("compressors", "bzip2 -k data; zstd -q -19 data; xz -k data; gzip -k data; for f in data.bz2 data.zst data.xz data.gz; do cksum < $f; done; bunzip2 -c data.bz2 | cmp - data && zstd -dc data.zst | cmp - data && echo same", "seq 9999 > data", "bzip2 zstd xz gzip"),
    Workload("patch-diff", "diff -u a b > p; patch -s a p && cmp a b && echo patched; diff3 a b c | head -3; ed -s a <<E\n1,3d\nw\nq\nE\nwc -l < a", "seq 100 > a; seq 100 | sed s/5/five/ > b; seq 3 > c", "patch diff ed"),
    Workload("m4", "printf 'define(f,`ifelse($1,0,1,`eval($1*f(decr($1)))'\"'\"')'\"'\"')f(10) esyscmd(echo hi)' | m4", needs="m4"),
    Workload("bison-flex", "bison -o g.c g.y && flex -o l.c l.l && gcc -w -o calc g.c l.c && echo '2*3+4' | ./calc", "cat > g.y <<'E'\n%{\nint yylex(void);void yyerror(const char*s){}\n#include <stdio.h>\n%}\n%token N\n%left '+'\n%left '*'\n%%\nl: e '\\n' {printf(\"%d\\n\",$1);} ;\ne: N | e '+' e {$$=$1+$3;} | e '*' e {$$=$1*$3;} ;\n%%\nint main(){return yyparse();}\nE\ncat > l.l <<'E'\n%{\nextern int yylval;\nenum{N=258};\n#include <stdlib.h>\n%}\n%option noyywrap\n%%\n[0-9]+ {yylval=atoi(yytext);return N;}\n.|\\n {return *yytext;}\n%%\nE", "bison flex gcc"),
    Workload("tcl", "tclsh t.tcl", "cat > t.tcl <<'E'\nset p [open {|sort -r} r+]\nputs $p \"b\\na\\nc\"\nclose $p write\nputs [read $p]\nafter 20 {set done 1}\nvwait done\nputs [clock format 0 -gmt 1] \nE", "tclsh"),
    Workload("lua", "lua5.4 -e 'local t={} for i=1,2000 do t[i]=(i*7919)%1009 end table.sort(t) print(t[1],t[2000],os.time()>0) print(io.popen(\"echo sub\"):read(\"a\"))'", needs="lua5.4"),
    Workload("ruby", "ruby -e 'puts (1..20).map{|i| Thread.new{i*i}}.map(&:value).sum; puts `echo sub`; puts rand(10)<10; fork{puts 7}; Process.wait; puts Hash[*%w[a b]]'", needs="ruby"),
    Workload("php", "php -r 'echo array_sum(range(1,100)), PHP_EOL, strlen(md5(random_bytes(9))), PHP_EOL; $p=proc_open(\"cat\",[[\"pipe\",\"r\"],[\"pipe\",\"w\"]],$f); fwrite($f[0],\"through\\n\"); fclose($f[0]); echo stream_get_contents($f[1]);'", needs="php"),
    Workload("perl", "perl -e 'use IO::Select; use IO::Socket::UNIX; socketpair(my $a,my $b,AF_UNIX,SOCK_STREAM,0); if(!fork){print $b \"child\\n\";exit 3} close $b; print <$a>; wait; print $?>>8,\"\\n\"; local $SIG{ALRM}=sub{die \"alarm\\n\"}; alarm 1; eval{select(undef,undef,undef,9)}; print $@; print sort {$a<=>$b} map {$_*3%7} 1..6'", needs="perl"),
    Workload("python-venv", "python3 -m venv --without-pip v && v/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'; python3 -m compileall -q m.py; ls __pycache__ | wc -l", "echo 'x=1' > m.py", "python3", every=5000),
    Workload("python-unittest", "python3 -m unittest -v t 2>&1 | grep -c 'ok$'", "cat > t.py <<'E'\nimport unittest, tempfile, subprocess, threading, asyncio, sqlite3, multiprocessing\nclass T(unittest.TestCase):\n  def test_file(self):\n    with tempfile.NamedTemporaryFile() as f: f.write(b'x'); f.flush(); self.assertEqual(open(f.name).read(),'x')\n  def test_process(self): self.assertEqual(subprocess.check_output(['echo','a']),b'a\\n')\n  def test_thread(self):\n    r=[]; t=threading.Thread(target=r.append,args=(1,)); t.start(); t.join(); self.assertEqual(r,[1])\n  def test_async(self): self.assertEqual(asyncio.run(asyncio.wait_for(asyncio.sleep(0,5),1)),5)\n  def test_sql(self): self.assertEqual(sqlite3.connect(':memory:').execute('select 1+1').fetchone(),(2,))\n  def test_pool(self):\n    with multiprocessing.get_context('fork').Pool(2) as p: self.assertEqual(p.map(abs,[-1,2]),[1,2])\nE", "python3", every=5000),
    Workload("python-spawns-in-threads", "python3 s.py", "cat > s.py <<'END'\nimport subprocess, threading, concurrent.futures as c, os, signal\ndef f(i): return subprocess.run(['sh','-c',f'echo {i}; exit {i%5}'],capture_output=True).returncode\nwith c.ThreadPoolExecutor(6) as e: print(sum(e.map(f,range(60))))\ndef g(i):\n    r,w=os.pipe(); p=os.fork()\n    if not p: os.write(w,b'x'*i); os._exit(0)\n    os.close(w); n=0\n    while d:=os.read(r,100): n+=len(d)\n    os.close(r); os.waitpid(p,0); return n\nwith c.ThreadPoolExecutor(4) as e: print(sum(e.map(g,range(30))))\nt=threading.Timer(0.05,lambda: os.kill(os.getpid(),signal.SIGUSR1)); signal.signal(signal.SIGUSR1,lambda *a: print('sig'))\nt.start(); t.join()\ndef h(): os.execvp('echo',['echo','exec from a thread'])\nthreading.Thread(target=h).start(); threading.Event().wait()\nEND\n", "python3", every=5000),
    Workload("python-many-mappings", "python3 s.py", "cat > s.py <<'END'\nimport mmap,os,random\nfs=[]\nfor i in range(300):\n    f=open(f'f{i}','w+b'); f.truncate(8192); m=mmap.mmap(f.fileno(),8192); fs.append((f,m)); m[0]=i%256\nprint(sum(m[0] for _,m in fs))\nfor f,m in fs[:100]: os.pwrite(f.fileno(),b'zz',4000)\nprint(sum(m[4001] for _,m in fs))\np=os.fork()\nif not p:\n    for _,m in fs: m[5]=3\n    os._exit(0)\nos.wait(); print(sum(m[5] for _,m in fs))\nEND\n", "python3", every=500),
    Workload("binutils", "gcc -g -o p p.c; strings -n 8 p | grep -c GLIBC; objdump -d p | grep -c ret; readelf -h p | head -3; nm p | grep -c ' T '; ld --version | head -1; size p | tail -1 | wc -w; strip p; ./p", HELLO_C, "gcc objdump", varies=True),
    Workload("cmake", "cmake -S . -B b > log 2>&1 && cmake --build b > log2 2>&1 && b/p; tail -1 log | cut -c1-20", HELLO_C + "; printf 'cmake_minimum_required(VERSION 3.10)\\nproject(p C)\\nadd_executable(p p.c)\\n' > CMakeLists.txt", "cmake gcc", every=20000, said="io_uring_setup"),
    Workload("imagemagick", "convert -size 60x40 gradient:red-blue a.png && convert a.png -resize 30x20 -rotate 15 b.jpg && identify -format '%w %h\\n' b.jpg", needs="convert identify", every=20000),
    Workload("git-clone", "git clone -q --no-local one two && git -C two log --format=%s && git -C two gc -q && git -C two fsck 2>&1 | tail -1", "git init -q one && cd one && for i in 1 2 3; do seq $i > f; git add f; git -c user.name=n -c user.email=e commit -qm c$i; done", "git", every=20000),
    Workload("sqlite-wal", "sqlite3 x.db 'pragma journal_mode=wal; create table t(a); insert into t values(1),(2); select sum(a) from t;'; sqlite3 x.db 'pragma journal_mode; insert into t select a+10 from t; select count(*),sum(a) from t; pragma wal_checkpoint(truncate);'", needs="sqlite3"),
    Workload("sqlite-wal-two", "python3 w.py", "cat > w.py <<'E'\nimport sqlite3, subprocess, sys\na = sqlite3.connect('x.db', isolation_level=None); a.execute('pragma journal_mode=wal'); a.execute('create table t(a)')\nb = sqlite3.connect('x.db', isolation_level=None)\nfor i in range(20):\n    (a if i % 2 else b).execute('insert into t values(?)', (i,))\n    print(a.execute('select count(*), sum(a) from t').fetchone(), b.execute('select max(a) from t').fetchone())\nE", "python3", every=500),
    Workload("psql", "psql --version | cut -c1-5; psql -h 127.0.0.1 -p 1 -c 'select 1' 2>&1 | head -1 | cut -c1-30", needs="psql"),
    Workload("curl", SERVER + PORT + "curl -s http://127.0.0.1:$N/data | cksum; curl -sI http://127.0.0.1:$N/none | head -1; kill $P; wait $P; echo $?", "seq 3000 > data", "curl python3"),
    Workload("wget", SERVER + PORT + "wget -q -O- http://127.0.0.1:$N/data | cksum; kill $P; wait $P; echo $?", "seq 3000 > data", "wget python3"),
    Workload("musl", "musl-gcc -o d p.c && ./d; musl-gcc -static -o s p.c && ./s; echo $?", HELLO_C, "musl-gcc"),
    Workload("fortran", "gfortran -o f f.f90 && ./f", "printf 'program p\\n integer :: i\\n real(8) :: a(1000)\\n a = [(sqrt(real(i,8)),i=1,1000)]\\n open(7,file=\"o\")\\n write(7,*) sum(a)\\n close(7)\\n print *, sum(a)\\nend program\\n' > f.f90", "gfortran"),
    Workload("rust", "./r", "printf 'use std::collections::HashMap; use std::process::Command; fn main(){let mut m=HashMap::new(); for i in 0..100 {m.insert(i,i*i);} println!(\"{}\", m.values().sum::<i32>()); print!(\"{}\", String::from_utf8(Command::new(\"echo\").arg(\"sub\").output().unwrap().stdout).unwrap()); let r=std::panic::catch_unwind(||{panic!(\"x\")}); println!(\"{}\", r.is_err());}' > r.rs; rustc -O r.rs 2>/dev/null", "rustc"),
    Workload("c++", "g++ -O1 -o p p.cc && ./p", "cat > p.cc <<'E'\n#include <iostream>\n#include <future>\n#include <filesystem>\n#include <regex>\n#include <chrono>\nint main(){auto f=std::async(std::launch::async,[]{return 42;});std::cout<<f.get()<<std::endl;try{throw std::runtime_error(\"thrown\");}catch(std::exception&e){std::cout<<e.what()<<std::endl;}int n=0;for(auto&e:std::filesystem::directory_iterator(\".\"))n++;std::cout<<n<<std::regex_match(\"abc\",std::regex(\"a.c\"))<<std::endl;}\nE", "g++", every=20000),
    Workload("gcc-asan", "gcc -g -fsanitize=address,undefined -o p p.c && ./p", THREADS_C, "gcc"),
    Workload("gcc-asan-finds", "gcc -g -fsanitize=address -o p p.c; ./p 2>&1 | grep -c heap-buffer-overflow; ./p 2>/dev/null; echo $?", "printf '#include <stdlib.h>\\nint main(){volatile char*p=malloc(8);p[8]=1;return 0;}' > p.c", "gcc"),
    Workload("gcc-lsan", "gcc -g -fsanitize=address -o p p.c; ./p 2>&1 | sed -n 's/^Direct leak of/leak of/p' | cut -d' ' -f1-4; ./p 2>/dev/null; echo $?", "printf '#include <stdlib.h>\\n#include <pthread.h>\\n#include <unistd.h>\\nvoid*f(void*a){void*volatile kept=malloc(33);for(;;)pause();}int main(){pthread_t t;pthread_create(&t,0,f,0);volatile char*p=malloc(77);p=malloc(5);p=0;return 0;}' > p.c", "gcc"),
    Workload("gcc-tsan", "gcc -g -fsanitize=thread -o p p.c && ./p", THREADS_C, "gcc"),
    Workload("clang-msan", "clang -g -fsanitize=memory -o p p.c && ./p", THREADS_C, "clang"),
    Workload("clang-asan", "clang -g -fsanitize=address -o p p.c && ./p; clang -g -fsanitize=undefined -o u p.c && ./u", THREADS_C, "clang"),
    Workload("clang-tsan", "clang -g -fsanitize=thread -o p p.c && ./p", THREADS_C, "clang"),
    Workload("node", "node -e \"const c=require('child_process'); console.log(c.execSync('echo sub').toString().trim(), [3,1,2].sort()); require('fs').promises.readdir('.').then(x=>{console.log(x.length); setTimeout(()=>console.log('late'),5)})\"", needs="node", every=50000),
    Workload("zsh", "zsh -fc 'a=(3 1 2); print ${(o)a}; for i in {1..3}; do (exit $i); print $?; done; print $RANDOM | read x; zmodload zsh/datetime; print $((EPOCHSECONDS>0)); coproc cat; print -p hi; read -p y; print $y'", needs="zsh"),
    Workload("bash", "bash -c 'trap \"echo int\" INT; kill -INT $$; exec 3<>f; echo x >&3; cat <(echo one) <(echo two); echo $((RANDOM>=0)); read -t 0.01 < <(sleep 1); echo $?; shopt -s extglob; echo ${BASH_VERSION:+yes}; (ulimit -n 50; exec ls f); wait'", needs="bash"),
    Workload("socat", "socat -u UNIX-LISTEN:s,unlink-close=1 - > got & P=$!; until [ -S s ]; do :; done; echo through | socat -u - UNIX-CONNECT:s; wait $P; cat got", needs="socat"),
    Workload("make", "make -s -j3; cat out", "printf 'out: a b c\\n\\tcat $^ > $@\\na b c:\\n\\techo $@ > $@\\n' > Makefile", "make"),
    Workload("find-xargs", "find . -type f -print0 | xargs -0 -P3 -n5 cksum | sort | cksum; find . -name 'f1*' -exec rm {} +; ls | wc -l", "for i in $(seq 50); do echo $i > f$i; done"),
    Workload("tools-of-coreutils", "shuf -i 1-9 --random-source=/dev/zero | sort -R --random-source=/dev/zero | cksum; split -l 10 data; tac data | nl | tail -1; paste xaa xab | join - xaa | wc -l; stat -c %s data; du -k . | wc -l; timeout 0.05 sleep 5; echo $?; mkfifo p; (echo f > p &) ; cat p; truncate -s 1M t; fallocate -l 4096 t; sync t; realpath --relative-to=/ . | wc -l; nproc | wc -l; factor 1234567; od -c data | head -2; tee a b < data | wc -l; csplit -s data 5; install -m 600 data i; stat -c %a i", "seq 50 > data"),
    Workload("time-and-users", "date +%Y | wc -c; id -u; whoami; uptime | wc -l; ps ax | wc -l | awk '{print ($1>2)}'; tty; stty size 2>&1 | head -1; getent passwd root | cut -d: -f1; hostname | wc -l; df -P / | wc -l; free | wc -l; uname -s; nice -n 5 nice; setsid -w echo new; env -i A=1 env"),
]


def _missing(workload: Workload) -> list[str]:
    return [name for name in workload.needs.split() if not shutil.which(name)]


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_workload(workload: Workload, rr: Recorder) -> None:
    if missing := _missing(workload):
        pytest.skip(f"not installed: {', '.join(missing)}")
    for kind in ("native", "recorded"):
        if workload.setup:
            subprocess.run(["sh", "-c", workload.setup], cwd=rr.folder(kind), check=True, stdout=subprocess.DEVNULL)
    native = rr.native("sh", "-c", workload.script)
    recorded = rr.record("sh", "-c", workload.script, options=[f"--checksum={workload.every}"])
    rr.forget_inputs()
    replayed = rr.replay("--verify")
    assert all(workload.said and workload.said in line for line in recorded.said), recorded.said
    assert recorded.status == native.status
    if not workload.varies:
        assert recorded.out == native.out
    assert (replayed.status, replayed.out, replayed.err) == (recorded.status, recorded.out, recorded.err)
    assert replayed.said == ()
