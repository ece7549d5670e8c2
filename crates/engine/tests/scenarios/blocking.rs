//! Clients that wait for lists: which client is served, in which order, exactly once.

use crate::support;
use crate::support::{Client, START_US, engine, replayed, shown, words};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tidemark_engine::record::{Cursor, LoggedCommand};
use tidemark_engine::{Call, Engine, Protocol, Reply, Waiter, command};
use tidemark_log::Lsn;

/// A client's wait, and the answers that were delivered to it.
pub(crate) struct Waiting {
    pub(crate) waiter: Arc<Waiter>,
    pub(crate) timeout_ms: Option<u64>,
    delivered: Arc<Mutex<Vec<String>>>,
}

impl Waiting {
    /// The client's answer, if it has one. Panics if it has two.
    pub(crate) fn answer(&self) -> Option<String> {
        let delivered = self.delivered.lock().expect("no test panics while it holds the lock");
        assert!(delivered.len() <= 1, "one answer to one command: {delivered:?}");
        delivered.first().cloned()
    }
}

/// Runs a command that blocks, and waits as the server does.
pub(crate) fn wait(engine: &Engine, line: &str) -> Waiting {
    wait_as(engine, 0, Protocol::Resp2, line, || ())
}

/// As [`wait`], in a database and a protocol. Calls `when_served` when the client gets its answer.
pub(crate) fn wait_as(
    engine: &Engine,
    db: u8,
    protocol: Protocol,
    line: &str,
    when_served: impl Fn() + Send + Sync + 'static,
) -> Waiting {
    let words = words(line);
    let args: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
    let command = command::resolve(&args).expect("a command");
    let call = Call { command, args: &args, db, now_us: START_US };
    let mut reply = Reply::new(protocol);
    let executed = engine.execute(&call, &mut reply);
    assert!(reply.is_empty() && executed.lsn.is_none(), "{line} waits and says nothing: {reply:?}");
    let delivered = Arc::new(Mutex::new(Vec::new()));
    let to = Arc::clone(&delivered);
    let deliver = move |delivery: tidemark_engine::Delivery| {
        to.lock().expect("no test panics while it holds the lock").push(shown(&delivery.reply));
        when_served();
    };
    let blocked = executed.into_blocked().expect("the command waits");
    let timeout_ms = blocked.timeout_ms();
    Waiting { waiter: blocked.wait(deliver, |_| ()), timeout_ms, delivered }
}

fn transaction(engine: &Engine, lines: &[&str]) -> String {
    support::transaction(engine, None, lines)
}

