//! Concurrency limits: leases expire, each ID is granted once, and leases survive a restart.

use crate::support;
use crate::support::{Client, START_US, engine, replayed, transaction};
use tidemark_engine::Engine;
use tidemark_engine::watch::{Filter, Read, SharedQuery};
use tidemark_log::Lsn;

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";

/// A client whose clock is `ms` milliseconds after the beginning of the test.
fn at_ms(engine: &Engine, ms: i64) -> Client<'_> {
    let now_us = START_US.checked_add_signed(ms * 1000).expect("a time");
    Client { now_us, ..Client::new(engine) }
}

/// The ID of the lease that is granted first in a millisecond, or of the `later`-th after it.
fn lease(ms: i64, later: u64) -> u64 {
    START_US.checked_add_signed(ms * 1000).expect("a time") + later
}

/// Runs commands, each at its time, and compares the answers. `<` and a number stand for the lease
/// of that millisecond.
fn expect_at(engine: &Engine, dialogue: &[(i64, &str, &str)]) {
    for (ms, line, answer) in dialogue {
        let (line, answer) = (named(line), named(answer));
        assert_eq!(at_ms(engine, *ms).run(&line), answer, "{line} at {ms} ms");
    }
}

/// Expands placeholders: `<250` is the lease of that millisecond, `<250+1` the next, and `@250`
/// that time in milliseconds since 1970.
fn named(text: &str) -> String {
    let word = |word: &str| {
        let (before, lease_of) = match (word.split_once('<'), word.split_once('@')) {
            (Some((before, rest)), _) => (before, rest),
            (_, Some((before, ms))) => {
                return format!("{before}{}", START_US / 1000 + ms.parse::<u64>().expect("milliseconds"));
            }
            _ => return word.to_owned(),
        };
        let (ms, later) = lease_of.split_once('+').unwrap_or((lease_of, "0"));
        format!("{before}{}", lease(ms.parse().expect("milliseconds"), later.parse().expect("a number")))
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn leases_are_taken_up_to_the_limit_and_given_back_by_their_names() {
    let engine = engine();
    expect_at(
        &engine,
        &[
            (0, "LIMIT.ACQUIRE k", "-ERR no such limiter: define it by LIMIT.CREATE, or in the call"),
            (0, "LIMIT.CREATE k CONCURRENCY 3 TTL 10000", "+OK"),
            (0, "TYPE k", "+limit"),
            (0, "OBJECT ENCODING k", "$11 concurrency"),
            (0, "LIMIT.ACQUIRE k", "*6 :1 :3 :2 :-1 :10000 :<0"),
            (0, "LIMIT.ACQUIRE k", "*6 :1 :3 :1 :-1 :10000 :<0+1"),
            (4000, "limit.acquire k amount 1", "*6 :1 :3 :0 :-1 :10000 :<4000"),
            // The refusal says when the first of the leases ends, if none is released before.
            (5000, "LIMIT.ACQUIRE k", "*6 :0 :3 :0 :5000 :9000 :0"),
            (5000, "LIMIT.ACQUIRE k AMOUNT 3", "*6 :0 :3 :0 :9000 :9000 :0"),
            (5000, "LIMIT.ACQUIRE k AMOUNT 4", "*6 :0 :3 :0 :-1 :9000 :0"),
            (5000, "LIMIT.ACQUIRE k AMOUNT 0", "*6 :1 :3 :0 :-1 :9000 :0"),
            (5000, "LIMIT.PEEK k", "*5 :0 :3 :0 :5000 :9000"),
            (5000, "LIMIT.RELEASE k <0+1", ":1"),
            (5000, "LIMIT.RELEASE k <0+1", ":0"),
            (5000, "LIMIT.RELEASE k 0 1 9223372036854775807", ":0"),
            (5000, "LIMIT.RELEASE none <0", ":0"),
            (5000, "LIMIT.PEEK k", "*5 :1 :3 :1 :-1 :9000"),
            (5000, "LIMIT.ACQUIRE k", "*6 :1 :3 :0 :-1 :10000 :<5000"),
            (6000, "LIMIT.RELEASE k <0 <5000 <5000 <4000 7", ":3"),
            (6000, "LIMIT.PEEK k AMOUNT 3", "*5 :1 :3 :3 :-1 :0"),
            (6000, "EXISTS k", ":1"),
        ],
    );
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn a_lease_ends_by_itself_unless_it_is_renewed() {
    let engine = engine();
    expect_at(
        &engine,
        &[
            (0, "LIMIT.CREATE k CONCURRENCY 1 TTL 1000", "+OK"),
            (0, "LIMIT.ACQUIRE k", "*6 :1 :1 :0 :-1 :1000 :<0"),
            (900, "LIMIT.RENEW k <0", ":1000"),
            (1899, "LIMIT.ACQUIRE k", "*6 :0 :1 :0 :1 :1 :0"),
            (1899, "LIMIT.RENEW k <0 TTL 5000", ":5000"),
            // A shorter time does not shorten the lease.
            (1900, "LIMIT.RENEW k <0", ":4999"),
            (6899, "LIMIT.RENEW k <0", ":0"),
            (6899, "LIMIT.RENEW k 7", ":0"),
            (6899, "LIMIT.RENEW none <0", ":0"),
            (6899, "LIMIT.ACQUIRE k TTL 50", "*6 :1 :1 :0 :-1 :50 :<6899"),
            // A late release does not release another client's lease.
            (6900, "LIMIT.RELEASE k <0", ":0"),
            (6948, "LIMIT.ACQUIRE k", "*6 :0 :1 :0 :1 :1 :0"),
            (6949, "LIMIT.RELEASE k <6899", ":0"),
            (6949, "LIMIT.ACQUIRE k", "*6 :1 :1 :0 :-1 :1000 :<6949"),
        ],
    );
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn what_changes_nothing_is_not_logged() {
    let engine = engine();
    for (line, is_logged) in [
        ("LIMIT.ACQUIRE k CONCURRENCY 2 TTL 1000", true),
        ("LIMIT.ACQUIRE k AMOUNT 2", false),
        ("LIMIT.ACQUIRE k AMOUNT 0", false),
        ("LIMIT.ACQUIRE k AMOUNT 3", false),
        ("LIMIT.PEEK k", false),
        ("LIMIT.LEASES k", false),
        ("LIMIT.STATE k", false),
        ("LIMIT.RENEW k <0", false),
        ("LIMIT.RENEW k 7", false),
        ("LIMIT.RELEASE k 7", false),
        ("LIMIT.RELEASE k 7 8 9", false),
        ("LIMIT.ACQUIRE k", true),
        ("LIMIT.RELEASE k <0 <0+1", true),
    ] {
        let (digest, line) = (engine.digest(), named(line));
        let (answer, executed) = Client::new(&engine).execute(&line);
        assert_eq!(executed.lsn.is_some(), is_logged, "{line}: {answer}");
        assert_eq!(engine.digest() != digest, is_logged, "{line}: {answer}");
    }
}

#[test]
fn a_limiter_that_a_call_has_made_goes_with_its_last_lease() {
    let engine = engine();
    expect_at(
        &engine,
        &[
            (0, "LIMIT.ACQUIRE k CONCURRENCY 2 TTL 1000", "*6 :1 :2 :1 :-1 :1000 :<0"),
            (0, "PTTL k", ":1000"),
            (500, "LIMIT.ACQUIRE k TTL 3000", "*6 :1 :2 :0 :-1 :3000 :<500"),
            (500, "PTTL k", ":3000"),
            (600, "LIMIT.RELEASE k <500", ":1"),
            (600, "PTTL k", ":400"),
            (600, "LIMIT.RENEW k <0", ":1000"),
            (600, "PTTL k", ":1000"),
            (700, "LIMIT.RELEASE k <0", ":1"),
            (700, "EXISTS k", ":0"),
            (800, "LIMIT.ACQUIRE k AMOUNT 2 CONCURRENCY 2 TTL 1000", "*6 :1 :2 :0 :-1 :1000 :<800"),
            (1799, "EXISTS k", ":1"),
            (1800, "EXISTS k", ":0"),
            // The limiter takes its definition from the call. Existing leases keep their deadlines.
            (2000, "LIMIT.ACQUIRE k CONCURRENCY 5 TTL 1000", "*6 :1 :5 :4 :-1 :1000 :<2000"),
            (2000, "LIMIT.ACQUIRE k CONCURRENCY 2 TTL 9000", "*6 :1 :2 :0 :-1 :9000 :<2000+1"),
            (3000, "LIMIT.PEEK k", "*5 :1 :2 :1 :-1 :8000"),
        ],
    );
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

/// The ID of a lease that was released or lost must never identify another one.
#[test]
fn names_are_not_given_again() {
    let engine = engine();
    expect_at(
        &engine,
        &[
            (0, "LIMIT.CREATE k CONCURRENCY 2 TTL 1000", "+OK"),
            (0, "LIMIT.ACQUIRE k", "*6 :1 :2 :1 :-1 :1000 :<0"),
            (0, "LIMIT.RELEASE k <0", ":1"),
            (0, "LIMIT.ACQUIRE k", "*6 :1 :2 :1 :-1 :1000 :<0+1"),
            // The clock steps back by a minute.
            (-60_000, "LIMIT.ACQUIRE k", "*6 :1 :2 :0 :-1 :61000 :<0+2"),
            (-60_000, "LIMIT.RESET k", ":1"),
            (-60_000, "LIMIT.ACQUIRE k", "*6 :1 :2 :1 :-1 :1000 :<0+3"),
            (10, "DEL k", ":1"),
            (10, "LIMIT.ACQUIRE k CONCURRENCY 2 TTL 1000", "*6 :1 :2 :1 :-1 :1000 :<10"),
            (11, "FLUSHALL", "+OK"),
            (11, "LIMIT.ACQUIRE k CONCURRENCY 2 TTL 1000", "*6 :1 :2 :1 :-1 :1000 :<11"),
            (11, "COPY k copy", ":1"),
            (11, "LIMIT.ACQUIRE copy", "*6 :1 :2 :0 :-1 :1000 :<11+1"),
            (11, "RENAME copy k", "+OK"),
            // A limiter that a call created is removed only when its IDs are in the past.
            (11, "LIMIT.RELEASE k <11 <11+1", ":2"),
            (11, "EXISTS k", ":1"),
            (11, "LIMIT.ACQUIRE k", "*6 :1 :2 :1 :-1 :1000 :<11+2"),
            (11, "LIMIT.RESET k", ":1"),
            (11, "PTTL k", ":1"),
        ],
    );
    let replica = replayed(&engine);
    assert_eq!(replica.digest(), engine.digest());
    expect_at(&replica, &[(11, "LIMIT.ACQUIRE k", "*6 :1 :2 :1 :-1 :1000 :<11+3")]);
    expect_at(&engine, &[(12, "EXISTS k", ":0")]);
}

#[test]
fn a_definition_changes_while_leases_are_held() {
    let engine = engine();
    expect_at(
        &engine,
        &[
            (0, "LIMIT.CREATE k CONCURRENCY 3 TTL 1000", "+OK"),
            (0, "LIMIT.ACQUIRE k AMOUNT 3", "*6 :1 :3 :0 :-1 :1000 :<0"),
            (0, "LIMIT.CREATE k CONCURRENCY 5 TTL 9000 NX", "$-1"),
            (0, "LIMIT.CREATE k CONCURRENCY 5 TTL 9000 XX", "+OK"),
            (10, "LIMIT.ACQUIRE k AMOUNT 2", "*6 :1 :5 :0 :-1 :9000 :<10"),
            // The new limit is below the number of leases that are held: no client loses a lease,
            // and none gets one.
            (20, "LIMIT.CREATE k CONCURRENCY 1 TTL 500", "+OK"),
            (20, "LIMIT.ACQUIRE k", "*6 :0 :1 :0 :8990 :8990 :0"),
            (20, "LIMIT.RENEW k <0", ":980"),
            (20, "LIMIT.RELEASE k <0 <10", ":2"),
            (20, "LIMIT.ACQUIRE k", "*6 :1 :1 :0 :-1 :500 :<20"),
            // For a limiter from LIMIT.CREATE, the definition in a call is ignored. Only the TTL
            // applies, to the lease of that call.
            (520, "LIMIT.ACQUIRE k TTL 70 CONCURRENCY 100 TTL 100", "*6 :1 :1 :0 :-1 :70 :<520"),
            // Another algorithm has no leases.
            (530, "LIMIT.CREATE k FIXED 5 PER 1000", "+OK"),
            (530, "LIMIT.LEASES k", "-ERR the limiter is of the algorithm FIXED, which has no leases"),
        ],
    );
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn commands_for_rates_and_commands_for_leases_refuse_each_other_s_limiters() {
    let engine = engine();
    let client = Client::new(&engine);
    let has_leases = "-ERR the limiter is of the algorithm CONCURRENCY: LIMIT.ACQUIRE and LIMIT.RELEASE take and give back \
                      leases of it";
    let has_none = "-ERR the limiter is of the algorithm GCRA, which has no leases";
    let other = "-ERR the limiter is of the algorithm CONCURRENCY: LIMIT.CREATE can change that";
    client.expect(&[
        ("LIMIT.CREATE leases CONCURRENCY 2 TTL 1000", "+OK"),
        ("LIMIT.CREATE rate GCRA 2 PER 1000", "+OK"),
        ("SET s 1", "+OK"),
        ("LIMIT.CHECK leases", has_leases),
        ("LIMIT.CHECK leases AMOUNT 0", has_leases),
        ("LIMIT.CHECK new CONCURRENCY 2 TTL 1000", has_leases),
        ("LIMIT.REFUND leases", has_leases),
        ("LIMIT.CHECK leases GCRA 2 PER 1000", other),
        ("CL.THROTTLE leases 1 1 1", other),
        ("LIMIT.ACQUIRE rate", has_none),
        ("LIMIT.ACQUIRE rate AMOUNT 0", has_none),
        ("LIMIT.RENEW rate 1", has_none),
        ("LIMIT.RELEASE rate 1", has_none),
        ("LIMIT.LEASES rate", has_none),
        (
            "LIMIT.ACQUIRE rate CONCURRENCY 2 TTL 1000",
            "-ERR the limiter is of the algorithm GCRA: LIMIT.CREATE can change that",
        ),
        ("LIMIT.ACQUIRE s CONCURRENCY 2 TTL 1000", WRONG_TYPE),
        ("LIMIT.RENEW s 1", WRONG_TYPE),
        ("LIMIT.RELEASE s 1", WRONG_TYPE),
        ("LIMIT.LEASES s", WRONG_TYPE),
        ("EXISTS new", ":0"),
    ]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let engine = engine();
    let client = Client::new(&engine);
    let ttl = |said: &str| format!("-ERR a time must be a number of at least 1 millisecond, not '{said}'");
    let id = |said: &str| format!("-ERR a lease is a number of at least 0, not '{said}'");
    let too_long = "-ERR the period must be from 1 ns to 146 years";
    client.expect(&[
        (
            "LIMIT.CREATE k CONCURRENCY 5",
            "-ERR syntax error: LIMIT.CREATE ends after '5', where it takes TTL",
        ),
        (
            "LIMIT.CREATE k CONCURRENCY 5 PER 1000",
            "-ERR syntax error: LIMIT.CREATE takes TTL after '5', not 'PER'",
        ),
        (
            "LIMIT.CREATE k CONCURRENCY 5 TTL 1000 TTL 1000",
            "-ERR syntax error: LIMIT.CREATE takes NX or XX after '1000', not 'TTL'",
        ),
        ("LIMIT.CREATE k CONCURRENCY 5 TTL 1000 BURST 9", "-ERR BURST is for GCRA, TOKEN and LEAKY"),
        ("LIMIT.CREATE k CONCURRENCY 0 TTL 1000", "-ERR a limit must be a number of at least 1, not '0'"),
        ("LIMIT.CREATE k CONCURRENCY 5 TTL 0", &ttl("0")),
        ("LIMIT.CREATE k CONCURRENCY 5 TTL -1", &ttl("-1")),
        ("LIMIT.CREATE k CONCURRENCY 5 TTL 9223372036854775807", too_long),
        ("LIMIT.ACQUIRE k CONCURRENCY 5 TTL 1000 TTL 9223372036854775807", too_long),
        ("LIMIT.ACQUIRE", "-ERR wrong number of arguments for 'limit.acquire' command"),
        ("LIMIT.ACQUIRE k GCRA 5 PER 1000", "-ERR the limiter is of the algorithm GCRA, which has no leases"),
        ("EXISTS k", ":0"),
        ("LIMIT.CREATE k CONCURRENCY 9223372036854775807 TTL 1000", "+OK"),
        ("LIMIT.ACQUIRE k AMOUNT -1", "-ERR an amount must be a number of at least 0, not '-1'"),
        ("LIMIT.ACQUIRE k TTL 1.5", &ttl("1.5")),
        ("LIMIT.ACQUIRE k TTL 9223372036854775807", too_long),
        (
            "LIMIT.ACQUIRE k NX",
            "-ERR syntax error: LIMIT.ACQUIRE takes AMOUNT, TTL or CONCURRENCY after 'k', not 'NX'",
        ),
        ("LIMIT.RENEW k", "-ERR wrong number of arguments for 'limit.renew' command"),
        ("LIMIT.RENEW k x", &id("x")),
        ("LIMIT.RENEW k -1", &id("-1")),
        ("LIMIT.RENEW k 9223372036854775808", &id("9223372036854775808")),
        (
            "LIMIT.RENEW k 1 TTL",
            "-ERR syntax error: LIMIT.RENEW ends after 'TTL', where it takes a whole number (milliseconds)",
        ),
        ("LIMIT.RENEW k 1 TTL 0", &ttl("0")),
        ("LIMIT.RENEW k 1 TTL 9223372036854775807", too_long),
        ("LIMIT.RENEW k 1 2", "-ERR syntax error: LIMIT.RENEW takes TTL after '1', not '2'"),
        ("LIMIT.RELEASE k", "-ERR wrong number of arguments for 'limit.release' command"),
        ("LIMIT.RELEASE k 1 x", &id("x")),
        (
            "LIMIT.LEASES k COUNT",
            "-ERR syntax error: LIMIT.LEASES ends after 'COUNT', where it takes a whole number (count)",
        ),
        ("LIMIT.LEASES k COUNT 0", "-ERR COUNT should be greater than 0"),
        ("LIMIT.LEASES k COUNT x", "-ERR COUNT should be greater than 0"),
        ("LIMIT.LEASES k 5", "-ERR syntax error: LIMIT.LEASES takes COUNT after 'k', not '5'"),
        ("LIMIT.LEASES none", "*-1"),
        // The arithmetic does not wrap around.
        (&named("LIMIT.ACQUIRE k AMOUNT 9223372036854775807"), &named(ALL_OF_IT)),
        ("LIMIT.ACQUIRE k", "*6 :0 :9223372036854775807 :0 :1000 :1000 :0"),
    ]);
}

const ALL_OF_IT: &str = "*6 :1 :9223372036854775807 :0 :-1 :1000 :<0";

#[test]
fn leases_are_shown_in_the_order_of_their_ends() {
    let engine = engine();
    expect_at(
        &engine,
        &[
            (0, "LIMIT.CREATE k CONCURRENCY 9 TTL 1000", "+OK"),
            (0, "LIMIT.LEASES k", "*0"),
            (0, "LIMIT.ACQUIRE k AMOUNT 3", "*6 :1 :9 :6 :-1 :1000 :<0"),
            (10, "LIMIT.ACQUIRE k TTL 500", "*6 :1 :9 :5 :-1 :990 :<10"),
            (10, "LIMIT.LEASES k", "*4 :<10 *2 :1 :@510 :<0 *2 :3 :@1000"),
            (10, "LIMIT.LEASES k COUNT 1", "*2 :<10 *2 :1 :@510"),
            (509, "LIMIT.LEASES k COUNT 9223372036854775807", "*4 :<10 *2 :1 :@510 :<0 *2 :3 :@1000"),
            (510, "LIMIT.LEASES k", "*2 :<0 *2 :3 :@1000"),
            (1000, "LIMIT.LEASES k", "*0"),
        ],
    );
    let typed = Client { now_us: START_US + 10_000, ..Client::resp3(&engine) };
    assert_eq!(typed.run("LIMIT.LEASES k"), named("%2 :<10 *2 :1 :@510 :<0 *2 :3 :@1000"));
    assert_eq!(typed.run("LIMIT.LEASES none"), "_");
    let state = typed.run("LIMIT.STATE k");
    for pair in [
        "$11 concurrency",
        "$5 limit :9",
        "$6 period :1000",
        "$6 leases :2",
        "$4 used :4",
        "$10 last-lease :<10",
    ] {
        assert!(state.contains(&named(pair)), "{pair} is in {state}");
    }
}

#[test]
fn several_limiters_of_rates_and_leases_allow_together_or_none_does() {
    let engine = engine();
    expect_at(
        &engine,
        &[
            (0, "LIMIT.CREATE exports CONCURRENCY 2 TTL 60000", "+OK"),
            (0, "LIMIT.CREATE calls FIXED 10 PER 60000", "+OK"),
            (0, "LIMIT.CHECKALL 2 calls exports", "*7 :1 :2 :1 :-1 :60000 $7 exports *2 :0 :<0"),
            (0, "LIMIT.CHECKALL 2 exports calls AMOUNT 1 9", "*7 :1 :2 :0 :-1 :60000 $7 exports *2 :<0+1 :0"),
            // The window and the leases are full. The call takes nothing from either.
            (0, "LIMIT.CHECKALL 2 calls exports", "*7 :0 :10 :0 :60000 :60000 $5 calls *2 :0 :0"),
            (0, "LIMIT.RELEASE exports <0", ":1"),
            (0, "LIMIT.CHECKALL 2 calls exports", "*7 :0 :10 :0 :60000 :60000 $5 calls *2 :0 :0"),
            (0, "LIMIT.PEEK exports", "*5 :1 :2 :1 :-1 :60000"),
            (0, "LIMIT.CHECKALL 2 calls exports AMOUNT 0 1", "*7 :1 :10 :0 :-1 :60000 $5 calls *2 :0 :<0+2"),
            // One limiter for each user and one for all, both defined by the call.
            (
                0,
                "LIMIT.CHECKALL 2 all user CONCURRENCY 5 TTL 1000 CONCURRENCY 1 TTL 2000",
                "*7 :1 :1 :0 :-1 :2000 $4 user *2 :<0 :<0",
            ),
            (0, "LIMIT.CHECKALL 2 all user", "*7 :0 :1 :0 :2000 :2000 $4 user *2 :0 :0"),
            (0, "LIMIT.LEASES all", "*2 :<0 *2 :1 :@1000"),
        ],
    );
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn leases_quotas_and_rates_allow_together_or_none_does() {
    let engine = engine();
    let all = "LIMIT.CHECKALL 3 calls plan exports GCRA 5 PER 1000 DEFINED CONCURRENCY 2 TTL 60000";
    expect_at(
        &engine,
        &[
            (0, "COUNTER.CREATE plan LIMIT 2", ":1"),
            (0, all, "*7 :1 :2 :1 :-1 :-1 $4 plan *3 :0 :0 :<0"),
            (0, "LIMIT.CHECKALL 2 exports plan", "*7 :1 :2 :0 :-1 :60000 $7 exports *2 :<0+1 :0"),
            // Both have nothing left. The quota lasts longer.
            (0, all, "*7 :0 :2 :0 :-1 :-1 $4 plan *3 :0 :0 :0"),
            (0, "LIMIT.PEEKALL 2 plan exports", "*7 :0 :2 :0 :-1 :-1 $4 plan *2 :0 :0"),
            (0, "LIMIT.RELEASE exports <0", ":1"),
            (0, all, "*7 :0 :2 :0 :-1 :-1 $4 plan *3 :0 :0 :0"),
            // The refused call took no lease and no unit of the rate.
            (0, "LIMIT.LEASES exports", "*2 :<0+1 *2 :1 :@60000"),
            (0, "LIMIT.PEEK calls", "*5 :1 :5 :4 :-1 :200"),
        ],
    );
    let again = replayed(&engine);
    for question in ["LIMIT.LEASES exports", "LIMIT.STATE calls", "LIMIT.STATE exports"] {
        assert_eq!(at_ms(&again, 0).run(question), at_ms(&engine, 0).run(question), "{question}");
    }
}

/// A limiter refuses leases beyond the configured maximum. A replay does not apply that maximum: it
/// grants leases that another setting allowed.
#[test]
fn the_number_of_leases_is_bounded_by_a_setting_that_a_replay_does_not_ask() {
    let engine = engine();
    engine.keyspace().limit_leases(3);
    let take = |ms| at_ms(&engine, ms).run("LIMIT.ACQUIRE k CONCURRENCY 100 TTL 1000");
    for ms in 0..3 {
        assert!(take(ms).starts_with("*6 :1"), "{ms}");
    }
    assert_eq!(take(3), "*6 :0 :100 :0 :997 :999 :0");
    assert_eq!(at_ms(&engine, 3).run("LIMIT.PEEK k"), "*5 :0 :100 :0 :997 :999");
    engine.keyspace().limit_leases(1);
    assert!(take(1001).starts_with("*6 :0"), "one is held");
    engine.keyspace().limit_leases(10_000);
    assert!(take(1001).starts_with("*6 :1"));
    let replica = support::engine();
    replica.keyspace().limit_leases(1);
    support::apply_from(&engine, Lsn(1), &replica);
    assert_eq!(replica.digest(), engine.digest());
}

#[test]
fn leases_are_renamed_copied_moved_and_kept_by_log_and_snapshot() {
    let engine = engine();
    expect_at(
        &engine,
        &[
            (0, "LIMIT.CREATE k CONCURRENCY 3 TTL 60000", "+OK"),
            (0, "LIMIT.ACQUIRE k AMOUNT 2", "*6 :1 :3 :1 :-1 :60000 :<0"),
            (0, "COPY k copy", ":1"),
            // The copy is independent of the original.
            (0, "LIMIT.RELEASE copy <0", ":1"),
            (0, "LIMIT.PEEK k", "*5 :1 :3 :1 :-1 :60000"),
            (0, "COPY k elsewhere DB 1", ":1"),
            (0, "RENAME k renamed", "+OK"),
            (0, "LIMIT.RELEASE k <0", ":0"),
            (0, "LIMIT.RENEW renamed <0", ":60000"),
            (0, "MOVE copy 1", ":1"),
            (10, "LIMIT.ACQUIRE made CONCURRENCY 3 TTL 500", "*6 :1 :3 :2 :-1 :500 :<10"),
            (10, "SCAN 0 COUNT 1000 TYPE limit MATCH m*", "*2 $1 0 *1 $4 made"),
            (10, "EXPIRE renamed 5", ":1"),
            (20, "PERSIST renamed", ":1"),
            (20, "LIMIT.LEASES renamed", "*2 :<0 *2 :2 :@60000"),
        ],
    );
    assert_eq!(replayed(&engine).digest(), engine.digest());
    let loaded = support::engine();
    let loader = loaded.load(START_US);
    let mut snapshot = engine.snapshot();
    let cut = snapshot.lsn();
    // The snapshot does not have changes from after its cut.
    expect_at(&engine, &[(30, "LIMIT.RELEASE renamed <0", ":1"), (30, "LIMIT.RESET made", ":1")]);
    while let Some(frame) = snapshot.next_frame() {
        loader.load_frame(&frame).expect("a frame loads");
    }
    loader.finish().expect("nothing is missing");
    expect_at(
        &loaded,
        &[
            (20, "LIMIT.LEASES renamed", "*2 :<0 *2 :2 :@60000"),
            (20, "LIMIT.LEASES made", "*2 :<10 *2 :1 :@510"),
            (20, "PTTL made", ":490"),
        ],
    );
    support::apply_from(&engine, cut.next(), &loaded);
    assert_eq!(loaded.digest(), engine.digest());
    expect_at(&loaded, &[(40, "LIMIT.ACQUIRE renamed", "*6 :1 :3 :2 :-1 :60000 :<40")]);
}

#[test]
fn a_transaction_takes_leases_as_its_commands_do() {
    let engine = engine();
    let lines = [
        "LIMIT.ACQUIRE k CONCURRENCY 2 TTL 1000",
        "LIMIT.ACQUIRE k",
        "LIMIT.ACQUIRE k",
        &named("LIMIT.RELEASE k <0"),
        "LIMIT.ACQUIRE k TTL 500",
    ];
    assert_eq!(
        transaction(&engine, None, &lines),
        named(
            "*5 *6 :1 :2 :1 :-1 :1000 :<0 *6 :1 :2 :0 :-1 :1000 :<0+1 *6 :0 :2 :0 :1000 :1000 :0 :1 *6 :1 :2 :0 :-1 :1000 :<0+2"
        )
    );
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

fn watch(engine: &Engine, line: &str) -> SharedQuery {
    let words = support::words(line);
    let args: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
    let read = Read::new(0, tidemark_engine::Protocol::Resp3, &args, Filter::default()).expect("a read");
    engine.subscribe(read, 0, START_US).expect("a beginning").query
}

/// The end of a lease is not logged, so a watched read emits it with the next change.
#[test]
fn a_watch_of_leases_emits_each_change() {
    let engine = engine();
    expect_at(&engine, &[(0, "LIMIT.CREATE k CONCURRENCY 2 TTL 1000", "+OK")]);
    let leases = watch(&engine, "LIMIT.LEASES k");
    let state = watch(&engine, "LIMIT.STATE k");
    expect_at(
        &engine,
        &[
            (0, "LIMIT.ACQUIRE k", "*6 :1 :2 :1 :-1 :1000 :<0"),
            (500, "LIMIT.ACQUIRE k", "*6 :1 :2 :0 :-1 :1000 :<500"),
            (500, "LIMIT.ACQUIRE k", "*6 :0 :2 :0 :500 :1000 :0"),
            (1200, "LIMIT.RENEW k <500", ":1000"),
            (1200, "LIMIT.RELEASE k <500", ":1"),
        ],
    );
    assert_eq!((leases.count(), state.count()), (4, 4));
}
