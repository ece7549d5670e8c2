//! Counters: what they count, which records they write, and what a crash may do to them.

use crate::support;
use crate::support::{
    Client, START_US, apply_from, engine, engine_with_log, execute_transaction, log, replayed, transaction,
};
use std::sync::Arc;
use tidemark_engine::keyspace::CounterDefaults;
use tidemark_engine::watch::{Filter, Read};
use tidemark_engine::{Engine, Protocol};
use tidemark_log::{Durability, Log, Lsn};

/// The number of records in the log.
fn records(engine: &Engine) -> u64 {
    let log = engine.log();
    log.records_between(log.recovered(), log.appended())
}

/// A field of `COUNTER.STATE`.
fn field(client: &Client<'_>, key: &str, name: &str) -> String {
    let state = client.run(&format!("COUNTER.STATE {key}"));
    let words: Vec<&str> = state.split(' ').collect();
    let at = words.iter().position(|word| *word == name).expect(name);
    let value = words[at + 1];
    if value.starts_with('$') && value != "$-1" { words[at + 2].to_owned() } else { value.to_owned() }
}

#[test]
fn a_counter_is_a_type_of_its_own() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("COUNTER.CREATE likes", ":1"),
        ("TYPE likes", "+counter"),
        ("OBJECT ENCODING likes", "$7 counter"),
        ("EXISTS likes", ":1"),
        ("GET likes", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("SET text x", "+OK"),
        ("COUNTER.ADD text 1", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("COUNTER.GET text", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("COUNTER.DROP text", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("SCAN 0 TYPE counter COUNT 100", "*2 $1 0 *1 $5 likes"),
        ("COUNTER.LIST 0 COUNT 100", "*2 $1 0 *1 $5 likes"),
        ("COUNTER.LIST 0 COUNT 100 MATCH x*", "*2 $1 0 *0"),
        (
            "COUNTER.LIST 0 TYPE string",
            "-ERR syntax error: COUNTER.LIST takes MATCH or COUNT after '0', not 'TYPE'",
        ),
        ("COUNTER.DROP likes", ":1"),
        ("COUNTER.DROP likes", ":0"),
        ("COUNTER.GET likes", "$-1"),
        ("COUNTER.STATE likes", "$-1"),
    ]);
}

#[test]
fn a_plain_counter_goes_up_and_down_without_bounds() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("COUNTER.ADD likes 5", ":5"),
        ("COUNTER.ADD likes -8", ":-3"),
        ("COUNTER.GET likes", ":-3"),
        ("COUNTER.TAKE likes 10", "*2 :1 $-1"),
        ("COUNTER.REFUND likes 100", ":100"),
        ("COUNTER.GET likes", ":-93"),
        ("COUNTER.ADD likes x", "-ERR value is not an integer or out of range: COUNTER.ADD takes a whole number (delta) after 'likes', not 'x'"),
        ("COUNTER.ADD likes 9223372036854775807", "-ERR the amount is out of range"),
        ("COUNTER.ADD likes 1 WHATEVER", "-ERR syntax error: COUNTER.ADD takes DURABLE after '1', not 'WHATEVER'"),
        ("COUNTER.GET likes", ":-93"),
    ]);
}

#[test]
fn a_quota_admits_its_limit_and_takes_back_what_was_taken() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("COUNTER.TAKE quota", "-ERR no such counter, COUNTER.CREATE makes one"),
        ("COUNTER.REFUND quota", "-ERR no such counter, COUNTER.CREATE makes one"),
        ("COUNTER.LIMIT quota 5", "-ERR no such counter, COUNTER.CREATE makes one"),
        ("COUNTER.CREATE quota LIMIT 10", ":1"),
        ("COUNTER.TAKE quota", "*2 :1 :9"),
        ("COUNTER.TAKE quota 10", "*2 :0 :9"),
        ("COUNTER.TAKE quota 9", "*2 :1 :0"),
        ("COUNTER.TAKE quota 0", "*2 :1 :0"),
        ("COUNTER.TAKE quota -1", "-ERR value is out of range, must be positive: COUNTER.TAKE takes a whole number (units) after 'quota', not '-1'"),
        ("COUNTER.COMMIT quota", ":10"),
        ("COUNTER.COMMIT quota", ":0"),
        ("COUNTER.REFUND quota 4", ":4"),
        ("COUNTER.REFUND quota 100", ":6"),
        ("COUNTER.GET quota", ":0"),
        ("COUNTER.REFUND quota 1", ":0"),
        ("COUNTER.TAKE quota 8", "*2 :1 :2"),
        ("COUNTER.LIMIT quota 5", "+OK"),
        ("COUNTER.TAKE quota 1", "*2 :0 :0"),
        ("COUNTER.ADD quota 2", ":10"),
        ("COUNTER.LIMIT quota none", "+OK"),
        ("COUNTER.TAKE quota 100", "*2 :1 $-1"),
        ("COUNTER.LIMIT quota -1", "-ERR a limit is NONE or from 0 to 4611686018427387904 units, not -1"),
    ]);
}

