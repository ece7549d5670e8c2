//! Limiters: `CL.THROTTLE` as redis-cell answers, and the family `LIMIT.*`.

use crate::support;
use crate::support::{Client, START_US, engine, replayed, transaction};
use tidemark_engine::Engine;

/// A client whose clock is `ms` milliseconds after the beginning of the test.
fn at_ms(engine: &Engine, ms: i64) -> Client<'_> {
    let now_us = START_US.checked_add_signed(ms * 1000).expect("a time");
    Client { now_us, ..Client::new(engine) }
}

/// Runs commands, each at its time, and compares the answers.
fn expect_at(engine: &Engine, dialogue: &[(i64, &str, &str)]) {
    for (ms, line, answer) in dialogue {
        assert_eq!(at_ms(engine, *ms).run(line), *answer, "{line} at {ms} ms");
    }
}

/// Five integers in wire form.
fn five(integers: [i64; 5]) -> String {
    format!("*5 {}", integers.map(|integer| format!(":{integer}")).join(" "))
}

/// The test cases of redis-cell's limiter: five units at once, one per second.
#[test]
fn throttling_answers_what_redis_cell_answers() {
    let engine = engine();
    for (ms, quantity, limited, remaining, reset_s, retry_s) in [
        // No call gets more than the limit.
        (0, 6, 1, 5, 0, -1),
        (0, 1, 0, 4, 1, -1),
        (0, 1, 0, 3, 2, -1),
        (0, 1, 0, 2, 3, -1),
        (0, 1, 0, 1, 4, -1),
        (0, 1, 0, 0, 5, -1),
        (0, 1, 1, 0, 5, 1),
        (3000, 1, 0, 2, 3, -1),
        // Fractions of a second are rounded up.
        (3100, 1, 0, 1, 4, -1),
        (4000, 1, 0, 1, 4, -1),
        (8000, 1, 0, 4, 1, -1),
        (9500, 1, 0, 4, 1, -1),
        // A quantity of 0 takes nothing and only shows the state.
        (9500, 0, 0, 4, 1, -1),
        (9500, 2, 0, 2, 3, -1),
        (9500, 5, 1, 2, 3, 3),
    ] {
        let answer = at_ms(&engine, ms).run(&format!("CL.THROTTLE k 4 1 1 {quantity}"));
        assert_eq!(answer, five([limited, 5, remaining, retry_s, reset_s]), "{quantity} at {ms} ms");
    }
}

#[test]
fn the_examples_of_redis_cell_s_readme_and_tests_hold() {
    let engine = engine();
    expect_at(
        &engine,
        &[
            (0, "CL.THROTTLE user123 15 30 60 1", "*5 :0 :16 :15 :-1 :2"),
            (0, "CL.THROTTLE user123 15 30 60", "*5 :0 :16 :14 :-1 :4"),
            // One user's reads and writes have two keys.
            (0, "cl.throttle user123-read-rate 15 30 60", "*5 :0 :16 :15 :-1 :2"),
            (0, "cl.throttle user123-write-rate 5 10 60", "*5 :0 :6 :5 :-1 :6"),
            // No burst: one unit, and the next one two seconds later.
            (0, "CL.THROTTLE one 0 1 2 1", "*5 :0 :1 :0 :-1 :2"),
            (0, "CL.THROTTLE one 0 1 2 1", "*5 :1 :1 :0 :2 :2"),
            (2000, "CL.THROTTLE one 0 1 2 1", "*5 :0 :1 :0 :-1 :2"),
        ],
    );
}

#[test]
fn a_rate_can_be_given_anew_in_every_call() {
    let engine = engine();
    expect_at(
        &engine,
        &[
            (0, "CL.THROTTLE k 4 1 1 5", "*5 :0 :5 :0 :-1 :5"),
            // The new rate applies to what was used: five seconds are ahead, of which ten are
            // allowed.
            (0, "CL.THROTTLE k 9 1 1 0", "*5 :0 :10 :5 :-1 :5"),
            (0, "CL.THROTTLE k 9 1 1 1", "*5 :0 :10 :4 :-1 :6"),
            (0, "CL.THROTTLE k 4 1 1 1", "*5 :1 :5 :0 :2 :6"),
        ],
    );
}

