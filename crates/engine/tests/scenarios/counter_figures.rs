//! The figures of counters, compared with figures that are computed from answers, from the log, and
//! by asking each counter.

use crate::support::{Client, START_US, engine, for_each_record};
use proptest::prelude::*;
use std::collections::HashMap;
use tidemark_engine::change::{Change, Changes};
use tidemark_engine::keyspace::{CounterTotals, Exposure, KeyChurn};
use tidemark_engine::{ChurnOrder, CounterFigures, Engine};
use tidemark_log::Lsn;

const MINUTE_US: u64 = 60_000_000;

/// The position of a counter, or 0 if it does not exist.
fn position(client: &Client<'_>, key: &str) -> i64 {
    client
        .run(&format!("COUNTER.GET {key}"))
        .strip_prefix(':')
        .map_or(0, |number| number.parse().expect("a number"))
}

/// The counters of a database.
fn counters(client: &Client<'_>) -> Vec<String> {
    let answer = client.run("COUNTER.LIST 0 COUNT 1000");
    let mut words = answer.split(' ').skip(4);
    let mut keys = Vec::new();
    while let (Some(_), Some(key)) = (words.next(), words.next()) {
        keys.push(key.to_owned());
    }
    keys
}

/// The value of a field in the counter's state.
fn field(client: &Client<'_>, key: &str, name: &str) -> i64 {
    let state = client.run(&format!("COUNTER.STATE {key}"));
    let mut words = state.split(' ').skip_while(|word| *word != name);
    words.nth(1).and_then(|value| value.strip_prefix(':')?.parse().ok()).expect(name)
}

/// The number of commits in the log, and their units in all.
fn logged_commits(engine: &Engine) -> (u64, u64) {
    let (mut commits, mut units) = (0, 0);
    for_each_record(engine, Lsn(1), |record| {
        for change in Changes::of(record).expect("a record about data") {
            if let Change::Command { command, args, .. } = change.expect("a sound record")
                && command.name == "counter.add"
            {
                let amount: i64 = std::str::from_utf8(args[2]).expect("digits").parse().expect("a number");
                (commits, units) = (commits + 1, units + amount.unsigned_abs());
            }
        }
    });
    (commits, units)
}