#[test]
fn the_state_says_all_there_is() {
    let engine = engine();
    let mut client = Client::resp3(&engine);
    client.expect(&[("COUNTER.CREATE q LIMIT 100 RELAXED 50", ":1"), ("COUNTER.TAKE q 10", "*2 :1 :90")]);
    client.sleep_ms(7);
    client.expect(&[(
        "COUNTER.STATE q",
        "%13 $4 kind $5 quota $5 limit :100 $9 available :90 $8 position :10 $9 committed :0 $4 open :10 \
         $8 reserved :0 $7 promise $7 relaxed $3 cap :50 $6 maxage :1000 $4 high :25 $3 low :13 $3 age :7",
    )]);
    client.expect(&[("COUNTER.CREATE e LIMIT 100 EXACT 20", ":1"), ("COUNTER.TAKE e 3", "*2 :1 :97")]);
    client.expect(&[(
        "COUNTER.STATE e",
        "%12 $4 kind $5 quota $5 limit :100 $9 available :97 $8 position :3 $9 committed :3 $4 open :0 \
         $8 reserved :0 $7 promise $5 exact $5 block :20 $6 maxage :60000 $5 doubt :0 $3 age :0",
    )]);
}

#[test]
fn terms_are_given_or_those_of_the_server_or_kept() {
    let engine = engine();
    let client = Client::new(&engine);
    engine.set_counter_defaults(CounterDefaults { cap: 80, max_age_ms: 70, idle_ms: 60, interval_ms: 10 });
    client.expect(&[
        ("COUNTER.CREATE a NX", ":1"),
        ("COUNTER.CREATE a NX LIMIT 4", ":0"),
        ("COUNTER.CREATE b XX", ":0"),
        ("COUNTER.CREATE a XX NX", "-ERR syntax error: an option of COUNTER.CREATE is out of range, given twice or excluded by another: COUNTER.CREATE key [LIMIT <units | NONE>] [RELAXED cap | EXACT block] [HIGH units] [LOW units] [MAXAGE milliseconds] [IDLE milliseconds] [SETTLE milliseconds] [NX | XX]"),
        ("COUNTER.CREATE a LIMIT", "-ERR syntax error: COUNTER.CREATE ends after 'LIMIT', where it takes a whole number (units) or NONE"),
        ("COUNTER.CREATE a RELAXED 0", "-ERR RELAXED takes a number from 1 to 4611686018427387904, not 0"),
        ("COUNTER.CREATE a RELAXED 5 HIGH 6", "-ERR HIGH must be at most the cap, and LOW at most HIGH"),
        ("COUNTER.CREATE a EXACT 5 HIGH 2", "-ERR HIGH and LOW are of relaxed counters only"),
    ]);
    let terms = |key: &str| ["limit", "promise", "maxage"].map(|name| field(&client, key, name)).join(" ");
    assert_eq!((terms("a"), field(&client, "a", "cap")), ("$-1 relaxed :70".into(), ":80".into()));
    assert_eq!((field(&client, "a", "high"), field(&client, "a", "low")), (":40".into(), ":20".into()));
    // Options that the command does not name keep their values.
    client.expect(&[
        ("COUNTER.ADD a 7", ":7"),
        ("COUNTER.CREATE a LIMIT 9 HIGH 10", ":0"),
        ("COUNTER.GET a", ":7"),
    ]);
    assert_eq!((terms("a"), field(&client, "a", "cap")), (":9 relaxed :70".into(), ":80".into()));
    assert_eq!((field(&client, "a", "high"), field(&client, "a", "low")), (":10".into(), ":5".into()));
    // Another promise has its own thresholds.
    client.expect(&[("COUNTER.CREATE a EXACT 6", ":0"), ("COUNTER.GET a", ":7")]);
    assert_eq!((terms("a"), field(&client, "a", "block")), (":9 exact :60".into(), ":6".into()));
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn churn_that_cancels_reaches_the_log_only_by_its_net() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("COUNTER.CREATE presence");
    let before = records(&engine);
    for _ in 0..10_000 {
        client.run("COUNTER.ADD presence 1");
        client.run("COUNTER.ADD presence -1");
    }
    assert_eq!(records(&engine), before, "nothing to say");
    client.expect(&[("COUNTER.ADD presence 3", ":3"), ("COUNTER.COMMIT presence", ":3")]);
    assert_eq!(records(&engine), before + 1);
    assert_eq!(Client::new(&replayed(&engine)).run("COUNTER.GET presence"), ":3");
}

