//! Work that is due at times: whoever drives it knows no types.

use crate::support::{Client, START_US, engine, replayed};
use crate::watching::{answers, watch};
use tidemark_engine::{DUE_WORK, Engine};

/// When anything is due next, in milliseconds since the start.
fn next_ms(engine: &Engine) -> Option<u64> {
    let next = DUE_WORK.iter().filter_map(|work| (work.next)(engine)).min()?;
    Some(next.saturating_sub(START_US / 1000))
}

/// Does what is due at a time, in milliseconds since the start.
fn drive(engine: &Engine, at_ms: u64, budget: usize) {
    let now_us = START_US + at_ms * 1000;
    let due = DUE_WORK.iter().filter(|work| (work.next)(engine).is_some_and(|next| next <= now_us / 1000));
    for work in due {
        let next = (work.run)(engine, now_us, budget);
        assert_eq!(next, (work.next)(engine), "a run says when it is due next");
    }
}

#[test]
fn keys_of_all_types_and_watched_reads_are_driven_alike() {
    let engine = engine();
    let mut client = Client::new(&engine);
    assert_eq!(next_ms(&engine), None, "an empty engine has nothing to do");
    let now = START_US / 1000;
    client.expect(&[
        ("SET k v PX 300", "+OK"),
        ("COUNTER.CREATE c RELAXED 100 HIGH 90 LOW 10 MAXAGE 1000", ":1"),
    ]);
    client.run("POOL.CREATE raffle ITEMS seat 1 1");
    client.run("POOL.RESERVE raffle 2000");
    client.run("COUNTER.ADD c 5");
    client.run(&format!("TS.ADD s {now} 1"));
    let range = watch(&engine, "TS.RANGE s -3s +");
    let mut times = Vec::new();
    while let Some(at_ms) = next_ms(&engine).filter(|at_ms| *at_ms < 6000) {
        times.push(at_ms);
        drive(&engine, at_ms, 100);
        client.now_us = START_US + at_ms * 1000;
        let exists = client.run("EXISTS k");
        assert_eq!(exists, if at_ms < 300 { ":1" } else { ":0" });
        let committed = client.run("COUNTER.STATE c").contains(" committed :5");
        assert_eq!(committed, at_ms >= 1000);
        assert_eq!(client.run("POOL.RESERVATIONS raffle") == "*0", at_ms >= 2000);
        assert_eq!(answers(&range).is_empty(), at_ms < 4000, "{at_ms}");
    }
    assert!([300, 1000, 2000].iter().all(|at_ms| times.contains(at_ms)), "{times:?}");
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn a_run_does_as_much_as_it_may_and_the_rest_stays_due() {
    let engine = engine();
    let client = Client::new(&engine);
    for key in 0..10 {
        client.run(&format!("SET k{key} v PX 5"));
        client.run(&format!("COUNTER.CREATE c{key} RELAXED 100 HIGH 90 LOW 10 MAXAGE 5"));
        client.run(&format!("COUNTER.ADD c{key} 3"));
    }
    let mut runs = 0;
    while next_ms(&engine).is_some_and(|at_ms| at_ms <= 10) {
        drive(&engine, 10, 4);
        runs += 1;
    }
    assert_eq!(runs, 3, "10 keys and 10 counters, 4 of each at a time");
    assert_eq!(client.run("DBSIZE"), ":10");
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn expiry_can_wait_for_clients_and_other_work_goes_on() {
    let engine = engine();
    let client = Client::new(&engine);
    engine.set_active_expiry(false);
    client.run("SET k v PX 5");
    client.run("COUNTER.CREATE c RELAXED 100 HIGH 90 LOW 10 MAXAGE 7");
    client.run("COUNTER.ADD c 3");
    assert_eq!(next_ms(&engine), Some(7));
    drive(&engine, 10, 100);
    assert_eq!(next_ms(&engine), None);
    assert_eq!(client.run("DBSIZE"), ":2");
    engine.set_active_expiry(true);
    drive(&engine, 10, 100);
    assert_eq!(client.run("DBSIZE"), ":1");
}
