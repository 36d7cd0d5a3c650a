//! Peer benchmark: Tokio tasks and channels.
//!
//!   tokio_peer <bench> <threads>            one JSON line on stdout
//!   tokio_peer tcp_server <threads> <port>  echo server, runs until killed
//!   tokio_peer idle|sleep1ms <threads> <seconds>
//!
//! threads = 0 keeps the runtime's default; threads = ct is the current-thread
//! runtime (reported as peer "tokio_ct", threads 1).  See bench/README.md.

mod savina;

use std::future::Future;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot, Mutex};
use tokio::task::{spawn, yield_now};
use tokio::time::sleep;

// ------------------------------------------------------------------ harness

struct Ctx {
    peer: &'static str,
    bench: String,
    threads: usize,
    rt: Runtime,
}

/// What the whole process has used up: CPU microseconds, voluntary and involuntary context switches.
fn cost() -> [f64; 3] {
    let mut ru: libc::rusage = unsafe { std::mem::zeroed() };
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut ru) };
    let tv = |t: libc::timeval| t.tv_sec as f64 * 1e6 + t.tv_usec as f64;
    [tv(ru.ru_utime) + tv(ru.ru_stime), ru.ru_nvcsw as f64, ru.ru_nivcsw as f64]
}

fn env_or(name: &str, def: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).filter(|v| *v > 0).unwrap_or(def)
}

fn median(v: &[f64]) -> f64 {
    let mut s = v.to_vec();
    s.sort_by(f64::total_cmp);
    let m = s.len() / 2;
    if s.len() % 2 == 1 { s[m] } else { (s[m - 1] + s[m]) / 2.0 }
}

fn proc_status(key: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    text.lines()
        .find(|l| l.split(':').next() == Some(key))
        .and_then(|l| l.split_whitespace().nth(1))
        .and_then(|v| v.parse::<u64>().ok())
        .unwrap_or(0)
        * 1024
}

impl Ctx {
    /// Runs the body as a task, so that it lives on a worker and not on the
    /// thread that calls block_on.
    fn once<F>(&self, body: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.rt.block_on(async { spawn(body).await.unwrap() });
    }

    /// One warm-up, then PEERS_RUNS runs (at least 4, fewer than asked when
    /// PEERS_BUDGET_S seconds are used up).
    fn measure<F, B>(&self, n: u64, make: F)
    where
        F: Fn() -> B,
        B: Future<Output = ()> + Send + 'static,
    {
        let runs = env_or("PEERS_RUNS", 7);
        let budget = Duration::from_secs(env_or("PEERS_BUDGET_S", 12));
        self.once(make());
        let (mut wall, mut costs) = (Vec::new(), Vec::new());
        let begin = Instant::now();
        for i in 0..runs {
            if i >= 4 && begin.elapsed() > budget {
                break;
            }
            let (c0, t0) = (cost(), Instant::now());
            self.once(make());
            wall.push(t0.elapsed().as_nanos() as f64 / 1e3);
            let c1 = cost();
            costs.push([c1[0] - c0[0], c1[1] - c0[1], c1[2] - c0[2]]);
        }
        let of = |i: usize| median(&costs.iter().map(|c| c[i]).collect::<Vec<_>>());
        let samples: Vec<_> = wall.iter().map(|w| format!("{:.1}", w)).collect();
        let med = median(&wall);
        let lo = wall.iter().cloned().fold(f64::MAX, f64::min);
        let hi = wall.iter().cloned().fold(0.0, f64::max);
        println!(
            "{{\"peer\":\"{}\",\"bench\":\"{}\",\"threads\":{},\"n\":{},\"median_us\":{:.1},\"min_us\":{:.1},\"max_us\":{:.1},\"runs\":{},\"cpu_us\":{:.1},\"ns_per_op\":{:.1},\"vol_cs\":{:.1},\"invol_cs\":{:.1},\"samples_us\":[{}]}}",
            self.peer, self.bench, self.threads, n, med, lo, hi, wall.len(), of(0), med * 1e3 / n as f64,
            of(1), of(2), samples.join(",")
        );
    }
}

/// Task i's deterministic pseudo-random 1..10 ms.
fn sleep_millis(i: u32) -> u64 {
    1 + ((i.wrapping_mul(2654435761)) >> 16) as u64 % 10
}

// ---------------------------------------------------------------- workloads

async fn chained_spawn(n: u64) {
    for _ in 0..n {
        spawn(async {}).await.unwrap();
    }
}