#[test]
fn what_is_uncommitted_never_exceeds_the_cap() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[("COUNTER.CREATE c RELAXED 10 HIGH 10", ":1")]);
    for step in [3, 3, 3, 3, -9, -9, -9, 25, -100, 1] {
        client.run(&format!("COUNTER.ADD c {step}"));
        let truth: i64 = client.run("COUNTER.GET c")[1..].parse().expect("a number");
        let again = replayed(&engine);
        let logged: i64 = Client::new(&again).run("COUNTER.GET c")[1..].parse().expect("a number");
        assert!((truth - logged).abs() <= 10, "{truth} {logged}");
    }
}

#[test]
fn at_the_upper_threshold_the_command_commits() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[("COUNTER.CREATE c RELAXED 100 HIGH 5", ":1"), ("COUNTER.ADD c 4", ":4")]);
    assert_eq!(field(&client, "c", "committed"), ":0");
    client.run("COUNTER.ADD c 1");
    assert_eq!(field(&client, "c", "committed"), ":5");
    client.run("COUNTER.ADD c -5");
    assert_eq!(field(&client, "c", "committed"), ":0");
}

#[test]
fn counters_are_committed_when_their_time_has_come() {
    let engine = engine();
    let mut client = Client::new(&engine);
    client.expect(&[
        ("COUNTER.CREATE busy RELAXED 100 HIGH 90 LOW 10 MAXAGE 1000", ":1"),
        ("COUNTER.CREATE calm RELAXED 100 HIGH 90 LOW 10 MAXAGE 1000", ":1"),
    ]);
    assert_eq!(engine.next_commit(), None, "counters at rest cost nothing");
    client.expect(&[("COUNTER.ADD calm 2", ":2"), ("COUNTER.ADD busy 9", ":9")]);
    assert_eq!(engine.next_commit(), Some(client.now_us / 1000 + 1000));
    client.run("COUNTER.ADD busy 1");
    assert_eq!(engine.next_commit(), Some(client.now_us / 1000 + 10), "at the next interval");

    client.sleep_ms(10);
    engine.commit_due(client.now_us, 100);
    assert_eq!([field(&client, "busy", "open"), field(&client, "calm", "open")], [":0", ":2"]);

    // The age counts from the first uncommitted change. Later changes do not reset it.
    client.sleep_ms(980);
    client.run("COUNTER.ADD calm 1");
    engine.commit_due(client.now_us, 100);
    assert_eq!(field(&client, "calm", "open"), ":3");
    client.sleep_ms(10);
    assert_eq!(field(&client, "calm", "age"), ":1000");
    assert_eq!(engine.commit_due(client.now_us, 100), None, "nothing is left to do");
    assert_eq!(field(&client, "calm", "open"), ":0");
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn a_change_that_was_cancelled_does_not_make_the_next_one_old() {
    let engine = engine();
    let mut client = Client::new(&engine);
    client.expect(&[
        ("COUNTER.CREATE c MAXAGE 1000", ":1"),
        ("COUNTER.ADD c 1", ":1"),
        ("COUNTER.ADD c -1", ":0"),
    ]);
    client.sleep_ms(900);
    client.run("COUNTER.ADD c 1");
    client.sleep_ms(100);
    let before = records(&engine);
    assert_eq!(engine.commit_due(client.now_us, 10), Some(client.now_us / 1000 + 900));
    assert_eq!(records(&engine), before);
    client.sleep_ms(900);
    engine.commit_due(client.now_us, 10);
    assert_eq!(field(&client, "c", "committed"), ":1");
}

#[test]
fn one_turn_commits_no_more_than_it_is_asked_to() {
    let engine = engine();
    let mut client = Client::new(&engine);
    (0..50).for_each(|n| drop(client.run(&format!("COUNTER.ADD c{n} 1"))));
    client.sleep_ms(1000);
    for left in [30, 10] {
        assert!(engine.commit_due(client.now_us, 20).is_some_and(|at| at <= client.now_us / 1000));
        assert_eq!(engine.counter_figures().exposure.counters, left);
    }
    assert_eq!(engine.commit_due(client.now_us, 20), None);
    assert_eq!(engine.counter_figures().exposure.counters, 0);
}

#[test]
fn counters_that_left_their_keys_do_no_harm_and_those_that_moved_are_found() {
    let engine = engine();
    let mut client = Client::new(&engine);
    for key in ["gone", "replaced", "old", "moved", "elsewhere", "copied", "expired"] {
        client.run(&format!("COUNTER.ADD {key} 5"));
    }
    client.expect(&[
        ("DEL gone", ":1"),
        ("SET replaced x", "+OK"),
        ("RENAME old new", "+OK"),
        ("MOVE moved 1", ":1"),
        ("COPY copied copy", ":1"),
        ("COUNTER.ADD copy 1", ":6"),
        ("PEXPIRE expired 500", ":1"),
        ("COUNTER.GET new", ":5"),
    ]);
    client.sleep_ms(1000);
    engine.expire_due(client.now_us, 100);
    assert_eq!(engine.commit_due(client.now_us, 100), None);
    let again = replayed(&engine);
    assert_eq!(again.digest(), engine.digest());
    let (again, other) = (Client::new(&again), Client { db: 1, ..Client::new(&again) });
    again.expect(&[
        ("COUNTER.GET new", ":5"),
        ("COUNTER.GET elsewhere", ":5"),
        ("COUNTER.GET copied", ":5"),
        ("COUNTER.GET copy", ":6"),
        ("EXISTS gone old moved expired", ":0"),
    ]);
    other.expect(&[("COUNTER.GET moved", ":5")]);
}

#[test]
fn databases_take_their_uncommitted_counters_with_them() {
    let engine = engine();
    let mut client = Client::new(&engine);
    client.expect(&[("COUNTER.ADD a 5", ":5"), ("SWAPDB 0 1", "+OK"), ("COUNTER.ADD b 2", ":2")]);
    client.sleep_ms(1000);
    engine.commit_due(client.now_us, 100);
    let again = replayed(&engine);
    assert_eq!(again.digest(), engine.digest());
    assert_eq!(Client { db: 1, ..Client::new(&again) }.run("COUNTER.GET a"), ":5");
    client.expect(&[("COUNTER.ADD b 2", ":4"), ("FLUSHALL", "+OK")]);
    assert_eq!(engine.counter_figures().exposure.counters, 0);
    assert_eq!(engine.commit_all(client.now_us), 0);
}

#[test]
fn an_exact_counter_reserves_before_it_grants() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[("COUNTER.CREATE e LIMIT 100 EXACT 20", ":1")]);
    for taken in 1..=100 {
        let (answer, executed) = client.execute("COUNTER.TAKE e 1");
        assert_eq!(answer, format!("*2 :1 :{}", 100 - taken));
        assert!(executed.durable && executed.lsn.is_some(), "the answer waits for the lease");
        let again = replayed(&engine);
        let logged: i64 = Client::new(&again).run("COUNTER.GET e")[1..].parse().expect("a number");
        assert!((taken..=taken + taken / 16 + 1).contains(&logged), "{taken} taken, {logged} in the log");
        assert!(logged <= 100, "nothing is reserved that cannot be granted");
    }
    client.expect(&[("COUNTER.TAKE e 1", "*2 :0 :0")]);
    // The counter first reserves units one by one. The more it has granted, the more it reserves at
    // once.
    assert!(records(&engine) < 45, "{} records", records(&engine));
    // One take of more than a block.
    client.expect(&[("COUNTER.REFUND e 70", ":70"), ("COUNTER.TAKE e 60", "*2 :1 :10")]);
    let committed: i64 = field(&client, "e", "committed")[1..].parse().expect("a number");
    assert!((91..=100).contains(&committed), "{committed}");
}