#[test]
fn throttling_refuses_what_makes_no_sense() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("CL.THROTTLE k 15 30", "-ERR wrong number of arguments for 'cl.throttle' command"),
        ("CL.THROTTLE k 15 30 60 1 1", "-ERR wrong number of arguments for 'cl.throttle' command"),
        ("CL.THROTTLE k x 30 60", "-ERR Couldn't parse as integer: x"),
        ("CL.THROTTLE k 15 1.5 60", "-ERR Couldn't parse as integer: 1.5"),
        ("CL.THROTTLE k 15 30 9223372036854775808", "-ERR Couldn't parse as integer: 9223372036854775808"),
        ("CL.THROTTLE k 15 30 60 \"\"", "-ERR Couldn't parse as integer:"),
        ("CL.THROTTLE k 15 0 60", "-ERR Zero rates are not supported"),
        ("CL.THROTTLE k 15 30 0", "-ERR Zero rates are not supported"),
        ("CL.THROTTLE k -1 30 60", "-ERR value is out of range, must be positive"),
        ("CL.THROTTLE k 1 -30 60", "-ERR value is out of range, must be positive"),
        ("CL.THROTTLE k 1 30 60 -1", "-ERR value is out of range, must be positive"),
        ("CL.THROTTLE k 1 30 9223372036854775807", "-ERR the period must be from 1 ns to 146 years"),
        (
            "CL.THROTTLE k 9223372036854775807 1 1",
            "-ERR the limit must be from 1 to 9223372036854775807, it is 9223372036854775808",
        ),
        ("CL.THROTTLE k 1 9223372036854775807 1", "-ERR the rate must be at most one unit a nanosecond"),
        ("EXISTS k", ":0"),
        ("SET s 1", "+OK"),
        ("CL.THROTTLE s 1 1 1", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("CL.THROTTLE k +1 01 1", "*5 :0 :2 :1 :-1 :1"),
    ]);
}

#[test]
fn a_key_that_a_call_has_made_goes_when_nothing_counts_any_more() {
    let engine = engine();
    expect_at(
        &engine,
        &[
            (0, "CL.THROTTLE k 4 1 1 2", "*5 :0 :5 :3 :-1 :2"),
            (0, "TYPE k", "+limit"),
            (0, "OBJECT ENCODING k", "$4 gcra"),
            (0, "PTTL k", ":2000"),
            (500, "CL.THROTTLE k 4 1 1 1", "*5 :0 :5 :2 :-1 :3"),
            (500, "PTTL k", ":2500"),
            (2999, "EXISTS k", ":1"),
            (3000, "EXISTS k", ":0"),
            (3000, "CL.THROTTLE k 4 1 1 1", "*5 :0 :5 :4 :-1 :1"),
        ],
    );
    assert_eq!(engine.expire_due(START_US + 4_000_000, 10), None);
    assert_eq!(Client::new(&engine).run("DBSIZE"), ":0");
}

#[test]
fn a_refusal_changes_nothing_and_is_not_logged() {
    let engine = engine();
    let client = Client::new(&engine);
    for (line, is_logged) in [
        ("CL.THROTTLE k 0 1 1", true),
        ("CL.THROTTLE k 0 1 1", false),
        ("CL.THROTTLE k 0 1 1 0", false),
        ("CL.THROTTLE k 0 1 1 9", false),
        ("LIMIT.CHECK k", false),
        ("LIMIT.CHECK other AMOUNT 6 GCRA 5 PER 1000", false),
        ("LIMIT.CHECK other AMOUNT 0 GCRA 5 PER 1000", false),
        ("LIMIT.CHECK other AMOUNT 5 GCRA 5 PER 1000", true),
        ("LIMIT.CHECKALL 2 other new FIXED 5 PER 1000", false),
        ("LIMIT.CHECKALL 2 other new GCRA 5 PER 1000", false),
        ("LIMIT.PEEK other", false),
        ("LIMIT.REFUND other AMOUNT 0", false),
        ("LIMIT.REFUND none", false),
        ("LIMIT.RESET none", false),
    ] {
        let digest = engine.digest();
        let (answer, executed) = client.execute(line);
        assert_eq!(executed.lsn.is_some(), is_logged, "{line}: {answer}");
        assert_eq!(engine.digest() != digest, is_logged, "{line}: {answer}");
    }
}