async fn yield_many(tasks: u64, yields: u64) {
    let handles: Vec<_> = (0..tasks)
        .map(|_| {
            spawn(async move {
                for _ in 0..yields {
                    yield_now().await;
                }
            })
        })
        .collect();
    for h in handles {
        h.await.unwrap();
    }
}

async fn ping_pong(n: u64) {
    let (ping_tx, mut ping_rx) = mpsc::unbounded_channel::<u64>();
    let (pong_tx, mut pong_rx) = mpsc::unbounded_channel::<u64>();
    let ponger = spawn(async move {
        while let Some(v) = ping_rx.recv().await {
            if pong_tx.send(v + 1).is_err() {
                break;
            }
        }
    });
    let pinger = spawn(async move {
        let mut v = 0;
        for _ in 0..n {
            ping_tx.send(v).unwrap();
            v = pong_rx.recv().await.unwrap();
        }
        v
    });
    assert_eq!(pinger.await.unwrap(), n);
    ponger.await.unwrap();
}

async fn ping_pong_oneshot(n: u64) {
    let mut sum = 0;
    for i in 0..n {
        let (tx, rx) = oneshot::channel();
        spawn(async move {
            let _ = tx.send(i);
        });
        sum += rx.await.unwrap();
    }
    assert_eq!(sum, n * (n - 1) / 2);
}

async fn spawn_storm(n: u64) {
    let count = Arc::new(AtomicU64::new(0));
    let handles: Vec<_> = (0..n)
        .map(|_| {
            let count = count.clone();
            spawn(async move {
                count.fetch_add(1, Ordering::Relaxed);
            })
        })
        .collect();
    for h in handles {
        h.await.unwrap();
    }
    assert_eq!(count.load(Ordering::Relaxed), n);
}

async fn mpsc_unbounded(producers: u64, each: u64) {
    let (tx, mut rx) = mpsc::unbounded_channel::<u64>();
    let consumer = spawn(async move {
        let mut sum = 0;
        while let Some(v) = rx.recv().await {
            sum += v;
        }
        sum
    });
    for _ in 0..producers {
        let tx = tx.clone();
        spawn(async move {
            for i in 0..each {
                tx.send(i).unwrap();
            }
        });
    }
    drop(tx);
    assert_eq!(consumer.await.unwrap(), producers * each * (each - 1) / 2);
}

async fn mpsc_bounded(producers: u64, each: u64, capacity: usize) {
    let (tx, mut rx) = mpsc::channel::<u64>(capacity);
    let consumer = spawn(async move {
        let mut sum = 0;
        while let Some(v) = rx.recv().await {
            sum += v;
        }
        sum
    });
    for _ in 0..producers {
        let tx = tx.clone();
        spawn(async move {
            for i in 0..each {
                tx.send(i).await.unwrap();
            }
        });
    }
    drop(tx);
    assert_eq!(consumer.await.unwrap(), producers * each * (each - 1) / 2);
}

async fn many_timers(n: u32) {
    let handles: Vec<_> = (0..n)
        .map(|i| spawn(async move { sleep(Duration::from_millis(sleep_millis(i))).await }))
        .collect();
    for h in handles {
        h.await.unwrap();
    }
}

fn count_primes(below: u32) -> u32 {
    let mut count = 0;
    for n in 2..below {
        let mut prime = n == 2 || n % 2 == 1;
        let mut d = 3;
        while prime && d * d <= n {
            prime = n % d != 0;
            d += 2;
        }
        count += prime as u32;
    }
    count
}

async fn fan_out(tasks: u64) {
    let below = std::hint::black_box(200_000);
    let handles: Vec<_> = (0..tasks).map(|_| spawn(async move { count_primes(below) })).collect();
    for h in handles {
        assert_eq!(h.await.unwrap(), 17984);
    }
}

