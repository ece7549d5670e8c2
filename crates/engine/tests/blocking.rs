//! Clients that wait for lists: who is served, in which order, exactly once.

mod support;
use std::sync::{Arc, Mutex};
use support::{Client, START_US, engine, replayed, shown, words};
use tidemark_engine::{Call, Engine, Protocol, Reply, Waiter, command};

/// A client's wait, and what was delivered to it.
struct Waiting {
    waiter: Arc<Waiter>,
    delivered: Arc<Mutex<Vec<String>>>,
}

impl Waiting {
    /// What the client has got, if anything; never twice.
    fn answer(&self) -> Option<String> {
        let delivered = self.delivered.lock().expect("no test panics while it holds the lock");
        assert!(delivered.len() <= 1, "one answer to one command: {delivered:?}");
        delivered.first().cloned()
    }
}

/// Runs a command that has nothing to take, and waits as the server does.
fn wait(engine: &Engine, line: &str) -> Waiting {
    wait_in(engine, line, Protocol::Resp2, || ())
}

/// As [`wait`]; `between` happens after the command has looked and before the client is in the queue.
fn wait_in(engine: &Engine, line: &str, protocol: Protocol, between: impl FnOnce()) -> Waiting {
    let words = words(line);
    let args: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
    let command = command::resolve(&args).expect("a command");
    let call = Call { command, args: &args, db: 0, now_us: START_US };
    let mut reply = Reply::new(protocol);
    let executed = engine.execute(&call, &mut reply);
    assert!(reply.is_empty() && executed.lsn.is_none(), "{line} waits and says nothing: {reply:?}");
    between();
    let delivered = Arc::new(Mutex::new(Vec::new()));
    let to = Arc::clone(&delivered);
    let deliver = move |delivery: tidemark_engine::Delivery| {
        to.lock().expect("no test panics while it holds the lock").push(shown(&delivery.reply));
    };
    let block = executed.block.expect("the command waits");
    let waiter = engine.wait(&call, block, &reply, Box::new(deliver));
    Waiting { waiter, delivered }
}

fn transaction(engine: &Engine, lines: &[&str]) -> String {
    let words: Vec<Vec<String>> = lines.iter().map(|line| words(line)).collect();
    let args: Vec<Vec<&[u8]>> =
        words.iter().map(|words| words.iter().map(String::as_bytes).collect()).collect();
    let calls: Vec<Call<'_>> = args
        .iter()
        .map(|args| Call {
            command: command::resolve(args).expect("a command"),
            args,
            db: 0,
            now_us: START_US,
        })
        .collect();
    let mut reply = Reply::new(Protocol::Resp2);
    let executed = engine.execute_transaction(&calls, None, START_US, &mut reply);
    assert!(executed.block.is_none(), "nobody waits in a transaction");
    shown(reply.bytes())
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
fn a_push_that_slips_in_before_the_queue_is_not_missed() {
    let engine = engine();
    let waiting = wait_in(&engine, "BLPOP a b 0", Protocol::Resp2, || {
        assert_eq!(Client::new(&engine).run("RPUSH b 1"), ":1");
    });
    assert_eq!(waiting.answer().as_deref(), Some("*2 $1 b $1 1"));
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
fn nobody_waits_in_a_transaction() {
    let engine = engine();
    let lines = ["BLPOP l 0", "BRPOP l 0", "BLMPOP 0 1 l LEFT", "BLMOVE l m LEFT LEFT 0", "BRPOPLPUSH l m 0"];
    assert_eq!(transaction(&engine, &lines), "*5 *-1 *-1 *-1 $-1 $-1");
}

/// Keys of different shards, so that serving locks more than the shard that got something.
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
fn a_served_move_serves_who_waits_for_its_destination() {
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
fn moves_in_a_circle_end_when_everybody_is_served() {
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
fn a_key_of_another_type_serves_nobody() {
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
    assert_eq!((first.waiter.timeout_ms(), second.waiter.timeout_ms()), (Some(500), None));
    assert!(engine.stop_waiting(&first.waiter), "whoever stops it first answers the null array");
    assert!(!engine.stop_waiting(&first.waiter), "and nobody else does");
    client.expect(&[("RPUSH l a", ":1")]);
    assert_eq!(first.answer(), None);
    assert_eq!(second.answer().as_deref(), Some("*2 $1 l $1 a"));
}

#[test]
fn a_waiting_client_gets_its_own_protocol() {
    let engine = engine();
    let waiting = wait_in(&engine, "BLMOVE l m LEFT LEFT 0", Protocol::Resp3, || ());
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