#[test]
fn a_list_that_has_elements_is_popped_at_once_and_logged_as_a_pop() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("RPUSH l a b c d e f", ":6"),
        ("BLPOP none l 0", "*2 $1 l $1 a"),
        ("BRPOP none l 0", "*2 $1 l $1 f"),
        ("BLMOVE l m LEFT RIGHT 0", "$1 b"),
        ("BRPOPLPUSH l m 0", "$1 e"),
        ("BLMPOP 0 2 none l LEFT COUNT 5", "*2 $1 l *2 $1 c $1 d"),
        ("LRANGE m 0 -1", "*2 $1 e $1 b"),
    ]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn a_change_that_a_pause_waits_for_serves_who_waits() {
    let engine = engine();
    let keys: Vec<String> = (0..300).map(|number| format!("l:{number}")).collect();
    let waiting: Vec<Waiting> = keys.iter().map(|key| wait(&engine, &format!("BLPOP {key} 0"))).collect();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                engine.pause_changes(START_US).expect("no counter has moved");
                engine.resume_changes();
            }
        });
        let client = Client::new(&engine);
        for (key, waiting) in keys.iter().zip(&waiting) {
            // It is refused while the pause is there.
            while client.run(&format!("RPUSH {key} a")).starts_with("-TRYAGAIN") {}
            assert_eq!(waiting.answer(), Some(format!("*2 ${} {key} $1 a", key.len())));
        }
        is_done.store(true, Ordering::Relaxed);
    });
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn clients_are_served_in_the_order_in_which_they_came() {
    let engine = engine();
    let client = Client::new(&engine);
    let (first, second, third) =
        (wait(&engine, "BLPOP l 0"), wait(&engine, "BRPOP l 0"), wait(&engine, "BLPOP l 0"));
    client.expect(&[("RPUSH l a b", ":2")]);
    assert_eq!(first.answer().as_deref(), Some("*2 $1 l $1 a"));
    assert_eq!(second.answer().as_deref(), Some("*2 $1 l $1 b"));
    assert_eq!(third.answer(), None);
    client.expect(&[("EXISTS l", ":0"), ("RPUSH l c d", ":2"), ("LRANGE l 0 -1", "*1 $1 d")]);
    assert_eq!(third.answer().as_deref(), Some("*2 $1 l $1 c"));
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn a_client_that_waits_for_several_keys_is_served_once() {
    let engine = engine();
    let client = Client::new(&engine);
    let waiting = wait(&engine, "BLPOP a b a c 0");
    client.expect(&[
        ("RPUSH b 1 2", ":2"),
        ("RPUSH a 3", ":1"),
        ("LRANGE b 0 -1", "*1 $1 2"),
        ("LLEN a", ":1"),
    ]);
    assert_eq!(waiting.answer().as_deref(), Some("*2 $1 b $1 1"));
    assert!(!engine.stop_waiting(&waiting.waiter), "the wait is already over");
}

#[test]
fn the_key_that_got_something_first_serves_first() {
    let engine = engine();
    let waiting = wait(&engine, "BLPOP b a 0");
    assert_eq!(transaction(&engine, &["RPUSH a 1", "RPUSH b 2"]), "*2 :1 :1");
    assert_eq!(waiting.answer().as_deref(), Some("*2 $1 a $1 1"));
    assert_eq!(Client::new(&engine).run("LLEN b"), ":1");
}

#[test]
fn no_client_comes_between_a_transaction_and_its_waiters() {
    let engine = Arc::new(engine());
    let others_pop = Arc::clone(&engine);
    let first = wait_as(&engine, 0, Protocol::Resp2, "BLPOP a 0", move || {
        assert_eq!(
            Client::new(&others_pop).run("LPOP b"),
            "$-1",
            "the waiter for b was served in the same step"
        );
    });
    let second = wait(&engine, "BLPOP b 0");
    assert_eq!(transaction(&engine, &["RPUSH a 1", "RPUSH b 2"]), "*2 :1 :1");
    assert_eq!(first.answer().as_deref(), Some("*2 $1 a $1 1"));
    assert_eq!(second.answer().as_deref(), Some("*2 $1 b $1 2"));
}

#[test]
fn no_push_is_missed_between_the_check_and_the_queue() {
    let engine = engine();
    let words = words("BLPOP l 0");
    let args: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
    let command = command::resolve(&args).expect("a command");
    let call = Call { command, args: &args, db: 0, now_us: START_US };
    let blocked =
        engine.execute(&call, &mut Reply::default()).into_blocked().expect("there is nothing to take");
    std::thread::scope(|scope| {
        let pusher = scope.spawn(|| Client::new(&engine).run("RPUSH l a"));
        let (to, served) = std::sync::mpsc::channel();
        blocked.wait(move |it| to.send(shown(&it.reply)).expect("heard"), |_| ());
        assert_eq!(served.recv().as_deref(), Ok("*2 $1 l $1 a"));
        assert_eq!(pusher.join().expect("it pushes"), ":1");
    });
    // A command that blocks, but whose client never waits, leaves nothing in the queue.
    drop(engine.execute(&call, &mut Reply::default()));
    assert_eq!(Client::new(&engine).run("RPUSH l b"), ":1");
    assert_eq!(Client::new(&engine).run("LLEN l"), ":1");
}

#[test]
fn a_transaction_serves_when_it_is_over() {
    let engine = engine();
    let waiting = wait(&engine, "BLPOP l 0");
    assert_eq!(transaction(&engine, &["RPUSH l a", "DEL l"]), "*2 :1 :1");
    assert_eq!(waiting.answer(), None);
    assert_eq!(transaction(&engine, &["RPUSH l a", "LPUSH l b", "LLEN l"]), "*3 :1 :2 :2");
    assert_eq!(waiting.answer().as_deref(), Some("*2 $1 l $1 b"));
}

#[test]
fn no_command_blocks_in_a_transaction() {
    let engine = engine();
    let lines = ["BLPOP l 0", "BRPOP l 0", "BLMPOP 0 1 l LEFT", "BLMOVE l m LEFT LEFT 0", "BRPOPLPUSH l m 0"];
    assert_eq!(transaction(&engine, &lines), "*5 *-1 *-1 *-1 $-1 $-1");
}

/// Keys of different shards, so that serving locks more than the shard that received the element.
fn keys_of_different_shards(engine: &Engine) -> [String; 3] {
    let mut names = (0..).map(|n| format!("list:{n}"));
    let mut next = |taken: &[String]| {
        let shard = |name: &str| engine.keyspace().shard_of(name.as_bytes());
        let free = |name: &String| taken.iter().all(|other| shard(other) != shard(name));
        names.find(free).expect("there are many shards")
    };
    let first = next(&[]);
    let second = next(std::slice::from_ref(&first));
    let third = next(&[first.clone(), second.clone()]);
    [first, second, third]
}

#[test]
fn a_move_reaches_a_key_of_another_shard() {
    let engine = engine();
    let [source, destination, _] = keys_of_different_shards(&engine);
    let waiting = wait(&engine, &format!("BLMOVE {source} {destination} RIGHT LEFT 0"));
    let client = Client::new(&engine);
    client.run(&format!("RPUSH {source} a b"));
    assert_eq!(waiting.answer().as_deref(), Some("$1 b"));
    assert_eq!(client.run(&format!("LRANGE {destination} 0 -1")), "*1 $1 b");
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn a_served_move_serves_the_waiters_of_its_destination() {
    let engine = engine();
    let [a, b, c] = keys_of_different_shards(&engine);
    let last = wait(&engine, &format!("BLPOP {c} 0"));
    let second = wait(&engine, &format!("BRPOPLPUSH {b} {c} 0"));
    let first = wait(&engine, &format!("BLMOVE {a} {b} LEFT LEFT 0"));
    let client = Client::new(&engine);
    client.run(&format!("RPUSH {a} x"));
    assert_eq!(first.answer().as_deref(), Some("$1 x"));
    assert_eq!(second.answer().as_deref(), Some("$1 x"));
    assert_eq!(last.answer(), Some(format!("*2 ${} {c} $1 x", c.len())));
    client.expect(&[("DBSIZE", ":0")]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn a_move_is_served_whatever_brings_its_source() {
    let engine = engine();
    let [source, destination, third] = keys_of_different_shards(&engine);
    let client = Client::new(&engine);
    let other = Client { db: 1, ..Client::new(&engine) };
    let line = format!("BLMOVE {source} {destination} LEFT LEFT 0");
    // The command that creates the source, the key that holds the list before it, and the database
    // that receives it, in which the client waits.
    for (bring, before, db) in [
        (format!("RENAME {third} {source}"), &third, 0),
        (format!("RPOPLPUSH {third} {source}"), &third, 0),
        (format!("COPY {third} {source} DB 1"), &third, 1),
        (format!("MOVE {source} 1"), &source, 1),
        ("SWAPDB 0 1".to_owned(), &source, 1),
    ] {
        client.run("FLUSHALL");
        client.run(&format!("RPUSH {before} x"));
        let waiting = wait_as(&engine, db, Protocol::Resp2, &line, || ());
        client.run(&bring);
        assert_eq!(waiting.answer().as_deref(), Some("$1 x"), "{bring}");
        let owner = if db == 0 { &client } else { &other };
        assert_eq!(owner.run(&format!("LRANGE {destination} 0 -1")), "*1 $1 x", "{bring}");
        assert_eq!(replayed(&engine).digest(), engine.digest(), "{bring}");
    }
}

#[test]
fn a_transaction_serves_moves_from_all_of_its_keys() {
    let engine = engine();
    let [a, b, c] = keys_of_different_shards(&engine);
    let lines = [[&a, &b], [&b, &c], [&c, &a]].map(|[from, to]| format!("BLMOVE {from} {to} LEFT RIGHT 0"));
    let waiting = lines.each_ref().map(|line| wait(&engine, line));
    let pushes = [format!("RPUSH {a} 1"), format!("RPUSH {c} 3")];
    assert_eq!(transaction(&engine, &pushes.each_ref().map(String::as_str)), "*2 :1 :1");
    assert_eq!(
        waiting.each_ref().map(Waiting::answer),
        ["$1 1", "$1 1", "$1 3"].map(|it| Some(it.to_owned()))
    );
    let client = Client::new(&engine);
    assert_eq!(client.run(&format!("LRANGE {a} 0 -1")), "*1 $1 3");
    assert_eq!(client.run(&format!("LRANGE {c} 0 -1")), "*1 $1 1");
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn moves_in_a_cycle_end_when_all_waiters_are_served() {
    let engine = engine();
    let one = wait(&engine, "BLMOVE a b LEFT LEFT 0");
    let other = wait(&engine, "BLMOVE b a LEFT LEFT 0");
    let itself = wait(&engine, "BLMOVE a a LEFT RIGHT 0");
    let client = Client::new(&engine);
    client.run("RPUSH a x");
    for waiting in [one, other, itself] {
        assert_eq!(waiting.answer().as_deref(), Some("$1 x"));
    }
    client.expect(&[("LRANGE a 0 -1", "*1 $1 x"), ("EXISTS b", ":0")]);
}

#[test]
fn a_move_onto_another_type_fails_and_takes_nothing() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("SET s x");
    let (failing, next) = (wait(&engine, "BLMOVE l s LEFT LEFT 0"), wait(&engine, "BLPOP l 0"));
    client.expect(&[("RPUSH l a", ":1")]);
    let wrong_type = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    assert_eq!(failing.answer().as_deref(), Some(wrong_type));
    assert_eq!(next.answer().as_deref(), Some("*2 $1 l $1 a"));
    client.expect(&[("GET s", "$1 x"), ("EXISTS l", ":0")]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn several_elements_are_popped_for_one_client() {
    let engine = engine();
    let client = Client::new(&engine);
    let waiting = wait(&engine, "BLMPOP 0 2 a b RIGHT COUNT 2");
    client.expect(&[("RPUSH b 1 2 3", ":3"), ("LRANGE b 0 -1", "*1 $1 1")]);
    assert_eq!(waiting.answer().as_deref(), Some("*2 $1 b *2 $1 3 $1 2"));
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn a_key_of_another_type_serves_no_waiter() {
    let engine = engine();
    let client = Client::new(&engine);
    let waiting = wait(&engine, "BLPOP l 0");
    client.expect(&[("SET l x", "+OK")]);
    assert_eq!(waiting.answer(), None);
    client.expect(&[("DEL l", ":1"), ("RPUSH other a", ":1"), ("RENAME other l", "+OK"), ("EXISTS l", ":0")]);
    assert_eq!(waiting.answer().as_deref(), Some("*2 $1 l $1 a"));
}

#[test]
fn a_client_whose_time_is_up_is_passed_over() {
    let engine = engine();
    let client = Client::new(&engine);
    let (first, second) = (wait(&engine, "BLPOP l 0.5"), wait(&engine, "BLPOP l 0"));
    assert_eq!((first.timeout_ms, second.timeout_ms), (Some(500), None));
    assert!(engine.stop_waiting(&first.waiter), "the thread that stops it first answers the null array");
    assert!(!engine.stop_waiting(&first.waiter), "and no other thread does");
    client.expect(&[("RPUSH l a", ":1")]);
    assert_eq!(first.answer(), None);
    assert_eq!(second.answer().as_deref(), Some("*2 $1 l $1 a"));
}

#[test]
fn a_waiting_client_gets_its_own_protocol() {
    let engine = engine();
    let waiting = wait_as(&engine, 0, Protocol::Resp3, "BLMOVE l m LEFT LEFT 0", || ());
    let client = Client::new(&engine);
    client.expect(&[("SET m x", "+OK"), ("DEL m", ":1"), ("RPUSH l a", ":1")]);
    assert_eq!(waiting.answer().as_deref(), Some("$1 a"));
}

#[test]
fn every_element_pushed_by_several_threads_reaches_one_client() {
    const CLIENTS: usize = 400;
    let engine = engine();
    let waiting: Vec<Waiting> = (0..CLIENTS).map(|_| wait(&engine, "BLPOP a b 0")).collect();
    std::thread::scope(|scope| {
        for key in ["a", "b"] {
            let engine = &engine;
            scope.spawn(move || {
                let client = Client::new(engine);
                for n in 0..CLIENTS / 4 {
                    client.run(&format!("RPUSH {key} {key}{n}"));
                }
            });
        }
        scope.spawn(|| {
            for waiting in waiting.iter().rev().take(CLIENTS / 4) {
                engine.stop_waiting(&waiting.waiter);
            }
        });
    });
    let served: Vec<String> = waiting.iter().filter_map(Waiting::answer).collect();
    assert_eq!(served.len(), CLIENTS / 2, "one client for each element");
    let distinct: std::collections::HashSet<_> = served.iter().collect();
    assert_eq!(distinct.len(), served.len(), "no element twice");
    let client = Client::new(&engine);
    client.expect(&[("LLEN a", ":0"), ("LLEN b", ":0")]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

/// The elements in an answer: its words that start with `e:`.
fn elements(answer: &str) -> Vec<String> {
    answer.split(' ').filter(|word| word.starts_with("e:")).map(str::to_owned).collect()
}

/// Threads push to, pop from and join keys of all shards while clients wait to move elements
/// between them. There is no deadlock, and each element is in one place.
#[test]
fn moves_between_shards_lose_nothing_while_others_push_and_pop() {
    const MOVES: usize = 900;
    const PUSHES: usize = 500;
    let engine = engine();
    let keys: Vec<String> = (0..12).map(|n| format!("list:{n}")).collect();
    let waiting: Vec<Waiting> = (0..MOVES)
        .map(|n| (&keys[n % 12], &keys[(n * 7 + n / 12) % 12]))
        .map(|(from, to)| wait(&engine, &format!("BLMOVE {from} {to} LEFT RIGHT 0")))
        .collect();
    let popped = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let (engine, keys, waiting, popped) = (&engine, &keys, &waiting, &popped);
        for thread in 0..2 {
            scope.spawn(move || {
                let client = Client::new(engine);
                for n in 0..PUSHES {
                    client.run(&format!("RPUSH {} e:{thread}:{n}:a e:{thread}:{n}:b", keys[n % 11]));
                }
            });
            scope.spawn(move || {
                for n in 0..PUSHES {
                    let (one, other) = (&keys[n % 12], &keys[(n + 5) % 12]);
                    let lines =
                        [format!("LPUSH {one} e:{thread}:{n}:c"), format!("RPUSH {other} e:{thread}:{n}:d")];
                    transaction(engine, &lines.each_ref().map(String::as_str));
                }
            });
            scope.spawn(move || {
                let client = Client::new(engine);
                for n in 0..PUSHES {
                    let line = format!(
                        "LMPOP 3 {} {} {} LEFT",
                        keys[n % 12],
                        keys[(n + 3) % 12],
                        keys[(n + 7) % 12]
                    );
                    popped.lock().expect("no thread panics").extend(elements(&client.run(&line)));
                }
            });
        }
        scope.spawn(move || {
            for waiting in waiting.iter().rev().step_by(3) {
                engine.stop_waiting(&waiting.waiter);
            }
        });
    });
    let client = Client::new(&engine);
    let mut all = popped.into_inner().expect("no thread panics");
    for key in &keys {
        all.extend(elements(&client.run(&format!("LRANGE {key} 0 -1"))));
    }
    all.sort_unstable();
    let mut pushed: Vec<String> = (0..2 * PUSHES)
        .flat_map(|n| ["a", "b", "c", "d"].map(|last| format!("e:{}:{}:{last}", n / PUSHES, n % PUSHES)))
        .collect();
    pushed.sort_unstable();
    assert_eq!(all, pushed, "each element is in one place");
    for waiting in &waiting {
        assert_eq!(waiting.waiter.is_served(), waiting.answer().is_some());
    }
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

/// The pushes and pops in the log, in order: `Some(element)` for a push, `None` for a pop.
fn pushes_and_pops(engine: &Engine) -> Vec<Option<String>> {
    let log = engine.log();
    log.wait_durable(log.appended()).expect("memory does not fail");
    let mut replay = log.replay(log.floor().max(Lsn(1))).expect("the log is complete");
    let mut found = Vec::new();
    while let Some(batch) = replay.next_batch().expect("the log is sound") {
        for logged in batch {
            let command = LoggedCommand::decode(&mut Cursor::new(logged.payload)).expect("a command");
            let name = command::by_id(command.id).expect("a command of the table").name;
            found.push(match name {
                "rpush" => Some(String::from_utf8_lossy(command.args[1]).into_owned()),
                "lpop" => None,
                other => panic!("no client has sent {other}"),
            });
        }
    }
    found
}

#[test]
fn an_element_reaches_the_longest_waiting_client_first() {
    const CLIENTS: usize = 3000;
    const PUSHERS: usize = 2;
    let engine = engine();
    let waiting: Vec<Waiting> = (0..CLIENTS).map(|_| wait(&engine, "BLPOP l 0")).collect();
    let pushing = AtomicUsize::new(PUSHERS);
    std::thread::scope(|scope| {
        for pusher in 0..PUSHERS {
            let (engine, pushing) = (&engine, &pushing);
            scope.spawn(move || {
                let client = Client::new(engine);
                for n in 0..CLIENTS / PUSHERS {
                    assert_eq!(client.run(&format!("RPUSH l {pusher}:{n}")), ":1", "nothing is left over");
                }
                pushing.fetch_sub(1, Ordering::Release);
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                let client = Client::new(&engine);
                while pushing.load(Ordering::Acquire) > 0 {
                    assert_eq!(client.run("LPOP l"), "$-1", "others have waited longer");
                }
            });
        }
    });
    let history = pushes_and_pops(&engine);
    assert_eq!(history.len(), 2 * CLIENTS);
    for (waiting, records) in waiting.iter().zip(history.chunks_exact(2)) {
        let [Some(element), None] = records else { panic!("each pop stands behind its push: {records:?}") };
        assert_eq!(waiting.answer(), Some(format!("*2 $1 l ${} {element}", element.len())));
    }
    assert_eq!(replayed(&engine).digest(), engine.digest());
}
