//! `ONCE`: a repeated command is answered and not executed, on every machine that has the log.

use crate::support;
use crate::support::commands::{Generator, Line, Random, Times, shown as shown_line, writes};
use crate::support::members::{GroupMember, replicate};
use crate::support::{Client, START_US, apply_from, for_each_record, replayed, shown, words};
use proptest::prelude::*;
use tidemark_engine::change::Changes;
use tidemark_engine::command::{self, flags};
use tidemark_engine::record::level;
use tidemark_engine::{Call, Engine, Executed, OnceName, Protocol, Reply, Terms, WatchedKeys};
use tidemark_log::{Lsn, MemoryStorage};

const HOUR_US: u64 = 3_600_000_000;

/// A client that numbers its commands.
struct Numbering<'e> {
    engine: &'e Engine,
    session: &'static str,
    protocol: Protocol,
    now_us: u64,
}

impl<'e> Numbering<'e> {
    fn new(engine: &'e Engine, session: &'static str) -> Self {
        Self { engine, session, protocol: Protocol::Resp2, now_us: START_US }
    }

    fn run(&self, number: u64, line: &str) -> String {
        self.execute(number, line).0
    }

    fn execute(&self, number: u64, line: &str) -> (String, Executed<'e>) {
        let words = words(line);
        let args: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        let command = command::resolve(&args).expect("a command");
        let call = Call { command, args: &args, db: 0, now_us: self.now_us };
        let mut reply = Reply::new(self.protocol);
        let executed = self.engine.execute_once(self.name(number), &call, Terms::default(), &mut reply);
        (shown(reply.bytes()), executed)
    }

    fn transaction(&self, number: u64, watch: Option<&WatchedKeys>, lines: &[&str]) -> String {
        let words: Vec<Vec<String>> = lines.iter().map(|line| words(line)).collect();
        let args: Vec<Vec<&[u8]>> =
            words.iter().map(|words| words.iter().map(String::as_bytes).collect()).collect();
        let calls: Vec<Call<'_>> = args
            .iter()
            .map(|args| {
                let command = command::resolve(args).expect("a command");
                Call { command, args, db: 0, now_us: self.now_us }
            })
            .collect();
        let (mut reply, name) = (Reply::new(self.protocol), self.name(number));
        let terms = Terms::default();
        self.engine.execute_transaction_once(name, &calls, watch, self.now_us, terms, &mut reply);
        shown(reply.bytes())
    }

    fn name(&self, number: u64) -> OnceName<'static> {
        OnceName { session: self.session.as_bytes(), number }
    }
}

#[test]
fn a_repetition_gets_the_answer_and_changes_nothing() {
    let engine = support::engine();
    let (client, other) = (Numbering::new(&engine, "s"), Client::new(&engine));
    other.run("SADD set a b c d e f g h");
    for (number, line) in [(1, "INCR n"), (2, "SPOP set"), (3, "DEL absent"), (4, "LPUSH n x")] {
        let first = client.run(number, line);
        let appended = engine.log().appended();
        other.run("INCR n");
        assert_eq!(client.run(number, line), first, "{line}");
        assert_eq!(engine.log().appended(), appended.next(), "{line}: there is no second record");
    }
    assert_eq!(client.run(5, "INCR n"), ":6");
    assert_eq!(other.run("SCARD set"), ":7");
    assert!(client.run(4, "LPUSH n x").starts_with("-WRONGTYPE"), "a failure is an answer");
    let another = Numbering::new(&engine, "another");
    assert_eq!(another.run(1, "INCR n"), ":7", "each session has numbers of its own");
}

#[test]
fn the_record_of_a_change_has_its_number() {
    let engine = support::engine();
    let client = Numbering::new(&engine, "s");
    for (number, line, changes) in
        [(1, "INCR n", 2), (2, "DEL absent", 1), (3, "HSET n f v", 1), (4, "GETDEL n", 2)]
    {
        let before = engine.log().appended();
        let (answer, executed) = client.execute(number, line);
        assert_eq!(executed.lsn, Some(before.next()), "{line}: {answer}");
        for_each_record(&engine, before.next(), |record| {
            let of_record: Result<Vec<_>, _> = Changes::of(record).expect("a record about data").collect();
            assert_eq!(of_record.expect("they are sound").len(), changes, "{line}");
        });
        let (_, executed) = client.execute(number, line);
        assert_eq!((executed.lsn, executed.durable), (None, true), "a repetition waits for what it shows");
        assert_eq!(engine.newest_shown_by_session(b"s"), before.next());
    }
}