#[test]
fn a_limiter_is_defined_by_itself_or_by_the_call() {
    let engine = engine();
    expect_at(
        &engine,
        &[
            (0, "LIMIT.CHECK k", "-ERR no such limiter: define it by LIMIT.CREATE, or in the call"),
            (0, "LIMIT.CREATE k GCRA 2 PER 1000", "+OK"),
            (0, "LIMIT.CHECK k", "*5 :1 :2 :1 :-1 :500"),
            (0, "limit.check k amount 1", "*5 :1 :2 :0 :-1 :1000"),
            (0, "LIMIT.CHECK k", "*5 :0 :2 :0 :500 :1000"),
            (499, "LIMIT.CHECK k", "*5 :0 :2 :0 :1 :501"),
            (500, "LIMIT.PEEK k", "*5 :1 :2 :1 :-1 :500"),
            (500, "LIMIT.CHECK k", "*5 :1 :2 :0 :-1 :1000"),
            (500, "LIMIT.CHECK k AMOUNT 3", "*5 :0 :2 :0 :-1 :1000"),
            // A limiter from LIMIT.CREATE does not expire, and its definition takes precedence over
            // that of a call.
            (9000, "TTL k", ":-1"),
            (9000, "LIMIT.CHECK k GCRA 100 PER 1000 BURST 50", "*5 :1 :2 :1 :-1 :500"),
            (9000, "CL.THROTTLE k 99 100 1", "*5 :0 :2 :0 :-1 :1"),
            // A limiter that a call defines has the definition of the call, and expires.
            (9000, "LIMIT.CHECK on-the-way GCRA 100 PER 1000 BURST 50", "*5 :1 :50 :49 :-1 :10"),
            (9000, "LIMIT.CHECK on-the-way gcra 100 per 1000 burst 20", "*5 :1 :20 :18 :-1 :20"),
            (9000, "LIMIT.CHECK on-the-way", "*5 :1 :20 :17 :-1 :30"),
            (9000, "PTTL on-the-way", ":30"),
            (9030, "EXISTS on-the-way", ":0"),
        ],
    );
}

#[test]
fn every_algorithm_allows_its_limit_and_says_when_to_come_again() {
    let engine = engine();
    expect_at(
        &engine,
        &[
            // GCRA: a steady rate with bursts.
            (0, "LIMIT.CHECK gcra AMOUNT 20 GCRA 10 PER 1000 BURST 20", "*5 :1 :20 :0 :-1 :2000"),
            (150, "LIMIT.CHECK gcra", "*5 :1 :20 :0 :-1 :1950"),
            (150, "LIMIT.CHECK gcra", "*5 :0 :20 :0 :50 :1950"),
            // Token bucket.
            (0, "LIMIT.CHECK token AMOUNT 20 TOKEN 10 PER 1000 BURST 20", "*5 :1 :20 :0 :-1 :2000"),
            (150, "LIMIT.CHECK token", "*5 :1 :20 :0 :-1 :1950"),
            (150, "LIMIT.CHECK token", "*5 :0 :20 :0 :50 :1950"),
            // Leaky bucket.
            (0, "LIMIT.CHECK leaky AMOUNT 20 LEAKY 10 PER 1000 BURST 20", "*5 :1 :20 :0 :-1 :2000"),
            (150, "LIMIT.CHECK leaky", "*5 :1 :20 :0 :-1 :1950"),
            (150, "LIMIT.CHECK leaky", "*5 :0 :20 :0 :50 :1950"),
            // The test begins at midnight, and so does a window of a minute.
            (20_000, "LIMIT.CHECK fixed AMOUNT 10 FIXED 10 PER 60000", "*5 :1 :10 :0 :-1 :40000"),
            (59_999, "LIMIT.CHECK fixed", "*5 :0 :10 :0 :1 :1"),
            (60_000, "EXISTS fixed", ":0"),
            (60_000, "LIMIT.CHECK fixed FIXED 10 PER 60000", "*5 :1 :10 :9 :-1 :60000"),
            // A quarter of the next minute has passed: three quarters of what was used still count.
            (50_000, "LIMIT.CHECK sliding AMOUNT 60 SLIDING 60 PER 60000", "*5 :1 :60 :0 :-1 :70000"),
            (75_000, "LIMIT.PEEK sliding", "*5 :1 :60 :15 :-1 :45000"),
            (75_000, "LIMIT.CHECK sliding AMOUNT 15", "*5 :1 :60 :0 :-1 :105000"),
            (75_000, "LIMIT.CHECK sliding", "*5 :0 :60 :0 :1000 :105000"),
            // Three login attempts in any ten minutes.
            (0, "LIMIT.CHECK log LOG 3 PER 600000", "*5 :1 :3 :2 :-1 :600000"),
            (240_000, "LIMIT.CHECK log", "*5 :1 :3 :1 :-1 :600000"),
            (540_000, "LIMIT.CHECK log", "*5 :1 :3 :0 :-1 :600000"),
            (540_000, "LIMIT.CHECK log", "*5 :0 :3 :0 :60000 :600000"),
            (599_999, "LIMIT.CHECK log", "*5 :0 :3 :0 :1 :540001"),
            (600_000, "LIMIT.CHECK log", "*5 :1 :3 :0 :-1 :600000"),
        ],
    );
}