/// If no earlier record can make room for a change, the change is committed in its own record.
#[test]
fn an_exact_counter_that_goes_down_far_is_committed_at_once() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("COUNTER.CREATE e LIMIT 1000 EXACT 10", ":1"),
        ("COUNTER.TAKE e 1000", "*2 :1 :0"),
        ("COUNTER.REFUND e 500", ":500"),
    ]);
    let logged: i64 = Client::new(&replayed(&engine)).run("COUNTER.GET e")[1..].parse().expect("a number");
    assert!((500..=510).contains(&logged), "{logged}");
}

/// The commits of a watched counter emit the committed value, and a replay of the log gives the
/// same answers.
#[test]
fn watchers_see_what_is_committed() {
    let engine = engine();
    let mut client = Client::new(&engine);
    client.run("COUNTER.CREATE c RELAXED 100 HIGH 10 MAXAGE 500");
    client.run("COUNTER.ADD c 3");
    let filter = Filter::parse(&[]).expect("no operators");
    let read = Read::new(0, Protocol::Resp3, &[b"COUNTER.GET", b"c"], filter).expect("it can be watched");
    let subscribed = engine.subscribe(read, 0, client.now_us).expect("a beginning");
    assert_eq!(support::shown(&subscribed.answer), ":0", "three are not committed");
    for _ in 0..8 {
        client.run("COUNTER.ADD c 1");
    }
    client.run("COUNTER.ADD c -2");
    client.sleep_ms(600);
    engine.commit_due(client.now_us, 100);
    let mut emissions = Vec::new();
    subscribed.query.emissions_after(0, usize::MAX, &mut emissions).expect("all are retained");
    let answers: Vec<_> = emissions.iter().map(|emission| support::shown(&emission.answer)).collect();
    assert_eq!(answers, [":10", ":9"]);
    assert_eq!(client.run("COUNTER.GET c"), ":9");
}