#[test]
fn a_number_belongs_to_one_command() {
    let engine = support::engine();
    let client = Numbering::new(&engine, "s");
    assert_eq!(client.run(1, "SET k 1"), "+OK");
    for other in ["SET k 2", "SET k 1 KEEPTTL", "DEL k"] {
        let answer = client.run(1, other);
        assert!(answer.starts_with("-ONCE_OTHER number 1 of session 's'"), "{other}: {answer}");
    }
    assert!(client.transaction(1, None, &["SET k 1"]).starts_with("-ONCE_OTHER"));
    assert_eq!(client.run(1, "set k 1"), "+OK", "how the name is written does not matter");
    assert_eq!(Client::new(&engine).run("GET k"), "$1 1");
}

#[test]
fn a_window_of_numbers_is_known() {
    let engine = support::engine();
    let client = Numbering::new(&engine, "s");
    assert_eq!(client.run(300, "INCR n"), ":1");
    assert_eq!(client.run(173, "INCR n"), ":2", "an earlier command may arrive later");
    assert_eq!(client.run(173, "INCR n"), ":2");
    let lost = client.run(172, "INCR n");
    assert!(lost.starts_with("-ONCE_LOST whether number 172 of session 's'"), "{lost}");
    assert_eq!(client.run(301, "INCR n"), ":3");
    assert!(client.run(173, "INCR n").starts_with("-ONCE_LOST"), "the window has moved on");
    assert_eq!(Client::new(&engine).run("GET n"), "$1 3");
}

#[test]
fn an_answer_that_is_too_long_is_not_kept_and_its_command_is_not_repeated() {
    let engine = support::engine();
    let client = Numbering::new(&engine, "s");
    let value = "v".repeat(100_000);
    Client::new(&engine).run(&format!("SET k {value}"));
    assert_eq!(client.run(1, "GETSET k new"), format!("$100000 {value}"));
    let answer = client.run(1, "GETSET k new");
    assert!(answer.starts_with("-ONCE_DONE number 1 of session 's' was executed"), "{answer}");
    assert_eq!(Client::new(&engine).run("GET k"), "$3 new");
}

#[test]
fn an_answer_is_given_in_the_protocol_of_the_connection() {
    let engine = support::engine();
    let mut client = Numbering::new(&engine, "s");
    client.protocol = Protocol::Resp3;
    assert_eq!(client.run(1, "ZADD z INCR 1.5 m"), ",1.5");
    assert_eq!(client.run(2, "GETDEL absent"), "_");
    client.protocol = Protocol::Resp2;
    assert_eq!(client.run(1, "ZADD z INCR 1.5 m"), "$3 1.5");
    assert_eq!(client.run(2, "GETDEL absent"), "$-1");
    assert_eq!(client.run(3, "GETDEL absent"), "$-1");
    client.protocol = Protocol::Resp3;
    assert_eq!(client.run(3, "GETDEL absent"), "_");
}

#[test]
fn moves_of_a_counter_are_in_the_record() {
    let engine = support::engine();
    let (client, other) = (Numbering::new(&engine, "s"), Client::new(&engine));
    other.expect(&[("COUNTER.CREATE c", ":1"), ("COUNTER.CREATE q LIMIT 100 EXACT 10", ":1")]);
    other.run("COUNTER.ADD c 5");
    assert_eq!(client.run(1, "COUNTER.ADD c 2"), ":7");
    assert_eq!(client.run(2, "COUNTER.ADD q 3"), ":3");
    assert_eq!(client.run(3, "LIMIT.CHECK q AMOUNT 2"), "*5 :1 :100 :95 :-1 :-1");
    assert_eq!(client.run(4, "COUNTER.ADD c -7"), ":0");
    for engine in [&engine, &replayed(&engine)] {
        let (client, other) = (Numbering::new(engine, "s"), Client::new(engine));
        assert_eq!(client.run(1, "COUNTER.ADD c 2"), ":7");
        assert_eq!((other.run("COUNTER.GET c"), other.run("COUNTER.GET q")), (":0".into(), ":5".into()));
    }
}

