//! Whether commands that choose at random choose everything equally often: Pearson's chi-square
//! tests of SPOP, SRANDMEMBER, HRANDFIELD, ZRANDMEMBER and RANDOMKEY.
//!
//! The engine's choices follow from a fixed seed. The position of an entry in a table depends on
//! the hash function of the process, and no probability may depend on it. So each test fails by
//! chance once in 10⁹ runs.

use crate::support::{Client, engine};
use std::collections::HashMap;
use tidemark_engine::{Call, Protocol, Reply, command};

/// Values that chi-square exceeds once in 10⁹ times, by degrees of freedom.
const CRITICAL: [(usize, f64); 5] = [(1, 37.32), (15, 73.63), (49, 133.28), (99, 207.90), (199, 342.84)];

/// The number of classes that members are counted in if there are too many to count each.
const CLASSES: usize = 100;

/// Sizes on both sides of the change from a block to a table, and of several growths.
const SIZES: [usize; 6] = [1, 2, 16, 200, 10_000, 1_000_000];

/// Checks counts that are expected to be equal: they must differ no more than chance explains.
/// `correction` is the variance of independent draws divided by that of these draws: more than 1
/// for draws without replacement.
fn check(what: &str, counts: &[u64], correction: f64) {
    let drawn: u64 = counts.iter().sum();
    let expected = drawn as f64 / counts.len() as f64;
    assert!(expected >= 20.0, "{what}: {expected} expected of each are too few for the test");
    if counts.len() == 1 {
        return;
    }
    let statistic: f64 =
        counts.iter().map(|&count| (count as f64 - expected).powi(2) / expected).sum::<f64>() * correction;
    let degrees = counts.len() - 1;
    let critical = CRITICAL.iter().find(|(of, _)| *of == degrees).expect("a critical value").1;
    let (least, most) = (counts.iter().min(), counts.iter().max());
    println!(
        "{what}: chi-square {statistic:.1} of at most {critical}, counts from {least:?} to {most:?}, {expected} expected"
    );
    assert!(statistic < critical, "{what}: chi-square {statistic} of at most {critical}: {counts:?}");
}

/// Runs commands and counts the elements of their answers.
struct Draws<'e> {
    client: &'e Client<'e>,
    reply: Reply,
}

impl<'e> Draws<'e> {
    fn new(client: &'e Client<'e>) -> Self {
        Self { client, reply: Reply::new(Protocol::Resp2) }
    }

    fn run(&mut self, args: &[&[u8]]) -> &[u8] {
        let command = command::resolve(args).expect("a command");
        self.reply.truncate(0);
        let call = Call { command, args, db: 0, now_us: self.client.now_us };
        self.client.engine.execute(&call, &mut self.reply);
        self.reply.bytes()
    }

    /// Runs a line and counts the elements `member:N` of its answer by `N`.
    fn count(&mut self, line: &str, counts: &mut HashMap<usize, u64>) {
        let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let answer = String::from_utf8(self.run(&args).to_vec()).expect("text");
        assert!(!answer.starts_with('-'), "{line}: {answer}");
        for number in answer.split("\r\n").filter_map(|word| word.strip_prefix("member:")) {
            *counts.entry(number.parse().expect("a number")).or_default() += 1;
        }
    }

    /// Adds or removes the members with these numbers, a thousand per command.
    fn change(&mut self, command: &[&str], numbers: impl Iterator<Item = usize>, around: [&str; 2]) {
        let numbers: Vec<usize> = numbers.collect();
        for numbers in numbers.chunks(1000) {
            let members: Vec<String> = numbers.iter().map(|number| format!("member:{number}")).collect();
            let mut args: Vec<&[u8]> = command.iter().map(|word| word.as_bytes()).collect();
            for member in &members {
                let words = [around[0], member, around[1]];
                args.extend(words.iter().filter(|word| !word.is_empty()).map(|word| word.as_bytes()));
            }
            assert!(!self.run(&args).starts_with(b"-"), "{command:?}");
        }
    }
}

