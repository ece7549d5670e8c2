//! The same chosen and random commands go to Debian's `redis-server` and to Tidemark; both publish
//! the same keyspace events in the same order, except for the differences that
//! docs/keyspace-notifications.md names.

use crate::commands::{Generator, Line, Times, shown};
use crate::support::Server;
use crate::support::redis::{
    Redis, diverging, line_that_both_know, name_of, over_equal_scores, setting, without_our_words,
};
use crate::support::wire::{Pipeline, Value};
use std::time::Duration;

/// Commands that are sent before their answers are read.
const BLOCK: usize = 32;

/// Unexplained differences after which the test stops.
const ENOUGH: usize = 15;

/// Channel on which the number of the last command is published.
const MARK: &[u8] = b"mark";

/// A server that publishes events: a client that runs commands, and one that listens.
struct Side {
    port: u16,
    client: Pipeline,
    listener: Pipeline,
    marks: u64,
}

/// Answer of a command, and its events as `channel message`.
type Outcome = (Value, Vec<String>);

impl Side {
    fn new(port: u16, letters: &[u8]) -> Self {
        let connect = || Pipeline::connect(port).expect("a connection");
        let (mut client, mut listener) = (connect(), connect());
        let set = client.call(&[b"CONFIG", b"SET", b"notify-keyspace-events", letters]);
        assert_eq!(set.expect("an answer"), Value::Status("OK".into()));
        listener.call(&[b"PSUBSCRIBE", b"__key*@*__:*"]).expect("an answer");
        listener.call(&[b"SUBSCRIBE", MARK]).expect("an answer");
        Self { port, client, listener, marks: 0 }
    }

    /// Runs commands. After each, its number is published to the listener, which assigns events to
    /// commands.
    fn run(&mut self, lines: &[Line]) -> Vec<Outcome> {
        let first = self.marks;
        let mut requests = Vec::new();
        let mut in_transaction = false;
        for line in lines {
            requests.push(line.clone());
            in_transaction = match name_of(line).as_str() {
                "multi" => true,
                "exec" => false,
                _ => in_transaction,
            };
            if !in_transaction {
                requests.push(self.next_mark());
            }
        }
        self.client.send(&requests).expect("it takes commands");
        let mut outcomes = Vec::new();
        let mut marks = first;
        for request in &requests {
            let answer =
                self.client.read().unwrap_or_else(|error| panic!("{error} after {}", shown(request)));
            if request.get(1).is_some_and(|channel| channel == MARK) {
                marks += 1;
                if let Some((_, events)) = outcomes.last_mut() {
                    *events = self.events_before(marks);
                }
            } else {
                outcomes.push((answer, Vec::new()));
            }
        }
        outcomes
    }

    fn next_mark(&mut self) -> Line {
        self.marks += 1;
        vec![b"publish".to_vec(), MARK.to_vec(), self.marks.to_string().into()]
    }

    /// Returns the events before a mark.
    fn events_before(&mut self, mark: u64) -> Vec<String> {
        let (mut events, mark) = (Vec::new(), mark.to_string());
        loop {
            let message = self.listener.read().expect("messages come");
            let words: Vec<&[u8]> = message.elements().iter().map(Value::bytes).collect();
            match *words.as_slice() {
                [b"message", MARK, number] => {
                    assert_eq!(String::from_utf8_lossy(number), mark, "marks come in order");
                    return events;
                }
                [b"pmessage", _, channel, payload] => {
                    events.push(format!("{} {}", channel.escape_ascii(), payload.escape_ascii()));
                }
                _ => panic!("unexpected {message:?}"),
            }
        }
    }

    /// Returns the next `count` events, whenever they are published.
    fn next_events(&mut self, count: usize) -> Vec<String> {
        let read = |listener: &mut Pipeline| {
            let message = listener.read().expect("a message comes");
            let words: Vec<_> = message.elements().iter().map(|it| it.bytes().escape_ascii()).collect();
            format!("{} {}", words[2], words[3])
        };
        (0..count).map(|_| read(&mut self.listener)).collect()
    }
}

fn line(text: &str) -> Line {
    text.split_whitespace().map(|word| word.as_bytes().to_vec()).collect()
}

/// Redis and Tidemark.
struct Pair {
    ours: Side,
    theirs: Side,
    _server: Server,
    _redis: Redis,
    _directory: tempfile::TempDir,
}