#[test]
fn a_transaction_is_executed_once() {
    let engine = support::engine();
    let (client, other) = (Numbering::new(&engine, "s"), Client::new(&engine));
    let lines = ["INCR n", "GET n", "LPUSH n x", "SPOP absent"];
    let answer = client.transaction(1, None, &lines);
    assert!(answer.starts_with("*4 :1 $1 1 -WRONGTYPE"), "{answer}");
    other.run("INCR n");
    assert_eq!(client.transaction(1, None, &lines), answer);
    assert_eq!(client.transaction(2, None, &[]), "*0");
    assert_eq!(client.transaction(2, None, &[]), "*0");

    let mut watched = WatchedKeys::new();
    engine.watch(&mut watched, 0, b"n", START_US);
    other.run("INCR n");
    let attempt = |number, watched| client.transaction(number, watched, &["SET n 0"]);
    assert_eq!(attempt(3, Some(&watched)), "*-1");
    assert_eq!(attempt(3, None), "*-1", "the attempt has ended for ever");
    assert_eq!(attempt(4, None), "*1 +OK");
    engine.unwatch(&watched);
}

#[test]
fn blocked_clients_are_served_by_what_is_executed_once() {
    let engine = support::engine();
    let client = Numbering::new(&engine, "s");
    let (_, executed) = Client::new(&engine).execute("BLPOP list 0");
    let (served, answers) = std::sync::mpsc::channel();
    let waiting = executed.into_blocked().expect("it waits");
    waiting.wait(move |delivery| served.send(delivery).expect("heard"), |_| ());
    assert_eq!(client.run(1, "RPUSH list a b"), ":2");
    assert_eq!(shown(&answers.try_recv().expect("it is served").reply), "*2 $4 list $1 a");
    assert_eq!(client.run(1, "RPUSH list a b"), ":2");
    assert_eq!(Client::new(&engine).run("LRANGE list 0 -1"), "*1 $1 b");
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn threads_that_send_the_same_numbers_execute_each_once() {
    const NUMBERS: u64 = 500;
    let engine = support::engine();
    let line = |number: u64| format!("INCR key:{}", number % 7);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let client = Numbering::new(&engine, "s");
                for number in 1..=NUMBERS {
                    let answer = client.run(number, &line(number));
                    assert!(answer.starts_with(':') || answer.starts_with("-ONCE_LOST"), "{answer}");
                }
            });
        }
    });
    let reader = Client::new(&engine);
    let count = |key: u64| (1..=NUMBERS).filter(|number| number % 7 == key).count().to_string();
    for key in 0..7 {
        assert!(reader.run(&format!("GET key:{key}")).ends_with(&format!(" {}", count(key))), "key:{key}");
    }
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn sessions_outlive_every_key() {
    let engine = support::engine();
    let (client, other) = (Numbering::new(&engine, "s"), Client::new(&engine));
    let without = engine.digest();
    assert_eq!(client.run(1, "INCR n"), ":1");
    assert_eq!(other.run("DBSIZE"), ":1", "a session is no key");
    assert_eq!(other.run("FLUSHALL"), "+OK");
    assert_ne!(engine.digest(), without, "the digest has the session");
    assert_eq!(client.run(1, "INCR n"), ":1");
    assert_eq!(client.run(2, "INCR n"), ":1");
    assert!(other.run("SELECT 16").starts_with('-') || other.run("COPY n m DB 16").starts_with('-'));
}