/// Counts the numbers below `size`, in classes if these are many.
fn classes(counts: &HashMap<usize, u64>, size: usize) -> Vec<u64> {
    let mut classes = vec![0; if size <= 200 { size } else { CLASSES }];
    for (number, count) in counts {
        assert!(*number < size, "{number} was not there");
        let class = number * classes.len() / size;
        classes[class] += count;
    }
    classes
}

/// A kind of value whose elements are drawn.
struct Kind {
    name: &'static str,
    add: &'static [&'static str],
    /// Words before and after each element.
    around: [&'static str; 2],
    remove: &'static [&'static str],
    draw: &'static str,
}

const KINDS: [Kind; 3] = [
    Kind {
        name: "set",
        add: &["SADD", "k"],
        around: ["", ""],
        remove: &["SREM", "k"],
        draw: "SRANDMEMBER k",
    },
    Kind {
        name: "hash",
        add: &["HSET", "k"],
        around: ["", "v"],
        remove: &["HDEL", "k"],
        draw: "HRANDFIELD k",
    },
    Kind {
        name: "sorted set",
        add: &["ZADD", "k"],
        around: ["1", ""],
        remove: &["ZREM", "k"],
        draw: "ZRANDMEMBER k",
    },
];

/// Draws elements one by one, with repeats and without, and checks each way.
fn check_draws(draws: &mut Draws<'_>, kind: &Kind, size: usize, what: &str) {
    let name = kind.name;
    let total = size.min(CLASSES * 2) * 200;
    let mut counts = HashMap::new();
    (0..total.min(20_000)).for_each(|_| draws.count(kind.draw, &mut counts));
    check(&format!("{name} of {size}{what}, one by one"), &classes(&counts, size), 1.0);

    let mut counts = HashMap::new();
    draws.count(&format!("{} -{total}", kind.draw), &mut counts);
    check(&format!("{name} of {size}{what}, {total} with repeats"), &classes(&counts, size), 1.0);

    let mut counts = HashMap::new();
    let few = (size / 20).clamp(1, 50);
    (0..total / few).for_each(|_| draws.count(&format!("{} -{few}", kind.draw), &mut counts));
    check(&format!("{name} of {size}{what}, {few} with repeats"), &classes(&counts, size), 1.0);

    // For so many of a million elements, the command would pass over all of them, which takes too
    // long.
    let samples = if size > 10_000 { [few, few] } else { [few, size.div_ceil(2)] };
    for wanted in samples.into_iter().filter(|wanted| *wanted < size) {
        let mut counts = HashMap::new();
        let rounds = (total / wanted).max(100);
        (0..rounds).for_each(|_| draws.count(&format!("{} {wanted}", kind.draw), &mut counts));
        let correction = (size - 1) as f64 / (size - wanted) as f64;
        check(&format!("{name} of {size}{what}, {wanted} different"), &classes(&counts, size), correction);
    }
}

#[test]
fn each_element_of_a_collection_is_drawn_equally_often() {
    for kind in &KINDS {
        for size in SIZES {
            let engine = engine();
            let client = Client::new(&engine);
            let mut draws = Draws::new(&client);
            draws.change(kind.add, 0..size, kind.around);
            check_draws(&mut draws, kind, size, "");
        }
    }
}

#[test]
fn each_element_is_drawn_equally_often_after_most_were_removed() {
    for kind in &KINDS {
        // Of 10,000 elements, 200 or 16 remain, which is about where a table shrinks. Of a million,
        // 10,000 remain.
        for (before, after) in [(10_000, 200), (10_000, 16), (10_000, 2), (10_000, 1), (1_000_000, 10_000)] {
            let engine = engine();
            let client = Client::new(&engine);
            let mut draws = Draws::new(&client);
            draws.change(kind.add, 0..before, kind.around);
            draws.change(kind.remove, after..before, ["", ""]);
            check_draws(&mut draws, kind, after, &format!(" left of {before}"));
        }
    }
}