/// Random moves with crashes in between, compared with sums.
///
/// A crash loses no more than the cap of a relaxed counter. An exact counter grants no more than
/// its limit over all lives together. It loses no more than what it reports as doubt, at most one
/// block in all.
#[test]
fn promises_are_kept_through_crashes() {
    for seed in 0..16u64 {
        let mut dice = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut roll = |sides: u64| {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            dice % sides
        };
        let (is_exact, units, limit) = (seed % 2 == 0, 1 + roll(60) as i64, 50 + roll(400) as i64);
        let log = log();
        let mut life = engine_with_log(log.clone());
        let mut now_us = START_US;
        let promise = if is_exact { "EXACT" } else { "RELAXED" };
        let created = format!("COUNTER.CREATE q LIMIT {limit} {promise} {units} MAXAGE {}", 1 + roll(50));
        assert_eq!(Client::new(&life).run(&created), ":1");
        // The units that clients hold, and the units that crashes counted as used although they
        // were not.
        let (mut held, mut lost) = (0i64, 0i64);
        for _ in 0..15 {
            let mut client = Client::new(&life);
            client.now_us = now_us;
            for _ in 0..roll(60) {
                let amount = 1 + roll(12) as i64;
                if roll(5) < 3 {
                    let answer = client.run(&format!("COUNTER.TAKE q {amount}"));
                    if answer.starts_with("*2 :1") {
                        held += amount;
                    } else {
                        assert!(held + lost + amount > limit, "refused with {held} held and {lost} lost");
                    }
                    if is_exact {
                        assert!(held <= limit, "granted beyond the limit");
                    }
                } else if held > 0 {
                    let amount = amount.min(held);
                    let answer = client.run(&format!("COUNTER.REFUND q {amount}"));
                    if lost >= 0 {
                        assert_eq!(answer, format!(":{amount}"));
                    }
                    held -= answer[1..].parse::<i64>().expect("a number");
                }
                assert_eq!(client.run("COUNTER.GET q"), format!(":{}", held + lost));
                if roll(8) == 0 {
                    client.sleep_ms(roll(30));
                    life.commit_due(client.now_us, 10);
                }
            }
            now_us = client.now_us;
            let again = engine_with_log(log.clone());
            apply_from(&life, Lsn(1), &again);
            assert_eq!(again.digest(), life.digest());
            life = again;
            let position: i64 = Client::new(&life).run("COUNTER.GET q")[1..].parse().expect("a number");
            let forgotten = held + lost - position;
            if is_exact {
                let doubt: i64 = field(&Client::new(&life), "q", "doubt")[1..].parse().expect("a number");
                assert!(
                    forgotten <= 0 && lost - forgotten <= doubt,
                    "{lost} and {forgotten} of {doubt} in doubt"
                );
                assert!(doubt <= units, "{doubt} in doubt of a block of {units}");
            } else {
                assert!(forgotten.abs() <= units, "{forgotten} of a cap of {units}");
            }
            lost -= forgotten;
        }
    }
}

#[test]
fn under_always_an_answer_waits_for_the_counters_last_commit() {
    let engine = engine();
    let client = Client::new(&engine);
    let waits_for = |line: &str| client.execute(line).1.lsn;
    client.expect(&[("COUNTER.CREATE c RELAXED 10 HIGH 5", ":1")]);
    engine.log().set_durability(Durability::Off);
    client.run("COUNTER.ADD c 5");
    assert_eq!(waits_for("COUNTER.ADD c 1"), None, "what a commit was is lost with the rest");
    engine.log().set_durability(Durability::Always);
    assert_eq!(waits_for("COUNTER.ADD c 1"), None);
    for commit in ["COUNTER.ADD c 5", "COUNTER.COMMIT c", "COUNTER.ADD c 1 DURABLE"] {
        client.run("COUNTER.ADD c 1");
        let committed = waits_for(commit);
        assert_eq!(committed, Some(engine.log().appended()), "{commit}");
        assert_eq!(waits_for("COUNTER.ADD c 1"), committed, "after {commit}");
    }
}