/// The uncommitted units of some databases, summed over the state of each of their counters.
fn exposure(clients: &[Client<'_>]) -> (usize, Exposure) {
    let (mut keys, mut sum) = (0, Exposure::default());
    for client in clients {
        for key in counters(client) {
            keys += 1;
            let number = |name| field(client, &key, name);
            let (open, reserved) = (number("open"), number("reserved"));
            assert_eq!(number("position"), number("committed") + open - reserved);
            sum.counters += u64::from(open != 0 || reserved != 0);
            sum.units += open.unsigned_abs();
            sum.reserved += reserved.unsigned_abs();
            if open != 0 {
                let since = client.now_us / 1000 - number("age").unsigned_abs();
                sum.since_ms = Some(sum.since_ms.map_or(since, |oldest| oldest.min(since)));
            }
        }
    }
    (keys, sum)
}

fn command() -> impl Strategy<Value = String> {
    let key = || prop_oneof![Just("a"), Just("b"), Just("c"), Just("d"), Just("e")];
    let amount = || prop_oneof![4 => -20..20_i64, 1 => -400..400_i64];
    let promise = prop_oneof![Just("RELAXED 100"), Just("RELAXED 7"), Just("EXACT 20"), Just("EXACT 1")];
    prop_oneof![
        12 => (key(), amount()).prop_map(|(key, amount)| format!("COUNTER.ADD {key} {amount}")),
        3 => (key(), amount()).prop_map(|(key, amount)| format!("COUNTER.ADD {key} {amount} DURABLE")),
        6 => (key(), 0..30_i64).prop_map(|(key, amount)| format!("COUNTER.TAKE {key} {amount}")),
        6 => (key(), 0..30_i64).prop_map(|(key, amount)| format!("COUNTER.REFUND {key} {amount}")),
        2 => (key(), promise).prop_map(|(key, promise)| format!("COUNTER.CREATE {key} LIMIT 300 {promise}")),
        2 => key().prop_map(|key| format!("COUNTER.COMMIT {key}")),
        1 => key().prop_map(|key| format!("DEL {key}")),
        1 => key().prop_map(|key| format!("SET {key} text")),
        1 => (key(), key()).prop_map(|(key, other)| format!("RENAME {key} {other}")),
        1 => (key(), key()).prop_map(|(key, other)| format!("COPY {key} {other} REPLACE")),
        1 => key().prop_map(|key| format!("MOVE {key} 1")),
        1 => Just("SWAPDB 0 1".to_owned()),
        1 => Just("FLUSHDB".to_owned()),
        1 => Just("wait".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_figure_is_what_a_count_by_hand_gives(commands in proptest::collection::vec(command(), 0..90)) {
        let engine = engine();
        engine.set_churn_sample(1, START_US);
        let mut clients = [Client::new(&engine), Client::new(&engine)];
        clients[1].db = 1;
        let (mut moves, mut moved_units, mut by_key) = (0, 0, HashMap::<String, (u64, u64)>::new());
        for command in &commands {
            if command == "wait" {
                clients.iter_mut().for_each(|client| client.sleep_ms(40));
                engine.commit_due(clients[0].now_us, 1000);
                continue;
            }
            let key = command.split(' ').nth(1).unwrap_or_default();
            let before = position(&clients[0], key);
            clients[0].run(command);
            let is_move = ["COUNTER.ADD", "COUNTER.TAKE", "COUNTER.REFUND"].iter().any(|name| command.starts_with(name));
            let units = if is_move { before.abs_diff(position(&clients[0], key)) } else { 0 };
            if units > 0 {
                (moves, moved_units) = (moves + 1, moved_units + units);
                let sum = by_key.entry(key.to_owned()).or_default();
                *sum = (sum.0 + 1, sum.1 + units);
            }
        }
        let (commits, committed_units) = logged_commits(&engine);
        let (keys, exposure) = exposure(&clients);
        let totals = CounterTotals { moves, moved_units, commits, committed_units };
        prop_assert_eq!(engine.counter_figures(), CounterFigures { totals, failed: 0, exposure, keys });

        // If every move is sampled and there are at least as many places as keys, the figures of
        // the last minute are exact too.
        let churning = engine.churning(ChurnOrder::Units, 100, clients[0].now_us);
        let found: HashMap<_, _> = churning.keys.iter().filter(|key| key.moves > 0).map(|key| {
            (String::from_utf8_lossy(&key.name).into_owned(), (key.moves, key.units))
        }).collect();
        prop_assert_eq!(found, by_key);
        prop_assert!(churning.keys.iter().all(|key| key.error == 0 && key.is_whole && key.db == 0));
        prop_assert!(churning.keys.is_sorted_by(|one, next| one.units >= next.units));
    }
}

#[test]
fn ratios_are_shares_of_what_would_have_been_written() {
    let totals = CounterTotals { moves: 8, moved_units: 50, commits: 2, committed_units: 10 };
    assert_eq!((totals.write_reduction(), totals.churn()), (0.75, 0.8));
    // Refunds are moves, as takes are. A seat that is taken and given back is churn.
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("COUNTER.CREATE seats LIMIT 10", ":1"),
        ("COUNTER.TAKE seats 4", "*2 :1 :6"),
        ("COUNTER.REFUND seats 3", ":3"),
        ("COUNTER.COMMIT seats", ":1"),
    ]);
    let totals = engine.counter_figures().totals;
    assert_eq!(totals, CounterTotals { moves: 2, moved_units: 7, commits: 1, committed_units: 1 });
    assert_eq!((totals.write_reduction(), totals.churn()), (0.5, 6.0 / 7.0));
}

#[test]
fn an_addition_of_nothing_is_no_move() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[("COUNTER.ADD c 0", ":0"), ("COUNTER.ADD c 0 DURABLE", ":0")]);
    assert_eq!(engine.counter_figures().totals, CounterTotals::default());
}