#[test]
fn a_session_ends_a_day_after_its_last_number() {
    let engine = support::engine();
    let mut client = Numbering::new(&engine, "s");
    assert_eq!(client.run(200, "INCR n"), ":1");
    client.now_us += 23 * HOUR_US;
    assert_eq!(client.run(201, "INCR n"), ":2");
    client.now_us += 23 * HOUR_US;
    assert_eq!(client.run(200, "INCR n"), ":1");
    client.now_us += HOUR_US;
    assert_eq!(client.run(200, "INCR n"), ":3", "the session begins again");
    assert_eq!(replayed(&engine).digest(), engine.digest());
    client.now_us += 24 * HOUR_US;
    engine.expire_due(client.now_us, 10);
    assert_eq!(engine.session_count(), 0);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn there_is_a_limit_of_sessions() {
    let engine = support::engine();
    engine.keyspace().limit_sessions(2);
    let [one, two, three] = ["one", "two", "three"].map(|name| Numbering::new(&engine, name));
    assert_eq!((one.run(1, "INCR n"), two.run(1, "INCR n")), (":1".into(), ":2".into()));
    let refused = three.run(1, "INCR n");
    assert!(
        refused.starts_with("-ONCE_FULL there are 2 sessions, and once-max-sessions allows 2"),
        "{refused}"
    );
    assert_eq!(one.run(2, "INCR n"), ":3", "sessions that are there go on");
    engine.keyspace().limit_sessions(3);
    assert_eq!(three.run(1, "INCR n"), ":4", "what was refused is not executed, and may be repeated");
}

#[test]
fn what_the_log_refuses_is_not_executed_under_its_number() {
    let (leader, follower) = (GroupMember::new(), GroupMember::new());
    leader.lead(START_US);
    replicate(&leader, &[&follower]);
    let there = Numbering::new(&follower.engine, "s");
    assert!(there.run(1, "INCR n").contains("does not lead its group"));
    assert_eq!(Numbering::new(&leader.engine, "s").run(1, "INCR n"), ":1");
    replicate(&leader, &[&follower]);
}

#[test]
fn a_group_whose_members_may_not_know_the_note_executes_nothing_under_a_number() {
    let leader = GroupMember::of_first_level(MemoryStorage::new());
    leader.lead(START_US);
    let client = Numbering::new(&leader.engine, "s");
    let refused = client.run(1, "INCR n");
    let words = "'once' needs records of level 2, and the cluster writes them up to level 1";
    assert!(refused.contains(words), "{refused}");
    assert!(leader.write().is_none(), "nothing is logged");
    leader.engine.raise_level(level::ONCE);
    assert_eq!(client.run(1, "INCR n"), ":1");
    leader.engine.raise_level(level::FIRST);
    assert_eq!(client.run(2, "INCR n"), ":2", "a level never falls");
    assert!(leader.write().is_some());
}

#[test]
fn the_next_leader_answers_what_the_last_one_executed() {
    let (leader, follower) = (GroupMember::new(), GroupMember::new());
    leader.lead(START_US);
    replicate(&leader, &[&follower]);
    let client = Numbering::new(&leader.engine, "s");
    assert_eq!((client.run(1, "INCR n"), client.run(2, "INCR n")), (":1".into(), ":2".into()));
    replicate(&leader, &[&follower]);
    assert_eq!(follower.engine.digest(), leader.engine.digest());
    leader.step_down();
    follower.lead(START_US);
    replicate(&follower, &[&leader]);
    let mut client = Numbering::new(&follower.engine, "s");
    assert_eq!((client.run(2, "INCR n"), client.run(3, "INCR n")), (":2".into(), ":3".into()));
    // A session is there until a record removes it.
    client.now_us += 24 * HOUR_US;
    assert_eq!(client.run(3, "INCR n"), ":4");
    replicate(&follower, &[&leader]);
    assert_eq!(follower.engine.digest(), leader.engine.digest());
}

#[test]
fn a_snapshot_has_the_sessions() {
    let engine = support::engine();
    let client = Numbering::new(&engine, "s");
    for number in 1..=200 {
        client.run(number, "INCR n");
    }
    let mut snapshot = engine.snapshot();
    let (lsn, digest) = (snapshot.lsn(), engine.digest());
    // It is changed before the walk has been there.
    assert_eq!(client.run(201, "INCR n"), ":201");
    let loaded = support::engine();
    let loader = loaded.load(START_US);
    while let Some(frame) = snapshot.next_frame() {
        loader.load_frame(&frame).expect("a frame loads");
    }
    loader.finish().expect("nothing is missing");
    assert_eq!(loaded.digest(), digest, "a snapshot has the sessions");
    apply_from(&engine, lsn.next(), &loaded);
    assert_eq!(loaded.digest(), engine.digest());
    let client = Numbering::new(&loaded, "s");
    assert_eq!((client.run(74, "INCR n"), client.run(201, "INCR n")), (":74".into(), ":201".into()));
}

/// Runs random commands under numbers, some of them several times, and beside it each once without a
/// number. Compares the answers and the states.
fn check(seed: u64) {
    let (engine, model) = (support::engine(), support::engine());
    let (mut generator, mut dice) = (Generator::new(seed, Times::Near, START_US / 1000), Random::new(!seed));
    let mut now_us = START_US;
    let mut sent: Vec<(u64, Line, u64, Vec<u8>)> = Vec::new();
    for number in 1..=400 {
        now_us += dice.below(20_000);
        generator.now_ms = now_us / 1000;
        let line = generator.line();
        let args: Vec<&[u8]> = line.iter().map(Vec::as_slice).collect();
        let Ok(command) = command::resolve(&args) else { continue };
        if !writes(command) || command.is(flags::BLOCKING) {
            continue;
        }
        let call = Call { command, args: &args, db: 0, now_us };
        let mut expected = Reply::new(Protocol::Resp2);
        // Moves of counters are in the record, as with `DURABLE`.
        let terms = Terms { durable: true, ..Terms::default() };
        model.execute_as(&call, terms, &mut expected);
        generator.hear(expected.bytes());
        let execute = |number, call: &Call<'_>| {
            let mut reply = Reply::new(Protocol::Resp2);
            let name = OnceName { session: b"s", number };
            engine.execute_once(name, call, Terms::default(), &mut reply);
            reply.take()
        };
        assert_eq!(execute(number, &call), expected.bytes(), "{}", shown_line(&line));
        sent.push((number, line.clone(), now_us, expected.take()));
        // Numbers are left out where nothing is written. Everything in the window is kept, because the
        // answers are short.
        let window = sent.iter().rev().take_while(|(sent, ..)| number - sent < 128).count();
        while dice.once_in(2) {
            let (number, line, _, answer) = &sent[sent.len() - 1 - dice.below(window as u64) as usize];
            let args: Vec<&[u8]> = line.iter().map(Vec::as_slice).collect();
            let command = command::resolve(&args).expect("it was executed");
            let again = execute(*number, &Call { command, args: &args, db: 0, now_us });
            if !again.starts_with(b"-ONCE_DONE") {
                assert_eq!(&again, answer, "{} again", shown_line(line));
            }
        }
    }
    assert_eq!(replayed(&engine).digest(), engine.digest());
    // Without the session, the states are equal.
    let end_us = now_us + 30 * 24 * HOUR_US;
    for engine in [&engine, &model] {
        while engine.next_deadline().is_some_and(|at_ms| at_ms <= end_us / 1000) {
            engine.expire_due(end_us, 1000);
        }
    }
    assert_eq!((engine.session_count(), engine.digest()), (0, model.digest()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn commands_that_are_repeated_leave_what_each_leaves_once(seed: u64) {
        check(seed);
    }
}

#[test]
fn records_of_sessions_that_make_no_sense_are_refused() {
    use tidemark_engine::record::{encode_command, kind};
    let refused = |db: u8, args: &[&[u8]]| {
        let mut payload = Vec::new();
        encode_command(&mut payload, db, 650, args);
        let record =
            tidemark_log::Record { lsn: Lsn(1), time_us: START_US, kind: kind::COMMAND, payload: &payload };
        support::engine().apply(&record, &mut Reply::default()).expect_err("it is refused").to_string()
    };
    let sound: [&[u8]; 4] = [b"s", b"1", b"12345678", b"\x02:1\r\n"];
    assert!(refused(0, &sound).contains("sessions are in database 16, not 0"));
    for (at, wrong) in [(1, &b"0"[..]), (1, b"x"), (2, b"1234567"), (3, b""), (3, b"\x01:1\r\n")] {
        let mut args = sound;
        args[at] = wrong;
        let answer = refused(16, &args);
        assert!(answer.contains("what is noted for a session is malformed"), "{answer}");
    }
}