impl Pair {
    fn new(letters: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let (server, redis) = (Server::start(directory.path(), &["--durability", "off"]), Redis::start());
        let (ours, theirs) =
            (Side::new(server.port, letters.as_bytes()), Side::new(redis.port, letters.as_bytes()));
        Self { ours, theirs, _server: server, _redis: redis, _directory: directory }
    }

    /// Runs commands on both sides and asserts that answers and events are the same.
    fn expect_same(&mut self, text: &str) {
        let lines: Vec<Line> = text.lines().map(line).filter(|line| !line.is_empty()).collect();
        let (ours, theirs) = (self.ours.run(&lines), self.theirs.run(&lines));
        for (line, ((answer, ours), (_, theirs))) in lines.iter().zip(ours.iter().zip(&theirs)) {
            assert!(!matches!(answer, Value::Error(_)), "{}: {answer:?}", shown(line));
            assert_eq!(ours, theirs, "{}", shown(line));
        }
    }
}

#[test]
fn chosen_commands_publish_the_events_of_redis() {
    let mut pair = Pair::new("KEg$lshzxnm");
    pair.expect_same(
        "SET k 1
         SET k 1 EX 100
         SET k 2 KEEPTTL GET
         SET other 2 GET
         SETEX k 100 1
         PSETEX k 100000 1
         SETNX k 1
         SETNX n 1
         GETSET k 1
         GETSET m 1
         GETDEL m
         GETDEL m
         GETEX k
         GETEX k PERSIST
         GETEX k EX 100
         GETEX k PERSIST
         GETEX m EX 100
         GETEX n PXAT 1
         INCR k
         DECRBY k 5
         INCRBYFLOAT k 1.5
         INCR i
         APPEND k x
         APPEND a x
         SETRANGE k 1 yy
         SETRANGE r 1 yy
         GETRANGE none 0 1
         STRLEN none
         MSET a 1 b 2 a 3
         MSETNX c 1 d 2
         MSETNX c 1 e 2
         LCS a none
         SETBIT s 7 1
         SETBIT s 7 1
         SETBIT s 700 0
         SETBIT t 0 0
         BITOP NOT u s
         BITOP AND u s none
         BITOP AND u none
         BITFIELD s SET u8 0 1 INCRBY u8 8 1
         BITFIELD s SET u8 0 1
         BITFIELD none GET u8 0
         BITFIELD_RO none GET u8 0
         BITCOUNT none
         DEL k a nothing
         UNLINK b c
         EXISTS none k none
         TOUCH none
         TYPE none
         TTL none
         EXPIRE none 10
         EXPIRE d 100
         EXPIRE d 50 GT
         PERSIST d
         PERSIST d
         EXPIREAT d 1
         OBJECT ENCODING none",
    );
    pair.expect_same(
        "FLUSHALL
         RPUSH l a b c d e f g
         LPUSHX l z
         LPUSHX none z
         LPOP l
         RPOP l 2
         LPOP l 0
         LPOP none
         LSET l 0 x
         LINSERT l AFTER x y
         LINSERT l AFTER nothing y
         LREM l 0 nothing
         LREM l 0 x
         LTRIM l 0 -1
         LTRIM l 1 -1
         LMOVE l l LEFT RIGHT
         LMOVE l m LEFT RIGHT
         RPOPLPUSH l m
         RPOPLPUSH l m
         RPOPLPUSH l m
         RPOPLPUSH l m
         LMPOP 2 none m RIGHT COUNT 100
         RPUSH l a b
         BLPOP none l 1
         BLMOVE l m LEFT LEFT 1
         BRPOPLPUSH m l 1
         BLMPOP 1 1 l LEFT
         LTRIM l 0 0
         RPUSH l b a c
         SORT l ALPHA STORE o
         SORT none STORE o
         SORT none
         LTRIM l 5 9
         LRANGE l 0 -1
         HSET h f 1 g 2
         HSET h f 1
         HMSET h f 1
         HSETNX h f 1
         HINCRBY h f 1
         HINCRBYFLOAT h f 0.5
         HINCRBY new f 1
         HDEL h nothing
         HDEL h f
         HDEL h f g
         HGETALL h",
    );
    pair.expect_same(
        "FLUSHALL
         SADD s a b c
         SADD s a
         SREM s nothing
         SREM s a
         SMOVE s t b
         SMOVE s t c
         SMOVE s t c
         SADD s b c
         SMOVE s t b
         SMOVE t t b
         SPOP t
         SPOP t 9
         SADD t a
         SPOP t
         SADD s x y
         SINTERSTORE d s s
         SINTERSTORE d s none
         SUNIONSTORE d s none
         SDIFFSTORE d s none
         SDIFFSTORE d s s
         SDIFFSTORE d s s
         SINTER none s nothing
         ZADD z 1 a 2 b 3 c 4 d 5 e 6 f
         ZADD z 1 a
         ZADD z XX 1 none
         ZADD z XX CH 7 a
         ZADD z INCR 1 a
         ZADD none XX 1 a
         ZINCRBY z 0 a
         ZINCRBY z 1 b
         ZREM z nothing
         ZREM z a
         ZPOPMIN z
         ZPOPMAX z 0
         BZPOPMAX z 1
         ZREMRANGEBYSCORE z 100 200
         ZREMRANGEBYRANK z 0 0
         ZREMRANGEBYSCORE z -inf +inf
         ZADD z 0 a 0 b
         ZREMRANGEBYLEX z [a [a
         ZMPOP 2 none z MIN COUNT 5
         ZADD z 1 a 2 b
         ZRANGESTORE d z 0 -1
         ZRANGESTORE d z 5 9
         ZUNIONSTORE d 2 z none
         ZINTERSTORE d 1 z
         ZDIFFSTORE d 2 z none
         ZINTERSTORE d 2 z none
         ZINTERSTORE d 2 z none
         ZRANGE none 0 -1",
    );
    pair.expect_same(
        "FLUSHALL
         SET k 1 EX 100
         RENAME k k
         RENAME k l
         SET k 1
         RENAME k l
         SET k 1
         RENAMENX k l
         RENAMENX k m
         COPY l k
         COPY l k
         COPY l k REPLACE
         COPY l k DB 3
         COPY none k
         MOVE l 3
         MOVE l 4
         SELECT 3
         MOVE k 0
         MOVE k 5
         SWAPDB 3 5
         FLUSHDB
         SELECT 0
         MULTI
         SET a 1
         RPUSH b 1
         LPOP b
         EXEC
         MULTI
         GET none
         DEL a
         EXEC",
    );
}

#[test]
fn waiting_clients_publish_the_events_of_redis() {
    let mut pair = Pair::new("KEAn");
    for (waiting, push) in [
        ("BLPOP none l 0", "RPUSH l a"),
        ("BRPOP l 0", "RPUSH l a b"),
        ("BLMOVE l m LEFT RIGHT 0", "RPUSH l a"),
        ("BRPOPLPUSH l m 0", "RPUSH l a b c"),
        ("BLMPOP 0 1 q LEFT COUNT 9", "RPUSH q a b"),
        ("BZPOPMIN z 0", "ZADD z 1 a 2 b"),
        ("BZMPOP 0 1 y MAX COUNT 9", "ZADD y 1 a 2 b"),
        ("BLPOP r 0", "RENAME other r"),
        ("BLPOP s 0", "COPY other s"),
    ] {
        let outcomes = [&mut pair.ours, &mut pair.theirs].map(|side| {
            side.run(&[line("FLUSHALL"), line("RPUSH other a")]);
            let mut waiter = Pipeline::connect(side.port).expect("a connection");
            waiter.send(&[line(waiting)]).expect("it takes commands");
            until_blocked(&mut side.client);
            let outcomes = side.run(&[line(push)]);
            waiter.read().expect("it is served");
            outcomes.into_iter().flat_map(|(_, events)| events).collect::<Vec<_>>()
        });
        assert_eq!(outcomes[0], outcomes[1], "{waiting} and then {push}");
    }
}

fn until_blocked(client: &mut Pipeline) {
    for _ in 0..5000 {
        let info = client.call(&[b"INFO", b"clients"]).expect("an answer");
        if String::from_utf8_lossy(info.bytes()).contains("blocked_clients:1") {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    panic!("no client waits");
}

#[test]
fn expiry_publishes_the_events_of_redis() {
    let mut pair = Pair::new("KEAn");
    for (set, then) in
        [("SET k 1 PX 5", ""), ("SETEX k 1 1", ""), ("SET k 1 PX 5", "SET k 2"), ("SET k 1 PX 5", "INCR k")]
    {
        let lines: Vec<Line> = [set, then].into_iter().filter(|it| !it.is_empty()).map(line).collect();
        let outcomes = [&mut pair.ours, &mut pair.theirs].map(|side| {
            let mut events: Vec<String> =
                side.run(&lines[..1]).into_iter().flat_map(|(_, events)| events).collect();
            // The removal, on access or by the background expiry; in both forms.
            events.extend(side.next_events(2));
            events.extend(side.run(&lines[1..]).into_iter().flat_map(|(_, events)| events));
            side.run(&[line("FLUSHALL")]);
            events
        });
        assert_eq!(outcomes[0], outcomes[1], "{set} and then {then}");
    }
}

/// Returns random commands, some in transactions, with the commands that keep the states equal.
fn next_block(generator: &mut Generator) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    if generator.random.once_in(8) {
        lines.push(vec![b"select".to_vec(), generator.random.pick(&["0", "0", "1", "2"]).into()]);
    }
    while lines.len() < BLOCK {
        let together = if generator.random.once_in(20) { 1 + generator.random.below(6) } else { 0 };
        if together > 0 {
            lines.push(vec![b"multi".to_vec()]);
        }
        for _ in 0..together.max(1) {
            let line = line_that_both_know(generator);
            let name = name_of(&line);
            let key = diverging(&name, &line).or(line.get(1).cloned().filter(|_| name == "spop"));
            lines.extend(over_equal_scores(line, generator));
            lines.extend(key.map(|key| vec![b"del".to_vec(), key]));
        }
        if together > 0 {
            lines.push(vec![b"exec".to_vec()]);
        }
    }
    lines
}

/// Returns the events of a command that are compared; `lines` are the commands that it ran.
fn compared<'a>(lines: &[Line], answer: &Value, events: &'a [String]) -> Vec<&'a str> {
    let failed = |answer: &Value| matches!(answer, Value::Error(_));
    let misses_differ = failed(answer)
        || answer.elements().iter().any(failed)
        || lines.iter().any(|line| matches!(name_of(line).as_str(), "sort" | "sort_ro" | "xread"));
    let may_grow = lines.iter().any(|line| line.iter().any(|word| word.eq_ignore_ascii_case(b"fail")));
    events
        .iter()
        .map(String::as_str)
        .filter(|event| !(misses_differ && event.contains("keymiss")))
        .filter(|event| !(may_grow && event.contains("setbit")))
        .collect()
}

#[test]
fn random_commands_publish_the_events_of_redis() {
    let commands = setting("TIDEMARK_DIFFERENTIAL_EVENTS", 20_000);
    let seed = setting("TIDEMARK_DIFFERENTIAL_SEED", 1);
    // Without expiry, whose time each server chooses.
    let mut pair = Pair::new("KEg$lshznm");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    let mut generator = Generator::new(seed, Times::FarOrPast, now.as_millis() as u64);
    let (mut run, mut compared_events, mut differences) = (0, 0, Vec::new());
    while run < commands && differences.len() < ENOUGH {
        let lines = next_block(&mut generator);
        let known: Vec<Line> = lines.iter().map(without_our_words).collect();
        let (ours, theirs) = (pair.ours.run(&lines), pair.theirs.run(&known));
        let mut begin = 0;
        for (index, ((answer, ours), (_, theirs))) in ours.iter().zip(&theirs).enumerate() {
            let together = &lines[begin..=index];
            if name_of(&together[0]) == "multi" && name_of(&lines[index]) != "exec" {
                continue;
            }
            let (ours, theirs) = (compared(together, answer, ours), compared(together, answer, theirs));
            compared_events += ours.len();
            if ours != theirs {
                let shown: Vec<String> = together.iter().map(|line| shown(line)).collect();
                differences.push(format!("{}\n  ours:   {ours:?}\n  theirs: {theirs:?}", shown.join("; ")));
            }
            begin = index + 1;
        }
        run += lines.len() as u64;
    }
    println!("{run} commands, {compared_events} events, seed {seed}");
    assert!(
        differences.is_empty(),
        "events differ. Once more: TIDEMARK_DIFFERENTIAL_SEED={seed} cargo test -p tidemark --test scenarios \
         differential_events::\n{}",
        differences.join("\n")
    );
    assert!(compared_events as u64 > commands / 4, "too few to mean anything: {compared_events}");
}