#[test]
fn a_lease_that_is_not_used_is_given_back() {
    let engine = engine();
    let mut client = Client::new(&engine);
    // A counter that has granted eight blocks reserves whole blocks.
    client.expect(&[("COUNTER.CREATE e EXACT 20 MAXAGE 5000", ":1"), ("COUNTER.TAKE e 160", "*2 :1 $-1")]);
    client.run("COUNTER.TAKE e 1");
    client.sleep_ms(4000);
    client.run("COUNTER.TAKE e 1");
    client.sleep_ms(1000);
    engine.commit_due(client.now_us, 100);
    assert_eq!(field(&client, "e", "reserved"), ":9", "it was used a second ago");
    client.sleep_ms(4000);
    assert_eq!(engine.commit_due(client.now_us, 100), None);
    assert_eq!(
        (field(&client, "e", "reserved"), field(&client, "e", "committed")),
        (":0".into(), ":162".into())
    );
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

const NO_COUNTER: &str = "-ERR no such counter, COUNTER.CREATE makes one";
const SETTLE_IS_EXACT: &str =
    "-ERR SETTLE is of exact counters only: of a relaxed one nothing is in doubt, give EXACT as well";

/// The engine after a crash.
fn crashed(log: &Arc<Log>, life: &Engine) -> Engine {
    let again = engine_with_log(log.clone());
    apply_from(life, Lsn(1), &again);
    again
}

#[test]
fn crashes_take_no_more_of_an_exact_quota_than_a_16th_of_what_was_granted_before_each() {
    let log = log();
    let mut life = engine_with_log(log.clone());
    assert_eq!(Client::new(&life).run("COUNTER.CREATE q LIMIT 1000 EXACT 200"), ":1");
    for left in (992..1000).rev() {
        assert_eq!(Client::new(&life).run("COUNTER.TAKE q 1"), format!("*2 :1 :{left}"));
        life = crashed(&log, &life);
    }
    assert_eq!(Client::new(&life).run("COUNTER.GET q"), ":8", "one a life is what was granted, and no more");
    let mut used = 8;
    for granted in [1, 15, 16, 64, 300] {
        for _ in 0..granted {
            assert!(Client::new(&life).run("COUNTER.TAKE q 1").starts_with("*2 :1"));
        }
        life = crashed(&log, &life);
        let now: i64 = Client::new(&life).run("COUNTER.GET q")[1..].parse().expect("a number");
        let lost = now - used - granted;
        assert!((0..=granted / 16 + 1).contains(&lost), "{lost} lost behind {granted}");
        used = now;
    }
}

#[test]
fn any_number_of_crashes_leaves_at_most_one_block_in_doubt() {
    let log = log();
    let mut life = engine_with_log(log.clone());
    assert_eq!(Client::new(&life).run("COUNTER.CREATE q LIMIT 1000000 EXACT 40"), ":1");
    let mut granted = 0;
    for _ in 0..20 {
        for _ in 0..400 {
            assert!(Client::new(&life).run("COUNTER.TAKE q 1").starts_with("*2 :1"));
            granted += 1;
        }
        life = crashed(&log, &life);
    }
    let client = Client::new(&life);
    let number = |name: &str| field(&client, "q", name)[1..].parse::<i64>().expect("a number");
    let lost = number("position") - granted;
    assert!((1..=40).contains(&lost), "{lost} units are lost");
    assert_eq!(number("doubt"), 40, "all of the block is in doubt, so nothing more is reserved ahead");
    let records_before = records(&life);
    client.expect(&[("COUNTER.REFUND q 1", ":1"), ("COUNTER.REFUND q 1", ":1")]);
    assert_eq!(records(&life), records_before + 2, "each move has a record");
    client.expect(&[
        ("COUNTER.SETTLE q", ":40"),
        ("COUNTER.SETTLE q", ":0"),
        ("COUNTER.SETTLE none", NO_COUNTER),
    ]);
    assert_eq!(
        number("position"),
        granted - 2 + lost - 40,
        "the settling writer states that none of them is held"
    );
    assert_eq!(number("doubt"), 0);
    let again = crashed(&log, &life);
    assert_eq!(
        (again.digest(), Client::new(&again).run("COUNTER.GET q")),
        (life.digest(), client.run("COUNTER.GET q"))
    );
}

#[test]
fn what_is_in_doubt_is_given_back_after_the_time_that_the_terms_say() {
    let log = log();
    let life = engine_with_log(log.clone());
    let mut client = Client::new(&life);
    client.expect(&[
        ("COUNTER.CREATE q LIMIT 1000 EXACT 40 SETTLE 60000", ":1"),
        ("COUNTER.TAKE q 400", "*2 :1 :600"),
    ]);
    client.expect(&[("COUNTER.TAKE q 1", "*2 :1 :599")]);
    let reserved: i64 = field(&client, "q", "reserved")[1..].parse().expect("a number");
    assert!(reserved > 0);
    client.sleep_ms(1000);
    let now_us = client.now_us;
    let life = crashed(&log, &life);
    life.begin_counting();
    let mut client = Client::new(&life);
    client.now_us = now_us;
    assert_eq!(client.run("COUNTER.GET q"), format!(":{}", 401 + reserved));
    assert_eq!(
        (field(&client, "q", "doubt"), field(&client, "q", "settle")),
        (":40".into(), ":60000".into())
    );
    let first = client.now_us / 1000;
    assert_eq!(life.next_commit(), Some(1), "it is looked at soon after the start");
    assert_eq!(life.commit_due(client.now_us, 10), Some(first + 60_000));
    // The use of the counter meanwhile does not postpone the settling.
    client.sleep_ms(59_000);
    client.expect(&[("COUNTER.TAKE q 1", &format!("*2 :1 :{}", 598 - reserved))]);
    life.commit_due(client.now_us, 10);
    assert_eq!(field(&client, "q", "doubt"), ":40");
    client.sleep_ms(1000);
    life.commit_due(client.now_us, 10);
    assert_eq!(field(&client, "q", "doubt"), ":0");
    // Settling returns all units in doubt. Clients no longer hold those of them that were granted.
    assert_eq!(client.run("COUNTER.GET q"), format!(":{}", 402 + reserved - 40));
    let again = crashed(&log, &life);
    assert_eq!(again.digest(), life.digest());
}

#[test]
fn only_an_exact_counter_has_units_in_doubt() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("COUNTER.CREATE a SETTLE 9", SETTLE_IS_EXACT),
        ("COUNTER.CREATE a RELAXED 9 SETTLE 9", SETTLE_IS_EXACT),
        (
            "COUNTER.CREATE a EXACT 9 SETTLE 0",
            "-ERR SETTLE takes a number from 1 to 4611686018427387904, not 0",
        ),
        ("COUNTER.ADD b 1 DURABLE DOUBT 1", "-ERR DOUBT is of exact counters only"),
        ("COUNTER.CREATE e EXACT 9 SETTLE 9", ":1"),
        ("COUNTER.ADD e 5 DURABLE DOUBT 4", ":5"),
        ("COUNTER.CREATE e RELAXED 9", ":0"),
        ("COUNTER.GET e", ":5"),
    ]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn a_last_commit_of_all_leaves_nothing_open() {
    let engine = engine();
    let client = Client::new(&engine);
    for n in 0..200 {
        client.run(&format!("COUNTER.ADD c{n} {n}"));
        client.run(&format!("COUNTER.CREATE e{n} EXACT 10"));
        client.run(&format!("COUNTER.TAKE e{n} {n}"));
    }
    assert_eq!(engine.commit_all(client.now_us), 0);
    let again = replayed(&engine);
    for n in 0..200 {
        let expected = format!(":{n}");
        assert_eq!(Client::new(&again).run(&format!("COUNTER.GET c{n}")), expected);
        assert_eq!(Client::new(&again).run(&format!("COUNTER.GET e{n}")), expected);
    }
    assert_eq!(engine.counter_figures().exposure, tidemark_engine::keyspace::Exposure::default());
}