#[test]
fn definitions_are_read_in_whatever_case_and_refused_if_they_make_no_sense() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("LIMIT.CREATE k", "-ERR wrong number of arguments for 'limit.create' command"),
        ("LIMIT.CREATE k GCRA 5", "-ERR syntax error: LIMIT.CREATE ends after '5', where it takes PER"),
        ("LIMIT.CREATE k NX XX", "-ERR syntax error: LIMIT.CREATE takes GCRA, TOKEN, LEAKY, FIXED, SLIDING, LOG or CONCURRENCY after 'k', not 'NX'"),
        ("LIMIT.CREATE k GCRA 0 PER 1000", "-ERR a limit must be a number of at least 1, not '0'"),
        ("LIMIT.CREATE k GCRA x PER 1000", "-ERR a limit must be a number of at least 1, not 'x'"),
        ("LIMIT.CREATE k GCRA 5 PER 0", "-ERR a time must be a number of at least 1 millisecond, not '0'"),
        ("LIMIT.CREATE k FIXED 5 PER 1000 BURST 9", "-ERR BURST is for GCRA, TOKEN and LEAKY"),
        ("LIMIT.CREATE k GCRA 5 PER 9223372036854775807", "-ERR the period must be from 1 ns to 146 years"),
        ("LIMIT.CREATE k AMOUNT 5 GCRA 5 PER 1000", "-ERR syntax error: LIMIT.CREATE takes GCRA, TOKEN, LEAKY, FIXED, SLIDING, LOG or CONCURRENCY after 'k', not 'AMOUNT'"),
        ("LIMIT.CHECK k AMOUNT -1 GCRA 5 PER 1000", "-ERR an amount must be a number of at least 0, not '-1'"),
        ("LIMIT.CHECK k GCRA 5 PER 1000 FIXED 5 PER 1000", "-ERR syntax error: an option of LIMIT.CHECK is out of range, given twice or excluded by another: LIMIT.CHECK key [AMOUNT amount] [<GCRA | TOKEN | LEAKY | FIXED | SLIDING | LOG> limit PER milliseconds [BURST burst]]"),
        ("LIMIT.CHECK k CONCURRENCY 5", "-ERR syntax error: LIMIT.CHECK takes AMOUNT, GCRA, TOKEN, LEAKY, FIXED, SLIDING or LOG after 'k', not 'CONCURRENCY'"),
        ("EXISTS k", ":0"),
        ("limit.create k sliding 5 per 1000 nx", "+OK"),
        ("limit.Check k", "*5 :1 :5 :4 :-1 :2000"),
        ("SET s 1", "+OK"),
        (
            "LIMIT.CHECK s GCRA 5 PER 1000",
            "-WRONGTYPE Operation against a key holding the wrong kind of value",
        ),
        (
            "LIMIT.CREATE s GCRA 5 PER 1000",
            "-WRONGTYPE Operation against a key holding the wrong kind of value",
        ),
        ("LIMIT.STATE s", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("GET k", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("INCR k", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        (
            "LIMIT.CHECK k AMOUNT 9223372036854775807 SLIDING 9223372036854775807 PER 1",
            "*5 :0 :5 :4 :-1 :2000",
        ),
    ]);
}

#[test]
fn a_definition_changes_while_it_is_used() {
    let engine = engine();
    expect_at(
        &engine,
        &[
            (0, "LIMIT.CREATE k LEAKY 10 PER 1000 XX", "$-1"),
            (0, "LIMIT.CREATE k LEAKY 10 PER 1000", "+OK"),
            (0, "LIMIT.CHECK k AMOUNT 8", "*5 :1 :10 :2 :-1 :800"),
            (0, "LIMIT.CREATE k LEAKY 20 PER 1000 NX", "$-1"),
            (0, "LIMIT.PEEK k", "*5 :1 :10 :2 :-1 :800"),
            // Units used before the change still count.
            (0, "LIMIT.CREATE k LEAKY 20 PER 1000 XX", "+OK"),
            (0, "LIMIT.PEEK k", "*5 :1 :20 :12 :-1 :400"),
            // A call cannot change the algorithm. Another algorithm starts without the units that
            // were used.
            (
                0,
                "LIMIT.CHECK k TOKEN 20 PER 1000",
                "-ERR the limiter is of the algorithm LEAKY: LIMIT.CREATE can change that",
            ),
            (
                0,
                "CL.THROTTLE k 1 1 1",
                "-ERR the limiter is of the algorithm LEAKY: LIMIT.CREATE can change that",
            ),
            (0, "LIMIT.CREATE k TOKEN 20 PER 1000", "+OK"),
            (0, "LIMIT.PEEK k", "*5 :1 :20 :20 :-1 :0"),
            // LIMIT.CREATE makes a limiter that a call created permanent.
            (0, "LIMIT.CHECK on-the-way GCRA 10 PER 1000", "*5 :1 :10 :9 :-1 :100"),
            (0, "LIMIT.CREATE on-the-way GCRA 10 PER 1000", "+OK"),
            (0, "TTL on-the-way", ":-1"),
            (0, "LIMIT.PEEK on-the-way", "*5 :1 :10 :9 :-1 :100"),
            (9000, "LIMIT.PEEK on-the-way", "*5 :1 :10 :10 :-1 :0"),
        ],
    );
    let before = engine.log().appended();
    Client::new(&engine).expect(&[("LIMIT.CREATE on-the-way gcra 10 per 1000", "+OK")]);
    assert_eq!(engine.log().appended(), before, "it is that already");
}

