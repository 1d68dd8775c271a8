// As many threads as the first argument says add to a total, in turns.
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

static LOCK: Mutex<()> = Mutex::new(());
#[no_mangle]
pub static mut total: i64 = 0;
#[no_mangle]
pub static mut noted: i64 = 0;

#[no_mangle]
pub extern "C" fn twice(n: i64) -> i64 {
    let result = n * 2; // line: twice
    result // line: returns
}

#[no_mangle]
pub extern "C" fn add(who: i64, n: i64) {
    let value = twice(n); // line: calls
    unsafe { total += value }; // line: adds
    unsafe { noted = who }; // line: notes
}

fn worker(who: i64) {
    for n in 1..=12 {
        {
            let _guard = LOCK.lock().unwrap();
            add(who, n); // line: works
        }
        thread::sleep(Duration::from_micros(100));
    }
}

fn main() {
    let count: i64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1);
    let threads: Vec<_> = (1..count).map(|who| thread::spawn(move || worker(who))).collect();
    worker(0);
    for one in threads {
        one.join().unwrap();
    }
    println!("{}", unsafe { *std::ptr::addr_of!(total) }); // line: prints
}