#[test]
fn what_is_added_durably_is_in_the_log_with_all_before_it() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[("COUNTER.ADD c 5", ":5")]);
    let (answer, executed) = client.execute("COUNTER.ADD c 2 DURABLE");
    assert_eq!(
        (answer.as_str(), executed.durable, executed.lsn),
        (":7", true, Some(engine.log().appended()))
    );
    assert_eq!(Client::new(&replayed(&engine)).run("COUNTER.GET c"), ":7");
    client.expect(&[("COUNTER.ADD new 3 DURABLE", ":3")]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn a_transaction_that_shows_more_than_a_lease_waits_for_all_of_it() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[("COUNTER.CREATE e EXACT 20", ":1"), ("COUNTER.TAKE e 160", "*2 :1 $-1")]);
    client.expect(&[("COUNTER.TAKE e 1", "*2 :1 $-1")]);
    client.run("POOL.CREATE p ITEMS car 1 UNLIMITED");
    let (_, drawn) = client.execute("POOL.DRAW p REQUEST one");
    // Neither command writes a record: the counter moves within its reserved units, and the request
    // was made before.
    let before = records(&engine);
    let (_, executed) = execute_transaction(&engine, None, &["COUNTER.TAKE e 1", "POOL.DRAW p REQUEST one"]);
    assert_eq!(records(&engine), before);
    assert!(executed.durable && executed.lsn >= drawn.lsn, "{:?} of {:?}", executed.lsn, drawn.lsn);
}

#[test]
fn commits_of_a_transaction_are_part_of_it() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("COUNTER.CREATE c RELAXED 10 HIGH 5");
    let before = records(&engine);
    let answers =
        transaction(&engine, None, &["COUNTER.ADD c 3", "SET k v", "COUNTER.ADD c 4", "COUNTER.GET c"]);
    assert_eq!(answers, "*4 :3 +OK :7 :7");
    assert_eq!(records(&engine), before + 1);
    let again = replayed(&engine);
    Client::new(&again).expect(&[("COUNTER.GET c", ":7"), ("GET k", "$1 v")]);

    let before = records(&engine);
    transaction(&engine, None, &["COUNTER.ADD c 1", "COUNTER.ADD c -1", "COUNTER.GET c"]);
    assert_eq!(records(&engine), before, "one that changed only what is volatile is not logged");
}

#[test]
fn a_watched_key_has_changed_when_its_counter_has_moved() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("COUNTER.ADD c 1");
    let mut watched = tidemark_engine::WatchedKeys::new();
    engine.watch(&mut watched, 0, b"c", START_US);
    client.run("COUNTER.ADD c 1");
    assert_eq!(transaction(&engine, Some(&watched), &["COUNTER.ADD c 1"]), "*-1");
    engine.unwatch(&watched);
}