#[test]
fn units_are_given_back_as_far_as_they_count() {
    let engine = engine();
    expect_at(
        &engine,
        &[
            (0, "LIMIT.REFUND none", ":0"),
            (0, "LIMIT.CHECK k AMOUNT 4 FIXED 5 PER 1000", "*5 :1 :5 :1 :-1 :1000"),
            (0, "LIMIT.REFUND k", ":1"),
            (0, "LIMIT.REFUND k AMOUNT 9", ":3"),
            (0, "LIMIT.REFUND k", ":0"),
            (0, "LIMIT.PEEK k FIXED 5 PER 1000", "*5 :1 :5 :5 :-1 :0"),
            (0, "LIMIT.CHECK g AMOUNT 4 GCRA 5 PER 1000", "*5 :1 :5 :1 :-1 :800"),
            (400, "LIMIT.REFUND g AMOUNT 9", ":2"),
            (400, "LIMIT.PEEK g GCRA 5 PER 1000", "*5 :1 :5 :5 :-1 :0"),
        ],
    );
}

#[test]
fn several_limiters_allow_together_or_none_does() {
    let engine = engine();
    expect_at(
        &engine,
        &[
            (0, "LIMIT.CREATE tenant FIXED 100 PER 60000", "+OK"),
            (0, "LIMIT.CREATE route GCRA 2 PER 1000", "+OK"),
            (
                0,
                "LIMIT.CHECKALL 3 tenant user route GCRA 5 PER 1000",
                "-ERR the limiter is of the algorithm FIXED: LIMIT.CREATE can change that",
            ),
            (0, "LIMIT.CHECK user GCRA 5 PER 1000", "*5 :1 :5 :4 :-1 :200"),
            // The answer is that of the limiter with the least left.
            (0, "LIMIT.CHECKALL 3 tenant user route", "*6 :1 :2 :1 :-1 :500 $5 route"),
            (0, "LIMIT.CHECKALL 3 tenant user route", "*6 :1 :2 :0 :-1 :1000 $5 route"),
            (0, "LIMIT.CHECKALL 3 tenant user route", "*6 :0 :2 :0 :500 :1000 $5 route"),
            // The refusal has taken nothing from the others.
            (0, "LIMIT.PEEK tenant", "*5 :1 :100 :98 :-1 :60000"),
            (0, "LIMIT.PEEK user", "*5 :1 :5 :2 :-1 :600"),
            // If several limiters refuse, the answer names the one with the longest wait.
            (0, "LIMIT.CHECKALL 3 route user tenant AMOUNT 2 1 99", "*6 :0 :100 :98 :60000 :60000 $6 tenant"),
            (0, "LIMIT.CHECKALL 3 route user tenant AMOUNT 2 1 101", "*6 :0 :100 :98 :-1 :60000 $6 tenant"),
            (0, "LIMIT.CHECKALL 2 user tenant AMOUNT 0", "*6 :1 :5 :2 :-1 :600 $4 user"),
        ],
    );
    Client::new(&engine).expect(&[
        ("LIMIT.CHECKALL 0", "-ERR wrong number of arguments for 'limit.checkall' command"),
        ("LIMIT.CHECKALL 0 a", "-ERR numkeys should be greater than 0"),
        ("LIMIT.CHECKALL 2 a", "-ERR syntax error: LIMIT.CHECKALL ends after 'a', where it takes key"),
        ("LIMIT.CHECKALL 2 a a GCRA 1 PER 1", "-ERR a key can be checked only once in a call"),
        (
            "LIMIT.CHECKALL 3 a b c AMOUNT 1 2 GCRA 1 PER 1",
            "-ERR there must be one amount or definition, or one for each key",
        ),
        ("LIMIT.CHECKALL 2 a b", "-ERR no such limiter: define it by LIMIT.CREATE, or in the call"),
        // Each key has its own amount and definition: requests, and the tokens that they use.
        (
            "LIMIT.CHECKALL 2 requests tokens AMOUNT 1 500 GCRA 10 PER 1000 FIXED 1000 PER 60000",
            "*6 :1 :10 :9 :-1 :100 $8 requests",
        ),
        ("LIMIT.CHECKALL 2 tokens requests AMOUNT 501 1", "*6 :0 :1000 :500 :60000 :60000 $6 tokens"),
    ]);
}