/// The figures of each key: database, name, moves, units, committed units.
fn reported(keys: &[KeyChurn]) -> Vec<(u8, &str, u64, u64, u64)> {
    let name = |key: &'_ KeyChurn| std::str::from_utf8(&key.name).map(str::to_owned).expect("text");
    keys.iter().map(|key| (key.db, &*name(key).leak(), key.moves, key.units, key.committed)).collect()
}

#[test]
fn the_counters_that_move_most_come_first() {
    let engine = engine();
    engine.set_churn_sample(1, START_US);
    let mut client = Client::new(&engine);
    client.now_us = START_US + MINUTE_US;
    for _ in 0..5 {
        client.expect(&[("COUNTER.ADD often 1", ":1"), ("COUNTER.ADD often -1", ":0")]);
    }
    client.expect(&[
        ("COUNTER.ADD upwards 100", ":100"),
        ("COUNTER.ADD upwards 100", ":200"),
        ("COUNTER.COMMIT upwards", ":200"),
        ("COUNTER.ADD once 40", ":40"),
    ]);
    client.db = 3;
    client.expect(&[("COUNTER.ADD once -60", ":-60")]);
    let top = |order| engine.churning(order, 10, client.now_us);
    let by_moves = top(ChurnOrder::Moves);
    assert_eq!((by_moves.sample, by_moves.window_ms), (1, 30_000));
    assert_eq!(
        reported(&by_moves.keys),
        [(0, "often", 10, 10, 0), (0, "upwards", 2, 200, 200), (3, "once", 1, 60, 0), (0, "once", 1, 40, 0)]
    );
    let names = |order| top(order).keys.iter().map(|key| (key.db, key.name.len())).collect::<Vec<_>>();
    assert_eq!(names(ChurnOrder::Units), [(0, 7), (3, 4), (0, 4), (0, 5)]);
    assert_eq!(names(ChurnOrder::Churn), [(3, 4), (0, 4), (0, 5), (0, 7)]);
    assert_eq!(engine.churning(ChurnOrder::Moves, 1, client.now_us).keys.len(), 1);

    client.now_us += MINUTE_US;
    assert!(
        engine.churning(ChurnOrder::Moves, 10, client.now_us).keys.is_empty(),
        "they have not moved for a minute"
    );
}

#[test]
fn another_sample_begins_anew_and_none_costs_what_was_seen() {
    let engine = engine();
    let client = Client::new(&engine);
    let keys = || engine.churning(ChurnOrder::Moves, 10, client.now_us).keys.len();
    client.run("COUNTER.ADD c 1");
    assert_eq!(keys(), 0, "no client has asked");
    engine.set_churn_sample(1, START_US);
    client.run("COUNTER.ADD c 1");
    engine.set_churn_sample(1, START_US);
    assert_eq!(keys(), 1, "the same as before changes nothing");
    engine.set_churn_sample(2, START_US);
    assert_eq!(keys(), 0);
    engine.set_churn_sample(0, START_US);
    client.run("COUNTER.ADD c 1");
    let churning = engine.churning(ChurnOrder::Moves, 10, client.now_us);
    assert_eq!((churning.sample, churning.window_ms, churning.keys.len()), (0, 0, 0));
}

#[test]
fn heavy_hitters_are_reported_first() {
    // Ten thousand keys that move once, far more than there are places, and three that move often.
    let engine = engine();
    engine.set_churn_sample(1, START_US);
    let client = Client::new(&engine);
    for number in 0..10_000 {
        client.run(&format!("COUNTER.ADD seldom:{number} 1"));
        if number % 10 == 0 {
            for name in ["one", "two", "three"] {
                client.run(&format!("COUNTER.ADD {name} 1"));
            }
        }
    }
    let top = engine.churning(ChurnOrder::Moves, 3, client.now_us);
    let mut names: Vec<_> = reported(&top.keys).iter().map(|key| key.1.to_owned()).collect();
    names.sort();
    assert_eq!(names, ["one", "three", "two"]);
    for key in &top.keys {
        assert!(key.moves <= 1000 && 1000 <= key.moves + key.error, "{key:?}");
        // A shard has some 1,600 moves here, which share 64 places.
        assert!(key.error <= 40, "{key:?}");
    }
}