/// Passes a token `hops` times; then a negative token, once around, ends the
/// tasks.
async fn ring(size: u64, hops: i64) {
    let (done_tx, mut done_rx) = mpsc::unbounded_channel::<u64>();
    let (first, mut rx) = mpsc::unbounded_channel::<i64>();
    let mut handles = Vec::new();
    for id in 0..size {
        let (next_tx, next_rx) = mpsc::unbounded_channel::<i64>();
        let (tx, done) = (if id == size - 1 { first.clone() } else { next_tx }, done_tx.clone());
        let mut my_rx = std::mem::replace(&mut rx, next_rx);
        handles.push(spawn(async move {
            while let Some(left) = my_rx.recv().await {
                if left < 0 {
                    if left > -(size as i64) {
                        let _ = tx.send(left - 1);
                    }
                    break;
                }
                if left == 0 {
                    let _ = done.send(id);
                    let _ = tx.send(-2);
                    break;
                }
                let _ = tx.send(left - 1);
            }
        }));
    }
    first.send(hops).unwrap();
    assert_eq!(done_rx.recv().await, Some(hops as u64 % size));
    for h in handles {
        h.await.unwrap();
    }
}

fn skynet_node(parent: mpsc::UnboundedSender<u64>, num: u64, size: u64) {
    spawn(async move {
        if size == 1 {
            let _ = parent.send(num);
            return;
        }
        let (tx, mut rx) = mpsc::unbounded_channel();
        for i in 0..10 {
            skynet_node(tx.clone(), num + i * (size / 10), size / 10);
        }
        let mut sum = 0;
        for _ in 0..10 {
            sum += rx.recv().await.unwrap();
        }
        let _ = parent.send(sum);
    });
}

async fn skynet(leaves: u64) {
    let (tx, mut rx) = mpsc::unbounded_channel();
    skynet_node(tx, 0, leaves);
    assert_eq!(rx.recv().await, Some(leaves * (leaves - 1) / 2));
}

async fn mutex_contention(tasks: u64, each: u64) {
    let counter = Arc::new(Mutex::new(0u64));
    let handles: Vec<_> = (0..tasks)
        .map(|_| {
            let counter = counter.clone();
            spawn(async move {
                for _ in 0..each {
                    *counter.lock().await += 1;
                }
            })
        })
        .collect();
    for h in handles {
        h.await.unwrap();
    }
    assert_eq!(*counter.lock().await, tasks * each);
}

async fn panic_isolation(n: u64) {
    let mut seen = 0;
    for _ in 0..n {
        let r = spawn(async { panic!("boom") }).await;
        seen += r.is_err_and(|e| e.is_panic()) as u64;
    }
    assert_eq!(seen, n);
}

/// Waits until so many have been counted.
async fn until(count: &AtomicUsize, n: usize) {
    while count.load(Ordering::Relaxed) != n {
        sleep(Duration::from_millis(1)).await;
    }
}

/// Parks n tasks with a mailbox each, sends each one a message, and ends them all.
async fn idle_memory(peer: &str, bench: &str, threads: usize, n: usize) {
    let micros = |t: Instant| t.elapsed().as_nanos() as f64 / 1e3;
    let before = proc_status("VmRSS");
    let t0 = Instant::now();
    let (ready, received) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut boxes = Vec::with_capacity(n);
    let mut handles = Vec::with_capacity(n);
    for _ in 0..n {
        let (ready, received) = (ready.clone(), received.clone());
        let (tx, mut rx) = mpsc::unbounded_channel::<usize>();
        boxes.push(tx);
        handles.push(spawn(async move {
            ready.fetch_add(1, Ordering::Relaxed);
            while let Some(v) = rx.recv().await {
                received.fetch_add(v, Ordering::Relaxed);
            }
        }));
    }
    until(&ready, n).await;
    let wall = micros(t0);
    sleep(Duration::from_millis(200)).await;
    let after = proc_status("VmRSS");
    let mappings = std::fs::read_to_string("/proc/self/maps").unwrap().lines().count();
    let t1 = Instant::now();
    for mailbox in &boxes {
        mailbox.send(1).unwrap();
    }
    until(&received, n).await;
    let wake = micros(t1);
    let t2 = Instant::now();
    drop(boxes);
    for h in handles {
        h.await.unwrap();
    }
    let stop = micros(t2);
    sleep(Duration::from_millis(200)).await;
    println!(
        "{{\"peer\":\"{}\",\"bench\":\"{}\",\"threads\":{},\"n\":{},\"median_us\":{:.1},\"min_us\":{:.1},\"max_us\":{:.1},\"runs\":1,\"bytes_per_task\":{:.1},\"rss_before\":{},\"rss_after\":{},\"vm_hwm\":{},\"mappings\":{},\"wake_us\":{:.1},\"stop_us\":{:.1},\"rss_end\":{}}}",
        peer, bench, threads, n, wall, wall, wall, (after as f64 - before as f64) / n as f64,
        before, after, proc_status("VmHWM"), mappings, wake, stop, proc_status("VmRSS")
    );
    std::process::exit(0);
}