#[test]
fn expired_counters_are_gone_for_everyone() {
    let engine = engine();
    let mut client = Client::new(&engine);
    client.expect(&[("COUNTER.ADD c 5", ":5"), ("PEXPIRE c 100", ":1")]);
    client.sleep_ms(100);
    client.expect(&[
        ("COUNTER.TAKE c", "-ERR no such counter, COUNTER.CREATE makes one"),
        ("COUNTER.ADD c 2", ":2"),
        ("PTTL c", ":-1"),
    ]);
    client.expect(&[("COUNTER.COMMIT c", ":2")]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn an_idle_counter_leaves_and_steady_use_costs_two_records_in_its_time() {
    let engine = engine();
    let mut client = Client::new(&engine);
    client.expect(&[
        ("COUNTER.CREATE q LIMIT 2 EXACT 1 IDLE 10000", ":1"),
        ("PTTL q", ":10000"),
        ("COUNTER.CREATE q LIMIT 9 NX IDLE 5", ":0"),
        ("COUNTER.TAKE q", "*2 :1 :1"),
        ("COUNTER.TAKE q", "*2 :1 :0"),
        ("PTTL q", ":10000"),
    ]);
    assert_eq!((engine.idle_counters(0), engine.idle_counters(1)), (1, 0));
    let before = records(&engine);
    client.sleep_ms(5000);
    client.expect(&[("LIMIT.CHECK q", "*5 :0 :2 :0 :-1 :-1"), ("PTTL q", ":5000")]);
    assert_eq!(records(&engine), before, "more than half is left");
    // A refusal by any command counts as a use. A command that only reads the state does not.
    client.sleep_ms(1);
    for (ask, refused) in [
        ("LIMIT.PEEK q", "LIMIT.CHECK q"),
        ("LIMIT.PEEKALL 1 q", "LIMIT.CHECKALL 1 q"),
        ("COUNTER.GET q", "COUNTER.TAKE q"),
    ] {
        let (before, left) = (records(&engine), client.run("PTTL q"));
        client.run(ask);
        assert_eq!((records(&engine), client.run("PTTL q")), (before, left), "{ask}");
        (0..100).for_each(|_| drop(client.run(refused)));
        assert_eq!((records(&engine), client.run("PTTL q")), (before + 1, ":10000".to_owned()), "{refused}");
        client.sleep_ms(5001);
    }
    client.expect(&[("COUNTER.ADD q 1 DURABLE", ":3"), ("PTTL q", ":10000"), ("COUNTER.LIMIT q 5", "+OK")]);
    assert_eq!(field(&client, "q", "idle"), ":10000");
    let again = replayed(&engine);
    assert_eq!((again.digest(), again.idle_counters(0)), (engine.digest(), 1));
    assert_eq!(Client { now_us: client.now_us, ..Client::new(&again) }.run("PTTL q"), ":10000");

    client.sleep_ms(10_000);
    engine.expire_due(client.now_us, 100);
    client.expect(&[("EXISTS q", ":0")]);
    assert_eq!((engine.idle_counters(0), replayed(&engine).digest()), (0, engine.digest()));
}

#[test]
fn a_counter_stays_once_it_is_created_again_without_an_idle_time_or_persisted() {
    let engine = engine();
    let mut client = Client::new(&engine);
    client.expect(&[
        ("COUNTER.CREATE again IDLE 100", ":1"),
        ("COUNTER.CREATE again LIMIT 7", ":0"),
        ("PTTL again", ":-1"),
        ("COUNTER.CREATE kept IDLE 100", ":1"),
        ("PERSIST kept", ":1"),
        ("COUNTER.CREATE over IDLE 100", ":1"),
        ("SET over text", "+OK"),
        ("COUNTER.CREATE old IDLE 100", ":1"),
        ("RENAME old new", "+OK"),
        ("COUNTER.CREATE later", ":1"),
        ("COUNTER.CREATE later IDLE 100", ":0"),
        ("PTTL later", ":100"),
        ("COUNTER.CREATE x IDLE 0", "-ERR IDLE takes a number from 1 to 4611686018427387904, not 0"),
    ]);
    assert_eq!(engine.idle_counters(0), 3, "kept, new and later");
    client.sleep_ms(99);
    client.expect(&[("COUNTER.ADD kept 1", ":1"), ("PTTL kept", ":-1"), ("COUNTER.ADD new 1", ":1")]);
    client.sleep_ms(50);
    engine.expire_due(client.now_us, 100);
    client.expect(&[("EXISTS again kept over new later", ":4")]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
    client.expect(&[("FLUSHALL", "+OK")]);
    assert_eq!(engine.idle_counters(0), 0);
}