#[test]
fn a_quota_is_a_limiter_that_no_time_gives_anything_back_to() {
    let engine = engine();
    expect_at(
        &engine,
        &[
            (0, "COUNTER.CREATE seats LIMIT 10", ":1"),
            (0, "LIMIT.CHECK seats AMOUNT 7", "*5 :1 :10 :3 :-1 :-1"),
            (0, "COUNTER.GET seats", ":7"),
            (0, "LIMIT.CHECK seats AMOUNT 4", "*5 :0 :10 :3 :-1 :-1"),
            (0, "LIMIT.CHECK seats AMOUNT 0", "*5 :1 :10 :3 :-1 :-1"),
            (0, "LIMIT.PEEK seats AMOUNT 3", "*5 :1 :10 :3 :-1 :-1"),
            (0, "LIMIT.CHECK seats AMOUNT 9223372036854775807", "*5 :0 :10 :3 :-1 :-1"),
            (9000, "LIMIT.CHECK seats AMOUNT 4", "*5 :0 :10 :3 :-1 :-1"),
            (9000, "LIMIT.REFUND seats AMOUNT 2", ":2"),
            (9000, "LIMIT.CHECK seats AMOUNT 4", "*5 :1 :10 :1 :-1 :-1"),
            (9000, "LIMIT.REFUND seats AMOUNT 9223372036854775807", ":9"),
            (9000, "LIMIT.REFUND seats", ":0"),
            // A counter without a limit refuses nothing, and its remainder has no number.
            (0, "COUNTER.ADD likes 5", ":5"),
            (0, "LIMIT.CHECK likes AMOUNT 2", "*5 :1 :-1 :-1 :-1 :-1"),
            (0, "COUNTER.GET likes", ":7"),
            (0, "LIMIT.CHECK likes AMOUNT 9223372036854775807", "-ERR the amount is out of range"),
            // The definition of a limiter does not apply to a counter.
            (
                0,
                "LIMIT.CHECK seats GCRA 10 PER 1000",
                "-WRONGTYPE Operation against a key holding the wrong kind of value",
            ),
            (
                0,
                "CL.THROTTLE seats 1 1 1",
                "-WRONGTYPE Operation against a key holding the wrong kind of value",
            ),
            (0, "LIMIT.STATE seats", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ],
    );
}

#[test]
fn limiters_and_quotas_allow_together_or_none_does() {
    let engine = engine();
    let all = "LIMIT.CHECKALL 3 user plan tokens AMOUNT 1 1 50";
    expect_at(
        &engine,
        &[
            (0, "LIMIT.CREATE user GCRA 5 PER 1000", "+OK"),
            (0, "COUNTER.CREATE plan LIMIT 100", ":1"),
            (0, "COUNTER.CREATE tokens LIMIT 120 EXACT 10", ":1"),
            (0, all, "*6 :1 :5 :4 :-1 :200 $4 user"),
            (0, all, "*6 :1 :5 :3 :-1 :400 $4 user"),
            (0, "LIMIT.PEEKALL 3 user plan tokens AMOUNT 1 1 50", "*6 :0 :120 :20 :-1 :-1 $6 tokens"),
            (0, all, "*6 :0 :120 :20 :-1 :-1 $6 tokens"),
            // The refusal has taken nothing from the others, and the peek nothing at all.
            (0, "LIMIT.PEEKALL 2 user plan", "*6 :1 :5 :3 :-1 :400 $4 user"),
            (0, "COUNTER.GET plan", ":2"),
            (0, "COUNTER.GET tokens", ":100"),
            (
                0,
                "LIMIT.PEEKALL 2 user none",
                "-ERR no such limiter: define it by LIMIT.CREATE, or in the call",
            ),
            (
                0,
                "LIMIT.CHECKALL 2 plan new FIXED 5 PER 1000",
                "-WRONGTYPE Operation against a key holding the wrong kind of value",
            ),
        ],
    );
    // Keys with DEFINED must exist. The call may define the others.
    expect_at(
        &engine,
        &[
            (
                0,
                "LIMIT.CHECKALL 3 user plan new AMOUNT 0 DEFINED DEFINED FIXED 5 PER 1000",
                "*6 :1 :5 :3 :-1 :400 $4 user",
            ),
            (
                0,
                "LIMIT.CHECKALL 2 none new DEFINED FIXED 5 PER 1000",
                "-ERR no such limiter: define it by LIMIT.CREATE, or in the call",
            ),
            (
                0,
                "LIMIT.CREATE new DEFINED NX",
                "-ERR syntax error: LIMIT.CREATE takes GCRA, TOKEN, LEAKY, FIXED, SLIDING, LOG or CONCURRENCY after 'new', not 'DEFINED'",
            ),
        ],
    );
    // The log has the state of limiters, and of counters what is committed.
    let again = replayed(&engine);
    expect_at(&again, &[(0, "LIMIT.PEEK user", "*5 :1 :5 :3 :-1 :400"), (0, "COUNTER.GET plan", ":0")]);
    let tokens: i64 = Client::new(&again).run("COUNTER.GET tokens")[1..].parse().expect("a number");
    assert!((100..=110).contains(&tokens), "never less than was granted, and at most a block more: {tokens}");
    Client::new(&engine).run("COUNTER.COMMIT plan");
    Client::new(&engine).run("COUNTER.COMMIT tokens");
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn what_is_taken_together_is_logged_together() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("COUNTER.CREATE exact LIMIT 100 EXACT 10", ":1"),
        ("COUNTER.CREATE relaxed LIMIT 100", ":1"),
        ("LIMIT.CREATE kept LEAKY 10 PER 1000 BURST 20", "+OK"),
    ]);
    let check = "LIMIT.CHECKALL 3 exact relaxed kept";
    let before = engine.log().appended();
    let (answer, executed) = client.execute(check);
    assert_eq!(answer, "*6 :1 :20 :19 :-1 :100 $4 kept");
    assert!(executed.durable, "an exact counter's grant is acknowledged when its reservation is on disk");
    assert_eq!(executed.lsn.map(|lsn| lsn.0), Some(before.0 + 1), "one record");
    // A call of relaxed counters alone writes no record. Neither does a refusal.
    let (_, executed) = client.execute("LIMIT.CHECKALL 1 relaxed AMOUNT 2");
    assert_eq!(executed.lsn, None);
    let (answer, executed) = client.execute("LIMIT.CHECKALL 2 relaxed kept AMOUNT 1 21");
    assert_eq!((answer.as_str(), executed.lsn), ("*6 :0 :20 :19 :-1 :100 $4 kept", None));
    // A replay restores the limiter from the log as it was.
    client.expect(&[("LIMIT.REFUND relaxed AMOUNT 3", ":3")]);
    let again = replayed(&engine);
    assert_eq!(Client::new(&again).run("LIMIT.STATE kept"), client.run("LIMIT.STATE kept"));
}