#[test]
fn each_member_is_popped_equally_often() {
    for size in [2, 16, 200] {
        let engine = engine();
        let client = Client::new(&engine);
        let mut draws = Draws::new(&client);
        // Sets of 2 and 16 members are then tables as well.
        draws.change(&["SADD", "k"], 0..1000, ["", ""]);
        draws.change(&["SREM", "k"], size..1000, ["", ""]);
        for wanted in ["", " 1", " 5"] {
            let popped = if wanted == " 5" { 5 } else { 1 };
            if popped >= size {
                continue;
            }
            let mut counts = HashMap::new();
            for _ in 0..size * 100 / popped {
                let before = counts.clone();
                draws.count(&format!("SPOP k{wanted}"), &mut counts);
                let gone = counts.iter().filter(|(number, count)| before.get(*number) != Some(*count));
                let gone: Vec<usize> = gone.map(|(number, _)| *number).collect();
                assert_eq!(gone.len(), popped);
                draws.change(&["SADD", "k"], gone.into_iter(), ["", ""]);
            }
            let correction = (size - 1) as f64 / (size - popped) as f64;
            check(&format!("SPOP of {size},{wanted}"), &classes(&counts, size), correction);
        }
    }
    // Members popped from a large set are spread as evenly.
    for size in [10_000, 1_000_000] {
        let engine = engine();
        let client = Client::new(&engine);
        let mut draws = Draws::new(&client);
        draws.change(&["SADD", "k"], 0..size, ["", ""]);
        let mut counts = HashMap::new();
        (0..2500).for_each(|_| draws.count("SPOP k", &mut counts));
        draws.count("SPOP k 2500", &mut counts);
        let correction = (size - 1) as f64 / (size - 5000) as f64;
        check(&format!("SPOP of {size}"), &classes(&counts, size), correction);
    }
}

#[test]
fn each_key_is_found_equally_often() {
    for size in SIZES {
        let engine = engine();
        let client = Client::new(&engine);
        let mut draws = Draws::new(&client);
        draws.change(&["MSET"], 0..size, ["", "v"]);
        let check_keys = |draws: &mut Draws<'_>, size: usize, what: &str| {
            let mut counts = HashMap::new();
            (0..size.min(CLASSES * 2) * 100).for_each(|_| draws.count("RANDOMKEY", &mut counts));
            check(&format!("RANDOMKEY of {size}{what}"), &classes(&counts, size), 1.0);
        };
        check_keys(&mut draws, size, "");
        if size >= 200 {
            draws.change(&["DEL"], 200..size, ["", ""]);
            check_keys(&mut draws, 200, &format!(" left of {size}"));
            draws.change(&["DEL"], 16..200, ["", ""]);
            check_keys(&mut draws, 16, &format!(" left of {size}"));
        }
    }
}

#[test]
fn keys_that_have_expired_do_not_change_how_often_others_are_found() {
    // Half of the keys have expired, nearly all, or all but two or one. In the last cases hardly
    // any choice hits a live key.
    for (expired, live) in [(200, 200), (5_000, 16), (20_000, 2), (20_000, 1)] {
        let engine = engine();
        let mut client = Client::new(&engine);
        let mut draws = Draws::new(&client);
        draws.change(&["MSET"], 0..live + expired, ["", "v"]);
        for number in live..live + expired {
            let answer = client.run(&format!("PEXPIRE member:{number} 10"));
            assert_eq!(answer, ":1");
        }
        client.sleep_ms(10);
        let mut draws = Draws::new(&client);
        let mut counts = HashMap::new();
        let rounds = live as u64 * 100;
        (0..rounds).for_each(|_| draws.count("RANDOMKEY", &mut counts));
        let found: u64 = counts.values().sum();
        assert_eq!(
            found, rounds,
            "a key that is there is found each time, of {live} beside {expired} expired ones"
        );
        check(&format!("RANDOMKEY of {live} beside {expired}"), &classes(&counts, live), 1.0);
    }
    let engine = engine();
    let mut client = Client::new(&engine);
    client.run("SET k v PX 10");
    client.sleep_ms(10);
    assert_eq!(client.run("RANDOMKEY"), "$-1");
}