async fn tcp_server(port: u16) {
    let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    loop {
        let (mut sock, _) = listener.accept().await.unwrap();
        sock.set_nodelay(true).unwrap();
        spawn(async move {
            let mut buf = [0u8; 4096];
            while let Ok(n) = sock.read(&mut buf).await {
                if n == 0 || sock.write_all(&buf[..n]).await.is_err() {
                    break;
                }
            }
        });
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.len() < 3 {
        eprintln!("usage: tokio_peer <bench> <threads|ct> [port|seconds]");
        std::process::exit(2);
    }
    let (peer, threads, rt) = if args[2] == "ct" {
        ("tokio_ct", 1, Builder::new_current_thread().enable_all().build().unwrap())
    } else {
        let threads: usize = args[2].parse().unwrap();
        let mut b = Builder::new_multi_thread();
        if threads > 0 {
            b.worker_threads(threads);
        }
        ("tokio", threads, b.enable_all().build().unwrap())
    };
    let arg = args.get(3).cloned().unwrap_or("5".into());
    let c = Ctx { peer, bench: args[1].clone(), threads, rt };
    match args[1].as_str() {
        "chained_spawn" => c.measure(10_000, || chained_spawn(10_000)),
        "yield_many" => c.measure(100_000, || yield_many(100, 1_000)),
        "ping_pong" => c.measure(100_000, || ping_pong(100_000)),
        "ping_pong_oneshot" => c.measure(10_000, || ping_pong_oneshot(10_000)),
        "spawn_storm" => c.measure(100_000, || spawn_storm(100_000)),
        "mpsc_contention" => c.measure(160_000, || mpsc_unbounded(8, 20_000)),
        "mpsc_contention_b1024" => c.measure(160_000, || mpsc_bounded(8, 20_000, 1024)),
        "uncontended_channel" => c.measure(1_000_000, || mpsc_unbounded(1, 1_000_000)),
        "uncontended_channel_b1024" => c.measure(1_000_000, || mpsc_bounded(1, 1_000_000, 1024)),
        "many_timers" => c.measure(10_000, || many_timers(10_000)),
        "fan_out_compute" => c.measure(8, || fan_out(8)),
        "ring" => c.measure(1_000_000, || ring(503, 1_000_000)),
        "skynet" => c.measure(111_111, || skynet(100_000)),
        "skynet_1m" => c.measure(1_111_111, || skynet(1_000_000)),
        "mutex_contention" => c.measure(400_000, || mutex_contention(8, 50_000)),
        "panic_isolation" => {
            std::panic::set_hook(Box::new(|_| {}));
            c.measure(10_000, || panic_isolation(10_000))
        }
        "call_reply" => c.measure(200_000, || savina::call_reply(200_000)),
        "fork_join_throughput" => c.measure(1_200_000, || savina::fork_join_throughput(60, 20_000)),
        "counting" => c.measure(1_000_000, || savina::counting(1_000_000)),
        "big" => c.measure(360_000, || savina::big(120, 3_000)),
        "philosophers" => c.measure(200_000, || savina::philosophers(20, 10_000)),
        "bank_transaction" => c.measure(100_000, || savina::bank_transaction(1_000, 100_000)),
        "idle_memory_100k" | "idle_memory_1m" => {
            let n = if c.bench.ends_with("1m") { 1_000_000 } else { 100_000 };
            let bench = c.bench.clone();
            c.once(async move { idle_memory(peer, &bench, threads, n).await })
        }
        "tcp_server" => c.rt.block_on(async { spawn(tcp_server(arg.parse().unwrap())).await.unwrap() }),
        "idle" => c.once(async move { sleep(Duration::from_secs_f64(arg.parse().unwrap())).await }),
        "sleep1ms" => {
            let secs: f64 = arg.parse().unwrap();
            c.once(async move {
                let (t0, mut iters) = (Instant::now(), 0u64);
                while t0.elapsed().as_secs_f64() < secs {
                    sleep(Duration::from_millis(1)).await;
                    iters += 1;
                }
                println!("iters_per_s={:.1}", iters as f64 / t0.elapsed().as_secs_f64());
            })
        }
        _ => println!(
            "{{\"peer\":\"{}\",\"bench\":\"{}\",\"threads\":{},\"skip\":\"not available\"}}",
            c.peer, c.bench, c.threads
        ),
    }
}
