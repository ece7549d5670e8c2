//! Measures the engine's hot paths in one thread: `cargo bench -p tidemark-engine [-- KEYS]`.
//!
//! Each row is the median and the range of several rounds over all keys, in nanoseconds per
//! command. The commands run with parsed arguments. The log is in memory, and its thread runs in
//! parallel. The figures exclude the cost of the socket and the protocol. With `--instructions`,
//! the program counts the instructions of a few commands instead; with `--windows`, it measures what
//! watched windows of time series cost.

mod instructions;
mod windows;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use tidemark_engine::watch::{Filter, Read};
use tidemark_engine::{Call, Engine, Protocol, Reply, command};
use tidemark_log::{Log, Lsn, MemoryStorage, Options};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUNDS: usize = 5;

fn main() -> ExitCode {
    // `cargo bench` adds `--bench` to the arguments.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let number = words.iter().find_map(|word| word.parse().ok());
    let done = match words[..] {
        ["--instructions", ..] => instructions::print(number),
        ["--windows"] => {
            windows::print();
            Ok(())
        }
        ["--repeat", name, ..] => instructions::repeat(&new_engine(), name, number.unwrap_or(0)),
        _ => {
            measure_all(&new_engine(), number.unwrap_or(1_000_000));
            Ok(())
        }
    };
    done.map_or_else(
        |error| {
            eprintln!("{error}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    )
}

fn new_engine() -> Engine {
    let log = Log::open(Arc::new(MemoryStorage::new()), Options::default()).expect("an empty log opens").0;
    Engine::new(Arc::new(log), tidemark_engine::keyspace::SHARDS, 1)
}

fn measure_all(engine: &Engine, keys: usize) {
    let names: Vec<String> = shuffled(keys).iter().map(|n| format!("key:{n:012}")).collect();

    let before = resident_bytes();
    measure("SET, new keys", 1, keys, || run_all(engine, &names, &["SET", "", "0123456789abcdef"]));
    println!("{:<24} {:>8.1} bytes per key of 16 + 16 bytes, log included", "", {
        (resident_bytes() - before) as f64 / keys as f64
    });
    measure("SET, same keys", ROUNDS, keys, || run_all(engine, &names, &["SET", "", "0123456789abcdef"]));
    measure("GET", ROUNDS, keys, || run_all(engine, &names, &["GET", ""]));
    measure("GET, one key", ROUNDS, keys, || run_all(engine, &vec![names[0].clone(); keys], &["GET", ""]));
    measure("INCR, one key", ROUNDS, keys, || run_all(engine, &vec!["n".to_owned(); keys], &["INCR", ""]));
    let one_key = vec!["h".to_owned(); keys];
    measure("HSET, one field", ROUNDS, keys, || run_all(engine, &one_key, &["HSET", "", "field", "value"]));
    let hashes: Vec<String> = names.iter().map(|name| format!("h:{name}")).collect();
    measure("HSET, new keys", 1, keys, || run_all(engine, &hashes, &["HSET", "", "field", "value"]));
    let one_key = vec!["s".to_owned(); keys];
    measure("SADD, a member it has", ROUNDS, keys, || run_all(engine, &one_key, &["SADD", "", "member"]));
    measure("SADD, new members", 1, keys, || {
        let command = command::find(b"SADD").expect("a command of the table");
        let mut reply = Reply::new(Protocol::Resp2);
        for member in &names {
            reply.truncate(0);
            let args: [&[u8]; 3] = [b"SADD", b"large", member.as_bytes()];
            engine.execute(&Call { command, args: &args, db: 0, now_us: 1 }, &mut reply);
        }
    });
    measure("SPOP", 1, keys, || run_all(engine, &vec!["large".to_owned(); keys], &["SPOP", ""]));
    measure("resolve \"GET\"", ROUNDS, keys, || {
        for _ in 0..keys {
            std::hint::black_box(command::resolve(std::hint::black_box(&[b"GET".as_slice(), b"k"]))).ok();
        }
    });

    beside_watched_reads();

    engine.log().wait_durable(engine.log().appended()).expect("memory does not fail");
    let records = engine.log().appended().0 as usize;
    measure("apply from the log", 1, records, || {
        let replica = Engine::new(Arc::clone(engine.log()), tidemark_engine::keyspace::SHARDS, 1);
        let mut replay = engine.log().replay(Lsn(1)).expect("the log is complete");
        let mut scratch = Reply::default();
        while let Some(batch) = replay.next_batch().expect("the log is sound") {
            for record in batch {
                let applied = replica.apply(&record, &mut scratch);
                applied.expect("every record applies");
            }
        }
    });
}

/// Measures what watched reads add to a change: reads that the change cannot affect, and one that
/// emits, without and with operators.
fn beside_watched_reads() {
    const CHANGES: usize = 20_000;
    let log = Log::open(Arc::new(MemoryStorage::new()), Options::default()).expect("an empty log opens").0;
    let engine = Engine::new(Arc::new(log), tidemark_engine::keyspace::SHARDS, 1);
    let mut reply = Reply::new(Protocol::Resp2);
    let mut run = |words: &[&str]| {
        let args: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let command = command::resolve(&args).expect("a command of the table");
        reply.truncate(0);
        engine.execute(&Call { command, args: &args, db: 0, now_us: 1 }, &mut reply);
        assert_ne!(reply.bytes().first(), Some(&b'-'), "the command succeeds");
    };
    let watch = |words: &[&str], operators: &[&[u8]]| {
        let args: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let filter = Filter::parse(operators).expect("operators");
        let read = Read::new(0, Protocol::Resp3, &args, filter).expect("a read that can be watched");
        engine.subscribe(read, 0, 1).expect("a beginning");
    };
    // Values of changes, and members. Each differs from the previous one.
    let numbers: Vec<String> = (0..CHANGES).map(|n| n.to_string()).collect();
    for hash in ["hash", "watched-hash"] {
        (0..1000).for_each(|n| run(&["HSET", hash, &format!("field:{n}"), "value"]));
    }
    (0..1000).for_each(|n| watch(&["HGET", "watched-hash", &format!("field:{n}")], &[]));
    for (what, key) in [("HSET, no watcher", "hash"), ("HSET, 1,000 HGETs", "watched-hash")] {
        measure(what, ROUNDS, CHANGES, || {
            numbers.iter().for_each(|value| run(&["HSET", key, "other", value]));
        });
    }
    watch(&["GET", "watched"], &[]);
    watch(&["GET", "filtered"], &[b"DIFF", b"|", b"EVERY", b"2"]);
    for (what, key) in
        [("SET, no watcher", "plain"), ("SET, GET", "watched"), ("SET, GET with 2 operators", "filtered")]
    {
        measure(what, ROUNDS, CHANGES, || numbers.iter().for_each(|value| run(&["SET", key, value])));
    }
    for set in ["set", "watched-set"] {
        (0..100_000).for_each(|n| run(&["ZADD", set, &(n + CHANGES).to_string(), &format!("member:{n}")]));
    }
    watch(&["ZRANGE", "watched-set", "0", "9", "REV", "WITHSCORES"], &[]);
    for (what, key) in [("ZADD, no watcher", "set"), ("ZADD, below a top 10", "watched-set")] {
        measure(what, ROUNDS, CHANGES, || numbers.iter().for_each(|score| run(&["ZADD", key, score, "low"])));
    }
}

fn run_all(engine: &Engine, names: &[String], words: &[&str]) {
    let mut reply = Reply::new(Protocol::Resp2);
    let command = command::find(words[0].as_bytes()).expect("a command of the table");
    for name in names {
        let mut args: [&[u8]; 4] = [words[0].as_bytes(), name.as_bytes(), b"", b""];
        for (arg, word) in args.iter_mut().zip(words).skip(2) {
            *arg = word.as_bytes();
        }
        reply.truncate(0);
        let call = Call { command, args: &args[..words.len()], db: 0, now_us: 1 };
        engine.execute(&call, &mut reply);
        assert_ne!(reply.bytes().first(), Some(&b'-'), "the command succeeds");
    }
}

fn measure(what: &str, rounds: usize, count: usize, mut run: impl FnMut()) {
    let mut nanos: Vec<f64> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_nanos() as f64 / count as f64
        })
        .collect();
    nanos.sort_by(f64::total_cmp);
    let (low, median, high) = (nanos[0], nanos[rounds / 2], nanos[rounds - 1]);
    println!("{what:<26} {median:>8.1} ns ({low:.1} to {high:.1}, {rounds} rounds of {count})");
}

/// Returns 0..count in an order without pattern: a full-period linear congruential sequence, cut to
/// the range.
fn shuffled(count: usize) -> Vec<usize> {
    let modulus = count.next_power_of_two();
    let mut value = 0_usize;
    let mut all = Vec::with_capacity(count);
    for _ in 0..modulus {
        value = value.wrapping_mul(5).wrapping_add(12_345) & (modulus - 1);
        if value < count {
            all.push(value);
        }
    }
    all
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = status.split(' ').nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
    pages * 4096
}
