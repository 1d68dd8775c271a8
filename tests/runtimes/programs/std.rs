// Rust: threads, scoped threads, channels, mutexes, condition variables, atomics, a process, a hash map with random keys.
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{mpsc, Arc, Barrier, Condvar, Mutex, RwLock};
use std::thread;

fn main() {
    let (tx, rx) = mpsc::channel();
    let order = Arc::new(Mutex::new(Vec::new()));
    let barrier = Arc::new(Barrier::new(4));
    let handles: Vec<_> = (0..4u64)
        .map(|me| {
            let (tx, order, barrier) = (tx.clone(), order.clone(), barrier.clone());
            thread::spawn(move || {
                barrier.wait();
                for i in 0..100 {
                    order.lock().unwrap().push(me);
                    tx.send(me * 1000 + i).unwrap();
                    if i % 10 == 0 {
                        thread::yield_now();
                    }
                }
            })
        })
        .collect();
    drop(tx);
    let mut hash = 0u64;
    for v in rx {
        hash = hash.wrapping_mul(31).wrapping_add(v);
    }
    for h in handles {
        h.join().unwrap();
    }
    println!("{:x} {}", hash, order.lock().unwrap().len());
    let spin = AtomicUsize::new(0);
    let lock = RwLock::new(0);
    thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                for _ in 0..100 {
                    *lock.write().unwrap() += 1;
                    spin.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        while spin.load(Ordering::SeqCst) < 300 {
            std::hint::spin_loop();
        }
    });
    println!("{}", lock.read().unwrap());
    let pair = Arc::new((Mutex::new(false), Condvar::new()));
    let other = pair.clone();
    let t = thread::spawn(move || {
        *other.0.lock().unwrap() = true;
        other.1.notify_one();
    });
    let mut ready = pair.0.lock().unwrap();
    while !*ready {
        ready = pair.1.wait(ready).unwrap();
    }
    t.join().unwrap();
    let map: HashMap<i32, i32> = (0..20).map(|i| (i, i * i)).collect();
    println!("{:?}", map.keys().collect::<Vec<_>>());
    let out = std::process::Command::new("echo").arg("child").output().unwrap();
    print!("{}", String::from_utf8_lossy(&out.stdout));
    let caught = thread::spawn(|| panic!("expected")).join().is_err();
    println!("{}", caught);
}