#[test]
fn a_limiter_shows_its_definition_and_what_it_has_noted() {
    let engine = engine();
    let typed = Client::resp3(&engine);
    let now_ms = START_US / 1000;
    typed.expect(&[
        ("LIMIT.STATE none", "_"),
        ("LIMIT.CREATE k TOKEN 10 PER 1000 BURST 20", "+OK"),
        ("LIMIT.CHECK k AMOUNT 5", "*5 :1 :20 :15 :-1 :500"),
    ]);
    let text = |name: &str| format!("${} {name}", name.len());
    let shown = |pairs: &[(&str, u64)]| {
        let shown: Vec<String> =
            pairs.iter().map(|(name, value)| format!(" {} :{value}", text(name))).collect();
        shown.concat()
    };
    let numbers = [
        ("limit", 10),
        ("period", 1000),
        ("burst", 20),
        ("kept", 1),
        ("idle-at", now_ms + 500),
        ("tokens", 15),
        ("updated-at", now_ms),
    ];
    assert_eq!(
        typed.run("LIMIT.STATE k"),
        format!("%8 {} {}{}", text("algorithm"), text("token"), shown(&numbers))
    );
    assert!(Client::new(&engine).run("LIMIT.STATE k").starts_with("*16 "));
}

#[test]
fn a_reset_limiter_starts_afresh() {
    let engine = engine();
    Client::new(&engine).expect(&[
        ("LIMIT.RESET none", ":0"),
        ("LIMIT.CREATE k FIXED 2 PER 1000", "+OK"),
        ("LIMIT.CHECK k AMOUNT 2", "*5 :1 :2 :0 :-1 :1000"),
        ("LIMIT.RESET k", ":1"),
        ("LIMIT.CHECK k AMOUNT 2", "*5 :1 :2 :0 :-1 :1000"),
        ("LIMIT.CHECK on-the-way FIXED 2 PER 1000", "*5 :1 :2 :1 :-1 :1000"),
        ("LIMIT.RESET on-the-way", ":1"),
        ("EXISTS on-the-way", ":0"),
    ]);
}

