//! What watched windows of a time series cost: the point that joins one, and SET beside many of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tidemark_engine::watch::{Filter, Read, SharedQuery};
use tidemark_engine::{Call, Engine, Protocol, Reply, command};

/// Points of a window.
const WINDOW: usize = 10_000;
/// Windows beside which SET is measured, and the series that they are of.
const WINDOWS: usize = 10_000;
const SERIES: usize = 100;
const SETS: usize = 200_000;

/// Prints the cost of a point that joins a window, as a change and, with an operator, as an answer; and
/// what SET takes beside many windows while a writer adds points to them.
pub(crate) fn print() {
    println!("a point that joins a window of {WINDOW} points, watched once:");
    for (name, read, points) in [
        ("whole answers (an operator)", "TS.REVRANGE k - + COUNT 10000 | LIMIT 1000000", 500),
        ("changes", "TS.REVRANGE k - + COUNT 10000", 20_000),
        ("changes, the whole range", "TS.RANGE k - +", 20_000),
        ("changes, avg by 60", "TS.RANGE k - + AGGREGATION avg 60", 20_000),
        ("whole answers, avg by 60", "TS.RANGE k - + AGGREGATION avg 60 | LIMIT 1000000", 2_000),
    ] {
        joins_a_window(name, read, points);
    }
    println!("\nSET, ns, while a writer adds points:");
    sets("no window", 0);
    sets("10,000 windows of 100 points", WINDOWS);
    sets("no window", 0);
    sets("10,000 windows of 100 points", WINDOWS);
    println!("\nbeside TS.MREVRANGE … FILTER of one of {SERIES} series each, ns:");
    [0, 1, 100, 200, WINDOWS].into_iter().for_each(beside_selections);
}

fn run(engine: &Engine, reply: &mut Reply, words: &[&str]) {
    let args: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    let command = command::resolve(&args).expect("a command of the table");
    reply.truncate(0);
    engine.execute(&Call { command, args: &args, db: 0, now_us: 1 }, reply);
    assert_ne!(reply.bytes().first(), Some(&b'-'), "the command succeeds");
}

fn watch(engine: &Engine, line: &str) -> SharedQuery {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    let at = words.iter().position(|word| *word == b"|").unwrap_or(words.len());
    let filter = Filter::parse(&words[at..]).expect("operators");
    let read = Read::new(0, Protocol::Resp3, &words[..at], filter).expect("a read that can be watched");
    engine.subscribe(read, 0, 1).expect("a beginning").query
}

/// Prints what SET takes, and a point of a series that a filter selects, and of one that none does.
fn beside_selections(windows: usize) {
    let (engine, mut reply) = (super::new_engine(), Reply::new(Protocol::Resp3));
    for series in 0..SERIES {
        let (key, label) = (format!("s{series}"), format!("n{series}"));
        run(&engine, &mut reply, &["TS.CREATE", &key, "LABELS", "sensor", &label]);
        for at in 0..1000 {
            run(&engine, &mut reply, &["TS.ADD", &key, &at.to_string(), "1.5"]);
        }
    }
    run(&engine, &mut reply, &["TS.CREATE", "other", "LABELS", "sensor", "none"]);
    for window in 0..windows {
        let (series, length) = (window % SERIES, 900 + window / SERIES);
        watch(&engine, &format!("TS.MREVRANGE - + COUNT {length} FILTER sensor=n{series}"));
    }
    let mut each = |name: &str, count: usize, line: &dyn Fn(usize) -> Vec<String>| {
        let mut times: Vec<u64> = (0..count)
            .map(|at| {
                let line = line(at);
                let words: Vec<&str> = line.iter().map(String::as_str).collect();
                let began = Instant::now();
                run(&engine, &mut reply, &words);
                began.elapsed().as_nanos() as u64
            })
            .collect();
        times.sort_unstable();
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        println!("{windows:>6} {name:<32} p50 {:>9}  p99 {:>9}", at(0.5), at(0.99));
    };
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    each("SET", SETS / 10, &|at| words(&["SET", &format!("key:{}", at % 10_000), "0123456789abcdef"]));
    each("TS.ADD, of no filter", SETS / 10, &|at| words(&["TS.ADD", "other", &at.to_string(), "2.5"]));
    let points = if windows > 1000 { SETS / 100 } else { SETS / 10 };
    each("TS.ADD, of windows / 100", points, &|at| {
        words(&["TS.ADD", &format!("s{}", at % SERIES), &(1000 + at).to_string(), "2.5"])
    });
}

fn joins_a_window(name: &str, read: &str, points: usize) {
    let (engine, mut reply) = (super::new_engine(), Reply::new(Protocol::Resp3));
    let mut add = |engine: &Engine, at: usize| {
        let (time, value) = ((at * 10).to_string(), format!("{}.{}", 20 + at % 7, at % 100));
        run(engine, &mut reply, &["TS.ADD", "k", &time, &value]);
    };
    (0..2 * WINDOW).for_each(|at| add(&engine, at));
    let unwatched = {
        let began = Instant::now();
        (2 * WINDOW..2 * WINDOW + points).for_each(|at| add(&engine, at));
        began.elapsed()
    };
    let query = watch(&engine, read);
    let first = 2 * WINDOW + points;
    let began = Instant::now();
    (first..first + points).for_each(|at| add(&engine, at));
    let watched = began.elapsed();
    let mut emissions = Vec::new();
    query.emissions_after(query.count() - 100, 100, &mut emissions).expect("the latest are retained");
    let bytes: usize = emissions.iter().map(|emission| emission.answer.len()).sum();
    let ns = watched.saturating_sub(unwatched).as_nanos() as usize / points;
    println!("{name:<32} {ns:>9} ns {:>9} bytes", bytes / emissions.len());
}

fn sets(name: &str, windows: usize) {
    let (engine, mut reply) = (Arc::new(super::new_engine()), Reply::new(Protocol::Resp3));
    for series in 0..SERIES {
        for at in 0..200 {
            run(&engine, &mut reply, &["TS.ADD", &format!("s{series}"), &at.to_string(), "1.5"]);
        }
    }
    for window in 0..windows {
        let (series, length) = (window % SERIES, 100 + window / SERIES);
        watch(&engine, &format!("TS.REVRANGE s{series} - + COUNT {length}"));
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let writer = std::thread::spawn({
        let (engine, is_over) = (Arc::clone(&engine), Arc::clone(&is_over));
        move || {
            let (mut reply, mut at) = (Reply::new(Protocol::Resp3), 0);
            while !is_over.load(Ordering::Relaxed) {
                let series = format!("s{}", at % SERIES);
                run(&engine, &mut reply, &["TS.ADD", &series, &(200 + at).to_string(), "2.5"]);
                at += 1;
                std::thread::sleep(Duration::from_micros(200));
            }
            at
        }
    });
    let mut times: Vec<u64> = (0..SETS)
        .map(|at| {
            let key = format!("key:{}", at % 10_000);
            let began = Instant::now();
            run(&engine, &mut reply, &["SET", &key, "0123456789abcdef"]);
            began.elapsed().as_nanos() as u64
        })
        .collect();
    is_over.store(true, Ordering::Relaxed);
    let points = writer.join().expect("the writer ends");
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!("{name:<32} p50 {:>6}  p99 {:>6}  p99.9 {:>7}  ({points} points)", at(0.5), at(0.99), at(0.999));
}