#[test]
fn limiters_are_renamed_copied_moved_and_made_again_from_the_log() {
    let engine = engine();
    expect_at(
        &engine,
        &[
            (0, "LIMIT.CREATE k LOG 3 PER 60000", "+OK"),
            (0, "LIMIT.CHECK k AMOUNT 2", "*5 :1 :3 :1 :-1 :60000"),
            (0, "COPY k copy", ":1"),
            (0, "LIMIT.CHECK copy", "*5 :1 :3 :0 :-1 :60000"),
            (0, "LIMIT.PEEK k", "*5 :1 :3 :1 :-1 :60000"),
            (0, "RENAME k renamed", "+OK"),
            (0, "MOVE copy 1", ":1"),
            (10, "LIMIT.PEEK renamed AMOUNT 2", "*5 :0 :3 :1 :59990 :59990"),
            (10, "LIMIT.CHECK a FIXED 5 PER 1000", "*5 :1 :5 :4 :-1 :990"),
            (20, "LIMIT.CHECK b SLIDING 5 PER 1000", "*5 :1 :5 :4 :-1 :1980"),
            (30, "LIMIT.CHECK c TOKEN 7 PER 1000", "*5 :1 :7 :6 :-1 :143"),
            (40, "LIMIT.CHECK d LEAKY 7 PER 1000", "*5 :1 :7 :6 :-1 :143"),
            (50, "CL.THROTTLE e 6 7 1", "*5 :0 :7 :6 :-1 :1"),
            (60, "SCAN 0 COUNT 1000 TYPE limit MATCH renamed", "*2 $1 0 *1 $7 renamed"),
        ],
    );
    assert_eq!(replayed(&engine).digest(), engine.digest());
    let loaded = support::engine();
    let loader = loaded.load(START_US);
    let mut snapshot = engine.snapshot();
    while let Some(frame) = snapshot.next_frame() {
        loader.load_frame(&frame).expect("a frame loads");
    }
    loader.finish().expect("nothing is missing");
    assert_eq!(loaded.digest(), engine.digest());
}

#[test]
fn a_transaction_takes_as_its_commands_do() {
    let engine = engine();
    let lines = ["CL.THROTTLE k 1 1 1", "CL.THROTTLE k 1 1 1", "CL.THROTTLE k 1 1 1", "LIMIT.PEEK k"];
    assert_eq!(
        transaction(&engine, None, &lines),
        "*4 *5 :0 :2 :1 :-1 :1 *5 :0 :2 :0 :-1 :2 *5 :1 :2 :0 :1 :2 *5 :0 :2 :0 :1000 :2000"
    );
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

/// The clock runs, stands, and steps back by up to an hour. The total that is allowed is never more
/// than the latest time that the clock has shown allows.
#[test]
fn a_clock_that_steps_back_never_allows_more() {
    for definition in ["GCRA", "TOKEN", "LEAKY", "FIXED", "SLIDING", "LOG"] {
        let engine = engine();
        let (mut chance, mut now_ms, mut latest_ms, mut allowed) = (1_u64, 0_i64, 0_i64, 0_i64);
        for _ in 0..2000 {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let drawn = (chance >> 33) as i64;
            now_ms += if drawn % 50 == 0 { -(drawn % 3_600_000) } else { drawn % 4000 };
            latest_ms = latest_ms.max(now_ms);
            let amount = 1 + drawn % 3;
            let line = format!("LIMIT.CHECK k AMOUNT {amount} {definition} 10 PER 10000");
            if at_ms(&engine, now_ms).run(&line).starts_with("*5 :1") {
                allowed += amount;
            }
        }
        // A burst, the rate, and for windows what an edge can add.
        assert!(allowed <= 20 + latest_ms / 1000, "{definition}: {allowed} in {latest_ms} ms");
        assert!(allowed > 20, "{definition}: {allowed}");
        assert_eq!(replayed(&engine).digest(), engine.digest(), "{definition}");
    }
}
