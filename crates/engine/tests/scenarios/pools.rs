//! Pools: what they grant, which records they write, and that no item is granted twice.

use crate::support;
use crate::support::{Client, START_US, engine, replayed, transaction};
use std::collections::BTreeMap;
use tidemark_engine::watch::{Filter, Read};
use tidemark_engine::{Engine, Protocol};
use tidemark_pool::{Numbers, Secret};

/// The words of an answer without the lengths of its texts.
fn plain(answer: &str) -> Vec<&str> {
    answer.split(' ').filter(|word| !word.starts_with('$') || *word == "$-1").collect()
}

/// The word after a name in an answer.
fn field<'a>(answer: &'a str, name: &str) -> &'a str {
    let words = plain(answer);
    let at = words.iter().position(|word| *word == name).unwrap_or_else(|| panic!("{name} in {answer}"));
    words[at + 1]
}

/// The remaining stock and the number of draws of each item, by `POOL.STATE`.
fn stocks(client: &Client<'_>, key: &str) -> BTreeMap<String, (String, u64)> {
    let state = client.run(&format!("POOL.STATE {key} COUNT 100000"));
    let words = plain(&state);
    let entries = words.windows(2).enumerate().filter(|(_, pair)| pair[0] == "id");
    entries
        .map(|(at, pair)| {
            let after = &words[at..];
            let left = after[after.iter().position(|word| *word == "left").expect("left") + 1];
            let drawn = after[after.iter().position(|word| *word == "drawn").expect("drawn") + 1];
            (pair[1].to_owned(), (left.to_owned(), drawn[1..].parse().expect("a number")))
        })
        .collect()
}

/// Draws `times` times. Returns how often each item was drawn.
fn draws(client: &Client<'_>, key: &str, times: usize) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for _ in 0..times {
        let answer = client.run(&format!("POOL.DRAW {key}"));
        *counts.entry((*plain(&answer).last().expect("a word")).to_owned()).or_default() += 1;
    }
    counts
}

/// Replays the log and checks that the state is the same. Returns the replica.
fn comes_back(engine: &Engine) -> Engine {
    let again = replayed(engine);
    assert_eq!(again.digest(), engine.digest());
    again
}

#[test]
fn a_pool_is_a_type_of_its_own() {
    let engine = engine();
    let client = Client::new(&engine);
    let created = client.run("POOL.CREATE raffle ITEMS car 1 1 mug 9 UNLIMITED");
    assert_eq!(field(&created, "items"), ":2");
    assert_eq!(field(&created, "commitment").len(), 64);
    assert_ne!(field(&created, "commitment"), field(&created, "next-commitment"));
    client.expect(&[
        ("TYPE raffle", "+pool"),
        ("OBJECT ENCODING raffle", "$4 tree"),
        ("GET raffle", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("SET text x", "+OK"),
        ("POOL.DRAW text", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("POOL.STATE text", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("POOL.DROP text", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        (
            "POOL.CREATE text ITEMS car 1 1",
            "-WRONGTYPE Operation against a key holding the wrong kind of value",
        ),
        (
            "POOL.CREATE raffle ITEMS car 1 1",
            "-ERR the pool exists: POOL.UPDATE changes it, and POOL.DROP removes it",
        ),
        ("COPY raffle other", "-ERR a pool cannot be copied: RENAME moves it, and POOL.CREATE makes another"),
        ("POOL.LIST 0 COUNT 1000", "*2 $1 0 *1 $6 raffle"),
        ("RENAME raffle prizes", "+OK"),
        ("POOL.DRAW raffle", "-ERR no such pool, POOL.CREATE makes one"),
        ("POOL.DROP prizes", ":1"),
        ("POOL.DROP prizes", ":0"),
        ("POOL.STATE prizes", "$-1"),
        ("POOL.ODDS prizes", "$-1"),
        ("POOL.HISTORY prizes", "$-1"),
        ("POOL.REVEAL prizes", "$-1"),
    ]);
    comes_back(&engine);
}

#[test]
fn every_unit_is_given_once_and_then_the_pool_is_empty() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("POOL.CREATE raffle ITEMS car 1 1 mug 9 2");
    let drawn = draws(&client, "raffle", 3);
    assert_eq!(drawn, BTreeMap::from([("car".to_owned(), 1), ("mug".to_owned(), 2)]));
    client.expect(&[
        ("POOL.DRAW raffle", "-EMPTY the pool is empty: restock it, or add items"),
        ("POOL.RESTOCK raffle mug 5", ":5"),
    ]);
    assert_eq!(plain(&client.run("POOL.DRAW raffle")), ["*2", ":3", "mug"], "what was refused has no number");
    let again = comes_back(&engine);
    assert_eq!(stocks(&Client::new(&again), "raffle")["mug"], (":4".to_owned(), 3));
}

#[test]
fn several_draws_at_once_are_all_or_nothing() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("POOL.CREATE raffle ITEMS car 1 1 mug 9 3");
    client.expect(&[
        (
            "POOL.DRAW raffle COUNT 5",
            "-EMPTY 5 draws are wanted and only 4 are possible: ask for fewer, or restock",
        ),
        (
            "POOL.DRAW raffle COUNT 3 UNIQUE",
            "-EMPTY 3 different items are wanted and only 2 are left: ask for fewer, or allow repeats",
        ),
        (
            "POOL.DRAW raffle COUNT 0",
            "-ERR 0 draws at once are wanted, 1 to 1048576 are possible: ask several times",
        ),
        (
            "POOL.DRAW raffle COUNT",
            "-ERR syntax error: POOL.DRAW ends after 'COUNT', where it takes a whole number (count)",
        ),
        (
            "POOL.DRAW raffle TWICE",
            "-ERR syntax error: POOL.DRAW takes COUNT, UNIQUE, USER or REQUEST after 'raffle', not 'TWICE'",
        ),
    ]);
    assert_eq!(stocks(&client, "raffle")["car"], (":1".to_owned(), 0));
    let different = client.run("POOL.DRAW raffle COUNT 2 UNIQUE");
    let mut ids: Vec<&str> =
        plain(&different).into_iter().filter(|word| !word.starts_with([':', '*'])).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["car", "mug"]);
    assert_eq!(client.run("POOL.DRAW raffle COUNT 2"), "*2 *2 :2 $3 mug *2 :3 $3 mug");
    comes_back(&engine);
}

/// The number of possible draws, if a refusal names it.
fn retry_at(answer: &str) -> Option<u64> {
    answer.split_once("only ")?.1.split(' ').next()?.parse().ok()
}

#[test]
fn a_refusal_does_not_say_which_draw_takes_the_last_prize() {
    let engine = engine();
    let client = Client::new(&engine);
    let (mut returned, mut predicted) = (0, 0);
    for pool in 0..20 {
        client.run(&format!("POOL.CREATE {pool} SOLDOUT NOPRIZE ITEMS car 1 3 mug 9 30"));
        let greedy = client.run(&format!("POOL.DRAW {pool} COUNT 100000"));
        if let Some(last) = retry_at(&greedy) {
            returned += 1;
            // Draws the same numbers one by one: only the draw that the refusal named takes the
            // last prize.
            let is_any_left = || stocks(&client, &pool.to_string()).values().any(|(left, _)| left != ":0");
            (1..last).for_each(|_| _ = client.run(&format!("POOL.DRAW {pool}")));
            let was_left = is_any_left();
            client.run(&format!("POOL.DRAW {pool}"));
            predicted += u32::from(was_left && !is_any_left());
            continue;
        }
        let answer = plain(&greedy);
        assert_eq!((answer[0], answer[1], answer[2]), ("*100000", "*2", ":0"));
        let prizes = answer.iter().filter(|word| ["car", "mug"].contains(word)).count();
        assert_eq!(prizes, 33, "all that was there");
        let empty = "-EMPTY the pool is empty: restock it, or add items";
        client.expect(&[
            (&format!("POOL.DRAW {pool} COUNT 2"), empty),
            (&format!("POOL.DRAW {pool} UNIQUE"), empty),
            (&format!("POOL.HISTORY {pool} COUNT 1"), "*1 *3 :99999 :1767225600000 $-1"),
        ]);
    }
    assert_eq!((returned, predicted), (0, 0), "pools of 20 that returned a number, and where that was right");
    comes_back(&engine);
}

#[test]
fn a_call_beyond_what_is_left_is_answered_again_as_it_was() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("POOL.CREATE box SOLDOUT NOPRIZE LIMIT WINS 2 OF 1 car ITEMS car 1 5");
    let ask = "POOL.DRAW box COUNT 4 USER mira REQUEST order-17";
    let first = client.run(ask);
    assert_eq!(first, "*4 *2 :0 $3 car *2 :1 $3 car *2 :2 $-1 *2 :3 $-1");
    assert_eq!(client.run(ask), first);
    let reserved = client.run("POOL.RESERVE box 1000 COUNT 3 UNIQUE USER noah");
    assert_eq!(plain(&reserved)[..3], ["*6", "reservation", ":4"]);
    let again = comes_back(&engine);
    assert_eq!(Client::new(&again).run(ask), first);
}

#[test]
fn what_is_sold_out_leads_where_the_rule_says() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("POOL.CREATE nothing SOLDOUT NOPRIZE ITEMS car 1000000 1 mug 1 5");
    let drawn = draws(&client, "nothing", 50);
    assert_eq!(drawn["car"], 1);
    assert!(drawn["$-1"] > 10, "{drawn:?}");
    client.run("POOL.CREATE other SOLDOUT FALLBACK mug ITEMS car 1000000 1 mug 0 UNLIMITED");
    assert_eq!(draws(&client, "other", 50), BTreeMap::from([("car".to_owned(), 1), ("mug".to_owned(), 49)]));
    client.run("POOL.CREATE tickets MODE UNIT SELECTOR fenwick ITEMS car 1 2 mug 1 3");
    assert_eq!(draws(&client, "tickets", 5), BTreeMap::from([("car".to_owned(), 2), ("mug".to_owned(), 3)]));
    let state = client.run("POOL.STATE tickets");
    assert_eq!((field(&state, "mode"), field(&state, "selector")), ("per-unit", "fenwick"));
    let state = client.run("POOL.STATE other");
    assert!(state.contains("$8 sold-out $8 fallback $8 fallback $3 mug "), "{state}");
    comes_back(&engine);
}

#[test]
fn pool_changes_are_published_when_durable_unless_the_pool_follows_the_server() {
    let engine = engine();
    let client = Client::new(&engine);
    for (options, is_durable) in [("", true), ("DURABILITY always", true), ("DURABILITY server", false)] {
        client.run("DEL p");
        let items = "ITEMS car 1 1000 mug 9 UNLIMITED";
        for command in [
            &format!("POOL.CREATE p {options} {items}"),
            "POOL.DRAW p",
            "POOL.DRAW p COUNT 2 REQUEST one",
            "POOL.DRAW p COUNT 2 REQUEST one",
            "POOL.RESERVE p 60000",
            "POOL.RESERVATIONS p",
            "POOL.CONFIRM p 3",
            "POOL.CONFIRM p 3",
            "POOL.RESERVE p 60000",
            "POOL.CANCEL p 4",
            "POOL.HISTORY p",
            "POOL.RETURN p mug",
            "POOL.UPDATE p WEIGHT car 2",
            "POOL.RESTOCK p car 5",
            "POOL.DROP p",
        ] {
            let (answer, executed) = client.execute(command);
            assert!(!answer.starts_with('-'), "{command}: {answer}");
            let returned = (executed.durable, executed.lsn.is_some());
            let waits = is_durable || !command.contains("RESERVATIONS") && !command.contains("HISTORY");
            assert_eq!(returned, (is_durable, waits), "{command} behind '{options}'");
        }
        client.run(&format!("POOL.CREATE p {options} {items}"));
        let again = comes_back(&engine);
        let name = if is_durable { "always" } else { "server" };
        for engine in [&engine, &again] {
            assert_eq!(field(&Client::new(engine).run("POOL.STATE p"), "durability"), name);
        }
    }
    client.expect(&[(
        "POOL.CREATE q DURABILITY never ITEMS car 1 1",
        "-ERR the durability must be ALWAYS or SERVER",
    )]);
}

#[test]
fn a_catalogue_is_read_from_text_or_says_what_is_wrong() {
    let engine = engine();
    let client = Client::new(&engine);
    let execute = |args: &[&str]| {
        let line: Vec<String> = args.iter().map(|arg| format!("\"{arg}\"")).collect();
        client.run(&line.join(" "))
    };
    let yaml =
        "items:\n  - {id: car, weight: 0.5, quantity: 1}\n  - {id: mug, weight: 99.5, quantity: unlimited}\n";
    assert_eq!(field(&execute(&["POOL.CREATE", "yaml", "YAML", yaml]), "items"), ":2");
    assert_eq!(field(&client.run("POOL.ODDS yaml"), "total-weight"), ":1000");
    let wrong = execute(&["POOL.CREATE", "wrong", "YAML", "items: []"]);
    assert!(wrong.starts_with("-ERR "), "{wrong}");
    assert!(!wrong.contains('\n'), "{wrong}");
    for (args, error) in [
        (&["ITEMS", "car", "1"][..], "-ERR ITEMS takes an id, a weight and a quantity for each item"),
        (
            &["ITEMS", "car", "0.5", "1"],
            "-ERR a weight must be a whole number from 0 to 9223372036854775807, and \"0.5\" is none: multiply all weights by the same power of ten, or send JSON",
        ),
        (
            &["ITEMS", "car", "1", "-1"],
            "-ERR a quantity must be a whole number from 0 to 9223372036854775807, or UNLIMITED, and \"-1\" is neither",
        ),
        (
            &["MODE", "UNIT", "TABLE", "wheels", "1", "car", "1", "1", "ITEMS", "rare", "1", "TABLE:wheels"],
            "-ERR tables inside of tables go with fixed odds alone: leave them out, or let the mode be fixed odds",
        ),
        (
            &["ITEMS", "car", "1", "1", "car", "1", "1"],
            "-ERR item 2 has the id \"car\" of item 1: give each item an id of its own",
        ),
        (&["MODE", "SIDEWAYS", "ITEMS", "car", "1", "1"], "-ERR the mode must be FIXED or UNIT"),
        (
            &["SELECTOR", "HEAP", "ITEMS", "car", "1", "1"],
            "-ERR the selector must be TREE, ALIAS, FENWICK or PREFIX-SUM",
        ),
        (
            &["SOLDOUT", "LATER", "ITEMS", "car", "1", "1"],
            "-ERR SOLDOUT must be RENORMALISE, NOPRIZE or FALLBACK and an item's id",
        ),
        (
            &["MODE", "UNIT", "JSON", "{}"],
            "-ERR a catalogue as text says its mode, rules, schedule and tables itself, and stands at the end",
        ),
        (
            &["MODE", "UNIT"],
            "-ERR syntax error: POOL.CREATE ends after 'UNIT', where it takes SELECTOR, DURABILITY, FROM, MODE, SOLDOUT, LIMIT, GUARANTEE, SCHEDULE, TABLE, JSON, YAML, TOML or ITEMS",
        ),
        (
            &["CARS", "1"],
            "-ERR syntax error: POOL.CREATE takes SELECTOR, DURABILITY, FROM, MODE, SOLDOUT, LIMIT, GUARANTEE, SCHEDULE, TABLE, JSON, YAML, TOML or ITEMS after 'wrong', not 'CARS'",
        ),
    ] {
        let line: Vec<&str> = ["POOL.CREATE", "wrong"].iter().chain(args).copied().collect();
        let answer = client.run(&line.join(" "));
        assert_eq!(answer, error, "{args:?}");
    }
    assert_eq!(client.run("EXISTS wrong"), ":0");
    comes_back(&engine);
}

#[test]
fn what_is_set_aside_is_confirmed_or_cancelled_once() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("POOL.CREATE raffle ITEMS seat 1 2");
    let until = START_US / 1000 + 1000;
    let reserved = client.run("POOL.RESERVE raffle 1000 COUNT 2");
    assert_eq!((field(&reserved, "reservation"), field(&reserved, "until")), (":0", &*format!(":{until}")));
    client.expect(&[
        ("POOL.DRAW raffle", "-EMPTY the pool is empty: restock it, or add items"),
        (
            "POOL.CONFIRM raffle 1",
            "-NORESERVATION there is no reservation 1, or it has ended long ago: look up the open ones",
        ),
        ("POOL.CANCEL raffle 0", ":1"),
        ("POOL.CANCEL raffle 0", ":0"),
        ("POOL.CONFIRM raffle 0", "-ENDED reservation 0 is over: it was cancelled"),
        ("POOL.DRAW raffle", "*2 :2 $4 seat"),
    ]);
    client.run("POOL.RESERVE raffle 1000");
    assert_eq!(field(&client.run("POOL.STATE raffle"), "reserved"), ":1");
    client.expect(&[
        ("POOL.CONFIRM raffle 3", ":1"),
        ("POOL.CONFIRM raffle 3", ":0"),
        ("POOL.RESERVATIONS raffle", "*0"),
        ("POOL.RETURN raffle seat 2", ":2"),
        (
            "POOL.RETURN raffle seat 1",
            "-ERR 1 of \"seat\" would be given back, but only 0 have been drawn: restock to add others",
        ),
        ("POOL.RETURN raffle car", "-NOITEM there is no item \"car\": look up the ids in the pool's state"),
    ]);
    comes_back(&engine);
}

#[test]
fn reservations_are_returned_at_their_deadline_without_a_request() {
    let engine = engine();
    let mut client = Client::new(&engine);
    client.run("POOL.CREATE raffle ITEMS seat 1 1");
    client.run("POOL.CREATE quiet ITEMS seat 1 1");
    client.run("POOL.RESERVE raffle 1000");
    client.run("POOL.RESERVE quiet 2000");
    let until_ms = START_US / 1000;
    assert_eq!(engine.expire_due(client.now_us, 100), Some(until_ms + 1000));
    client.sleep_ms(1000);
    // The next draw gets the item of the expired reservation.
    assert_eq!(client.run("POOL.DRAW raffle"), "*2 :1 $4 seat");
    assert_eq!(
        client.run("POOL.CONFIRM raffle 0"),
        "-ENDED reservation 0 is over: it has expired",
        "too late"
    );
    assert_eq!(engine.expire_due(client.now_us, 100), Some(until_ms + 2000));
    client.sleep_ms(1000);
    assert_eq!(engine.expire_due(client.now_us, 100), None);
    assert_eq!(stocks(&client, "quiet")["seat"], (":1".to_owned(), 0));
    assert_eq!(client.run("POOL.EXPIRE quiet"), ":0");
    // The reservation has expired, but no command has removed it: a confirmation is late all the
    // same.
    client.run("POOL.RESERVE quiet 5");
    client.sleep_ms(5);
    assert_eq!(client.run("POOL.CONFIRM quiet 1"), "-ENDED reservation 1 is over: it has expired");
    assert_eq!(client.run("POOL.CANCEL quiet 1"), "-ENDED reservation 1 is over: it has expired");
    comes_back(&engine);
}

/// Any number of reservations may have expired at once, as after a downtime of the server.
#[test]
fn the_first_draw_after_a_deadline_has_all_returned_stock() {
    let engine = engine();
    let mut client = Client::new(&engine);
    client.run("POOL.CREATE raffle ITEMS seat 1 5000");
    for _ in 0..5000 {
        client.run("POOL.RESERVE raffle 1000");
    }
    client.sleep_ms(1000);
    // POOL.EXPIRE works in batches, so no client waits for all of the work.
    assert_eq!(client.run("POOL.EXPIRE raffle"), ":4096");
    let drawn = client.run("POOL.DRAW raffle COUNT 5000");
    assert_eq!(plain(&drawn).iter().filter(|word| **word == "seat").count(), 5000);
    assert_eq!(stocks(&client, "raffle")["seat"], (":0".to_owned(), 5000));
    comes_back(&engine);
}

/// A secret that a client has seen must not draw again after a crash.
#[test]
fn a_secret_is_revealed_when_the_end_of_its_epoch_is_durable() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("POOL.CREATE raffle DURABILITY SERVER ITEMS mug 1 UNLIMITED");
    assert!(!client.execute("POOL.DRAW raffle").1.durable);
    let (revealed, executed) = client.execute("POOL.EPOCH raffle");
    let secret = field(&revealed, "secret").to_owned();
    assert!(executed.durable && executed.lsn.is_some());
    let (shown, executed) = client.execute("POOL.REVEAL raffle");
    assert_eq!(field(&shown, "secret"), secret);
    assert!(executed.durable && executed.lsn.is_some(), "it may be on its way");
    let (nothing, executed) = client.execute("POOL.REVEAL raffle 7");
    assert_eq!((nothing.as_str(), executed.durable), ("$-1", false));
}

#[test]
fn reservations_that_have_moved_or_come_back_with_the_log_end_as_well() {
    let engine = engine();
    let mut client = Client::new(&engine);
    client.run("POOL.CREATE raffle ITEMS seat 1 1");
    client.run("POOL.RESERVE raffle 1000");
    client.expect(&[("RENAME raffle moved", "+OK"), ("MOVE moved 3", ":1")]);
    let again = replayed(&engine);
    client.sleep_ms(1000);
    for engine in [&engine, &again] {
        assert_eq!(engine.next_deadline(), Some(client.now_us / 1000));
        engine.expire_due(client.now_us, 100);
        let there = Client { db: 3, ..Client::new(engine) };
        assert_eq!(stocks(&there, "moved")["seat"], (":1".to_owned(), 0));
    }
    client.run("POOL.CREATE gone ITEMS seat 1 1");
    client.run("POOL.RESERVE gone 1000");
    client.run("DEL gone");
    assert_eq!(engine.expire_due(client.now_us, 100), None, "what is gone is not waited for");
}

/// The remaining cars, by `POOL.STATE`.
fn cars(client: &Client<'_>) -> String {
    stocks(client, "raffle")["car"].0.clone()
}

#[test]
fn stock_is_released_and_lapses_on_schedule_without_a_request() {
    let engine = engine();
    let mut client = Client::new(&engine);
    let at = START_US / 1000;
    let daily = format!("SCHEDULE car 4 FROM {} EVERY 1000 TIMES 2 LAPSES", at + 1000);
    client.run(&format!("POOL.CREATE raffle {daily} SCHEDULE car 1 FROM {} ITEMS car 1 0", at + 2500));
    let next = |at_ms: u64| {
        format!(
            "-EMPTY nothing is left to draw now: the schedule goes on at {at_ms}, in milliseconds since 1970"
        )
    };
    assert_eq!(client.run("POOL.DRAW raffle"), next(at + 1000));
    assert_eq!(engine.next_deadline(), Some(at + 1000), "it is checked by then without a draw");
    client.sleep_ms(1000);
    // The next draw gets the released item.
    assert_eq!(client.run("POOL.DRAW raffle"), "*2 :0 $3 car");
    let state = client.run("POOL.STATE raffle");
    assert_eq!(
        (field(&state, "released-until"), field(&state, "next-release")),
        (&*format!(":{}", at + 1000), &*format!(":{}", at + 2000))
    );
    assert_eq!(
        (field(&state, "left"), field(&state, "to-come"), field(&state, "version")),
        (":1", ":3", ":1")
    );
    assert_eq!(field(&client.run("POOL.ODDS raffle"), "next-release"), format!(":{}", at + 2000));
    // No client sends a command.
    client.sleep_ms(1000);
    assert_eq!(engine.expire_due(client.now_us, 100), Some(at + 2500));
    assert_eq!(cars(&client), ":2", "one has lapsed, two have come");
    let releases = client.run("POOL.SCHEDULE raffle COUNT 1");
    let expected = format!(
        "*8 $14 released-until :{} $12 next-release :{} $8 releases *1 *16 $2 id $3 car $5 units :4 $4 from :{} $5 every :1000 $5 \
         times :2 $6 unsold $6 lapses $8 released :4 $4 next :{} $4 next :1",
        at + 2000,
        at + 2500,
        at + 1000,
        at + 3000
    );
    assert_eq!(releases, expected);
    let mut again = replayed(&engine);
    client.sleep_ms(1000);
    for engine in [&engine, &again] {
        assert_eq!(engine.expire_due(client.now_us, 100), None);
        assert_eq!(cars(&Client::new(engine)), ":0", "with the last window all that is left is over");
    }
    again = comes_back(&engine);
    assert_eq!(engine.digest(), again.digest());
    assert_eq!(client.run("POOL.DRAW raffle"), "-EMPTY the pool is empty: restock it, or add items");
    assert_eq!(client.run("POOL.EXPIRE raffle"), ":0");
}

#[test]
fn an_item_may_lead_to_a_table_that_gives_one_of_its_own() {
    let engine = engine();
    let client = Client::resp3(&engine);
    let tables = "TABLE wheels 2 car 1 1 other 4 TABLE:small TABLE small 1 bicycle 1 2";
    client.run(&format!("POOL.CREATE raffle {tables} ITEMS mug 60 UNLIMITED rare 40 table:wheels"));
    let state = client.run("POOL.STATE raffle");
    assert_eq!((field(&state, "total-weight"), field(&state, "items")), (":100", ":5"));
    let of = |answer: &str, id: &str, name: &str| {
        let words = plain(answer).into_iter().map(str::to_owned).collect::<Vec<_>>();
        let at = words.windows(2).position(|pair| pair == ["id", id]).expect("the item");
        let behind = words[at..].iter().position(|word| word == name).expect("the field");
        words[at + behind + 1].clone()
    };
    for (id, table, leads_to) in [
        ("mug", "_", "_"),
        ("rare", "_", "wheels"),
        ("car", "wheels", "_"),
        ("other", "wheels", "small"),
        ("bicycle", "small", "_"),
    ] {
        assert_eq!((&*of(&state, id, "table"), &*of(&state, id, "leads-to")), (table, leads_to), "{id}");
    }
    let odds =
        |id: &str| of(&client.run("POOL.ODDS raffle"), id, "odds")[1..].parse::<f64>().expect("a number");
    let shares = ["mug", "rare", "car", "other", "bicycle"].map(odds);
    for (share, expected) in shares.into_iter().zip([0.6, 0.4, 0.08, 0.32, 0.32]) {
        assert!((share - expected).abs() < 1e-12, "{share} for {expected}");
    }
    let drawn = draws(&client, "raffle", 200);
    assert_eq!(
        drawn,
        BTreeMap::from([("bicycle".to_owned(), 2), ("car".to_owned(), 1), ("mug".to_owned(), 197)])
    );
    assert_eq!(field(&client.run("POOL.ODDS raffle"), "total-weight"), ":60", "the tables are sold out");
    client.expect(&[
        ("POOL.UPDATE raffle STOCK rare 5", "-ERR \"rare\" leads to a table, and has no stock of its own: change the items of the table"),
        ("POOL.RESTOCK raffle bicycle 1", ":1"),
        ("POOL.CREATE other TABLE wheels 0 ITEMS a 1 1", "-ERR TABLE takes a name and how many items there are"),
        ("POOL.CREATE other TABLE wheels 9 a 1 1 ITEMS a 1 1", "-ERR syntax error: POOL.CREATE ends after '1', where it takes weight"),
        ("POOL.CREATE other ITEMS a 1 TABLE:wheels", "-ERR the item \"a\" leads to the table \"wheels\", which is not there: name one of the tables"),
        ("POOL.CREATE other MODE UNIT TABLE t 1 x 1 1 ITEMS a 0 TABLE:t b 1 1", "-ERR tables inside of tables go with fixed odds alone: leave them out, or let the mode be fixed odds"),
    ]);
    assert_eq!(field(&client.run("POOL.ODDS raffle"), "total-weight"), ":100");
    comes_back(&engine);
    let (frames, _) = snapshot_of(&engine, || {});
    let again = loaded(&frames);
    assert_eq!(again.digest(), engine.digest());
    assert_eq!(Client::resp3(&again).run("POOL.STATE raffle"), client.run("POOL.STATE raffle"));
}

#[test]
fn a_schedule_that_makes_no_sense_is_refused() {
    let engine = engine();
    let client = Client::new(&engine);
    let said = |schedule: &str| {
        client.run(&format!("POOL.CREATE raffle SCHEDULE {schedule} ITEMS car 1 0 mug 1 UNLIMITED"))
    };
    for (schedule, message) in [
        (
            "hat 1 FROM 5",
            "-ERR release 1 is of the item \"hat\", which is not there: name one of the catalogue",
        ),
        (
            "mug 1 FROM 5",
            "-ERR release 1 is of the item \"mug\", which is unlimited: give it a quantity, which may be 0",
        ),
        (
            "car 1 AT 5",
            "-ERR SCHEDULE takes an id, how many units come, FROM and when, in milliseconds since 1970",
        ),
        (
            "car x FROM 5",
            "-ERR value is not an integer or out of range: POOL.CREATE takes a whole number (units) after 'car', not 'x'",
        ),
        (
            "car 1 FROM 5 EVERY 0",
            "-ERR release 1: its window in milliseconds is 0, and must be 1 to 315619200000",
        ),
        (
            "car 1 FROM 5 TIMES 2",
            "-ERR syntax error: POOL.CREATE takes EVERY, SELECTOR, DURABILITY, FROM, MODE, SOLDOUT, LIMIT, GUARANTEE, SCHEDULE, TABLE, JSON, YAML, TOML or ITEMS after '5', not 'TIMES'",
        ),
        (
            "car 1 FROM 5 LAPSES",
            "-ERR syntax error: POOL.CREATE takes EVERY, SELECTOR, DURABILITY, FROM, MODE, SOLDOUT, LIMIT, GUARANTEE, SCHEDULE, TABLE, JSON, YAML, TOML or ITEMS after '5', not 'LAPSES'",
        ),
    ] {
        assert_eq!(said(schedule), message, "{schedule}");
    }
    let text = "POOL.CREATE raffle SCHEDULE car 1 FROM 5 JSON {}";
    assert_eq!(
        client.run(text),
        "-ERR a catalogue as text says its mode, rules, schedule and tables itself, and stands at the end"
    );
    assert_eq!(client.run("POOL.SCHEDULE raffle"), "$-1");
    client.run("POOL.CREATE raffle ITEMS car 1 0");
    assert_eq!(
        client.run("POOL.SCHEDULE raffle"),
        "*8 $14 released-until :0 $12 next-release $-1 $8 releases *0 $4 next $-1"
    );
}

#[test]
fn a_catalogue_changes_while_draws_go_on_all_that_is_said_or_nothing() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("POOL.CREATE raffle ITEMS car 1 1 mug 9 UNLIMITED");
    client.expect(&[
        ("POOL.UPDATE raffle WEIGHT car 5 STOCK mug 7 ADD hat 4 2", ":4"),
        (
            "POOL.UPDATE raffle WEIGHT car 6 REMOVE shoe",
            "-NOITEM there is no item \"shoe\": look up the ids in the pool's state",
        ),
        ("POOL.UPDATE raffle WEIGHT car", "-ERR syntax error: POOL.UPDATE ends after 'car', where it takes weight"),
        ("POOL.UPDATE none WEIGHT car 1", "-ERR no such pool, POOL.CREATE makes one"),
        ("POOL.UPDATE raffle REMOVE car", ":5"),
        ("POOL.RESTOCK raffle hat -5", ":0"),
        ("POOL.RESTOCK raffle mug x", "-ERR value is not an integer or out of range: POOL.RESTOCK takes a whole number (units) after 'mug', not 'x'"),
    ]);
    let state = client.run("POOL.STATE raffle");
    assert_eq!((field(&state, "version"), field(&state, "total-weight")), (":6", ":9"));
    assert_eq!(draws(&client, "raffle", 7), BTreeMap::from([("mug".to_owned(), 7)]));
    comes_back(&engine);
}

#[test]
fn the_odds_are_those_of_the_next_draw() {
    let engine = engine();
    let client = Client::resp3(&engine);
    client.run("POOL.CREATE raffle SOLDOUT FALLBACK mug ITEMS car 3 1 mug 1 UNLIMITED");
    let odds = |key: &str| {
        let answer = client.run(&format!("POOL.ODDS {key}"));
        let words = plain(&answer).into_iter().map(str::to_owned).collect::<Vec<_>>();
        let of = |name: &str| {
            let at = words.windows(2).position(|pair| pair == ["id", name]).expect("the item");
            words[at + 5].clone()
        };
        let at = words.iter().position(|word| word == "nothing").expect("a field");
        (of("car"), of("mug"), words[at + 1].clone())
    };
    let expected = |car: &str, mug: &str, nothing: &str| (car.to_owned(), mug.to_owned(), nothing.to_owned());
    assert_eq!(odds("raffle"), expected(",0.75", ",0.25", ",0"));
    client.run("POOL.UPDATE raffle STOCK car 0");
    assert_eq!(odds("raffle"), expected(",0", ",1", ",0"));
    client.run("POOL.CREATE strict SOLDOUT NOPRIZE ITEMS car 3 0 mug 1 1");
    assert_eq!(odds("strict"), expected(",0", ",0.25", ",0.75"));
    client.run("POOL.UPDATE strict STOCK mug 0");
    assert_eq!(odds("strict"), expected(",0", ",0", ",0"), "draws are refused");
    client.run("POOL.CREATE tickets MODE UNIT SOLDOUT FALLBACK mug ITEMS car 1 1 mug 0 UNLIMITED");
    assert_eq!(odds("tickets"), expected(",1", ",0", ",0"));
    client.run("POOL.DRAW tickets");
    assert_eq!(odds("tickets"), expected(",0", ",1", ",0"));
}

#[test]
fn large_catalogues_are_shown_in_pages() {
    let engine = engine();
    let client = Client::new(&engine);
    let items: Vec<String> = (0..1500).map(|item| format!("item{item} 1 UNLIMITED")).collect();
    client.run(&format!("POOL.CREATE large ITEMS {}", items.join(" ")));
    client.run("POOL.UPDATE large REMOVE item3");
    for read in ["STATE", "ODDS"] {
        let first = client.run(&format!("POOL.{read} large"));
        assert_eq!((first.matches(" id ").count(), field(&first, "next")), (999, ":1000"));
        let second = client.run(&format!("POOL.{read} large FROM 1000"));
        assert_eq!((second.matches(" id ").count(), field(&second, "next")), (500, "$-1"));
        let few = client.run(&format!("POOL.{read} large FROM 1 COUNT 2"));
        assert_eq!((few.matches(" id ").count(), field(&few, "id"), field(&few, "next")), (2, "item1", ":3"));
        let none = client.run(&format!("POOL.{read} large FROM 9999"));
        assert_eq!((none.matches(" id ").count(), field(&none, "next")), (0, "$-1"));
        let error = format!(
            "-ERR syntax error: POOL.{read} ends after 'FROM', where it takes a whole number (start)"
        );
        client.expect(&[(&format!("POOL.{read} large FROM"), &error)]);
    }
}

#[test]
fn an_epochs_secret_is_shown_when_it_is_over() {
    let engine = engine();
    let client = Client::new(&engine);
    let created = client.run("POOL.CREATE raffle ITEMS car 1 UNLIMITED mug 9 UNLIMITED");
    draws(&client, "raffle", 10);
    assert_eq!(client.run("POOL.REVEAL raffle"), "$-1");
    let begun = client.run("POOL.EPOCH raffle SEED luck");
    assert_eq!(field(&begun, "commitment"), field(&created, "commitment"), "of what is shown");
    let shown = client.run("POOL.REVEAL raffle 0");
    assert_eq!(client.run("POOL.REVEAL raffle"), shown);
    assert_eq!((field(&shown, "first-draw"), field(&shown, "end")), (":0", ":10"));
    assert_eq!(field(&shown, "secret").len(), 64);
    let state = client.run("POOL.STATE raffle");
    assert_eq!(field(&state, "commitment"), field(&created, "next-commitment"), "as was said before");
    assert_eq!((field(&state, "epoch"), field(&state, "client-seed")), (":1", "luck"));
    client.expect(&[
        ("POOL.REVEAL raffle 1", "$-1"),
        ("POOL.EPOCH raffle LUCK", "-ERR syntax error: POOL.EPOCH takes SEED after 'raffle', not 'LUCK'"),
    ]);
    let again = comes_back(&engine);
    assert_eq!(Client::new(&again).run("POOL.REVEAL raffle"), shown);
}

#[test]
fn the_secret_reproduces_each_draw() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("POOL.CREATE raffle ITEMS a 3 UNLIMITED b 5 UNLIMITED c 11 UNLIMITED");
    let draw = || plain(&client.run("POOL.DRAW raffle")).last().map(|id| (*id).to_owned()).expect("an item");
    let drawn: Vec<Vec<String>> = ["one", "two"]
        .iter()
        .map(|seed| {
            client.run(&format!("POOL.EPOCH raffle SEED {seed}"));
            (0..50).map(|_| draw()).collect()
        })
        .collect();
    client.run("POOL.EPOCH raffle");
    for (epoch, seed, drawn) in [(1, "one", &drawn[0]), (2, "two", &drawn[1])] {
        let shown = client.run(&format!("POOL.REVEAL raffle {epoch}"));
        let secret = field(&shown, "secret").as_bytes().chunks(2).map(|digits| {
            let digits = std::str::from_utf8(digits).expect("digits");
            u8::from_str_radix(digits, 16).expect("hexadecimal")
        });
        let secret = Secret::new(secret.collect::<Vec<u8>>().try_into().expect("32 bytes"));
        assert_eq!(secret.commitment().to_string(), field(&shown, "commitment"));
        let mut numbers = Numbers::new(secret.key(seed.as_bytes()));
        let first: u64 = field(&shown, "first-draw")[1..].parse().expect("a number");
        let again = (first..).zip(drawn).map(|(draw, _)| match numbers.below(draw, 19) {
            0..3 => "a",
            3..8 => "b",
            _ => "c",
        });
        assert!(again.eq(drawn.iter().map(String::as_str)), "{seed}");
    }
}

#[test]
fn the_last_draws_are_remembered_with_their_times() {
    let engine = engine();
    let mut client = Client::new(&engine);
    client.run("POOL.CREATE raffle ITEMS mug 1 UNLIMITED");
    client.run("POOL.DRAW raffle");
    client.sleep_ms(5);
    client.run("POOL.DRAW raffle COUNT 2");
    let (first, second) = (START_US / 1000, START_US / 1000 + 5);
    let all = format!("*3 *3 :2 :{second} $3 mug *3 :1 :{second} $3 mug *3 :0 :{first} $3 mug");
    client.expect(&[
        ("POOL.HISTORY raffle", &all),
        ("POOL.HISTORY raffle COUNT 1", &format!("*1 *3 :2 :{second} $3 mug")),
        ("POOL.HISTORY raffle COUNT 0", "-ERR value is out of range, must be positive"),
    ]);
    client.run("POOL.DRAW raffle COUNT 1000");
    let many = client.run("POOL.HISTORY raffle COUNT 1000");
    assert!(many.starts_with("*256 *3 :1002 "), "{many}");
    let again = comes_back(&engine);
    assert_eq!(Client::new(&again).run("POOL.HISTORY raffle COUNT 1000"), many);
}

#[test]
fn several_commands_on_pools_are_one_change_together() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("POOL.CREATE raffle ITEMS mug 1 2");
    let answer =
        transaction(&engine, None, &["POOL.DRAW raffle", "POOL.RESTOCK raffle mug 4", "POOL.DRAW raffle"]);
    assert_eq!(answer, "*3 *2 :0 $3 mug :5 *2 :1 $3 mug");
    comes_back(&engine);
}

#[test]
fn what_the_log_alone_may_say_clients_may_not() {
    let engine = engine();
    let client = Client::new(&engine);
    for line in ["pool.load k x", "pool.step k x"] {
        let answer = client.run(line);
        assert!(answer.starts_with("-ERR unknown command"), "{answer}");
    }
}

/// A watched read emits when a command changes a pool, and also when a reservation expires. A
/// replay of the log gives the same answers.
#[test]
fn reads_of_pools_are_watched() {
    let engine = engine();
    let mut client = Client::new(&engine);
    client.run("POOL.CREATE raffle ITEMS mug 1 9");
    let filter = || Filter::parse(&[]).expect("no operators");
    let watch = |engine: &Engine, args: &[&[u8]]| {
        let read = Read::new(0, Protocol::Resp2, args, filter()).expect("it can be watched");
        engine.subscribe(read, 0, START_US).expect("a beginning")
    };
    let history = watch(&engine, &[b"POOL.HISTORY", b"raffle", b"COUNT", b"1"]);
    let open = watch(&engine, &[b"POOL.RESERVATIONS", b"raffle"]);
    for read in ["POOL.STATE", "POOL.ODDS", "POOL.REVEAL", "POOL.SCHEDULE"] {
        watch(&engine, &[read.as_bytes(), b"raffle"]);
    }
    client.run("POOL.CREATE box GUARANTEE 9 OF 1 car ITEMS car 0 1 mug 1 9");
    let user = watch(&engine, &[b"POOL.USER", b"box", b"mira"]);
    client.run("POOL.DRAW box USER mira");
    client.run("POOL.DRAW raffle");
    client.run("POOL.RESERVE raffle 10");
    client.sleep_ms(10);
    engine.expire_due(client.now_us, 100);
    let emitted = |subscribed: &tidemark_engine::watch::Subscribed| {
        let mut emissions = Vec::new();
        subscribed.query.emissions_after(0, usize::MAX, &mut emissions).expect("all are retained");
        emissions.iter().map(|emission| support::shown(&emission.answer)).collect::<Vec<_>>()
    };
    let at = START_US / 1000;
    assert_eq!(
        emitted(&history),
        [format!("*1 *3 :0 :{at} $3 mug"), format!("*1 *3 :1 :{at} $3 mug")],
        "the time of what is set aside is that of its draw"
    );
    let reserved = format!("*1 *6 $11 reservation :1 $5 until :{} $5 draws *1 *2 :1 $3 mug", at + 10);
    assert_eq!(emitted(&open), [reserved, "*0".to_owned()]);
    let counted = emitted(&user);
    assert!(counted.len() == 1 && counted[0].ends_with("$7 without :1"), "{counted:?}");
    comes_back(&engine);
}

#[test]
fn a_request_that_is_sent_again_is_answered_again_and_draws_nothing() {
    let engine = engine();
    let mut client = Client::new(&engine);
    client.run("POOL.CREATE raffle ITEMS car 1 3 mug 9 30");
    let lines = [
        "POOL.DRAW raffle REQUEST r1",
        "POOL.DRAW raffle COUNT 3 USER mira REQUEST r3",
        "POOL.RESERVE raffle 1000 COUNT 2 REQUEST r4",
    ];
    let first: Vec<String> = lines.iter().map(|line| client.run(line)).collect();
    assert!(first.iter().all(|answer| !answer.starts_with('-')), "{first:?}");
    client.run("POOL.DRAW raffle");
    let again: Vec<String> = lines.iter().map(|line| client.run(line)).collect();
    assert_eq!(again, first);
    let other = "-ERR request \"r1\" was made before by another user, or for other draws: give each request an id of its own";
    client.expect(&[
        ("POOL.DRAW raffle COUNT 2 REQUEST r1", other),
        ("POOL.DRAW raffle UNIQUE REQUEST r1", other),
        ("POOL.DRAW raffle USER mira REQUEST r1", other),
        ("POOL.RESERVE raffle 1000 REQUEST r1", other),
        (
            "POOL.DRAW raffle REQUEST",
            "-ERR syntax error: POOL.DRAW ends after 'REQUEST', where it takes request",
        ),
        (
            &format!("POOL.DRAW raffle REQUEST {}", "x".repeat(65)),
            "-ERR the request's name has 65 bytes, 1 to 64 are possible: use another",
        ),
    ]);
    assert_eq!(field(&client.run("POOL.STATE raffle"), "draws"), ":7");
    let (frames, _) = snapshot_of(&engine, || {});
    // A repeated request gets the same answer, whatever the state of the reservation.
    client.sleep_ms(1000);
    for engine in [&engine, &comes_back(&engine), &loaded(&frames)] {
        let client = Client { now_us: client.now_us, ..Client::new(engine) };
        let again: Vec<String> = lines.iter().map(|line| client.run(line)).collect();
        assert_eq!(again, first);
        assert_eq!(field(&client.run("POOL.STATE raffle"), "draws"), ":7");
    }
    let twice = transaction(&engine, None, &["POOL.DRAW raffle REQUEST r9", "POOL.DRAW raffle REQUEST r9"]);
    let draws: Vec<&str> = twice.split("*2 ").skip(2).map(str::trim).collect();
    assert!(draws.len() == 2 && draws[0] == draws[1], "{twice}");
    comes_back(&engine);
}

/// A repeated answer describes an earlier change. It may have to wait until that change is durable,
/// as the first answer did.
#[test]
fn an_answer_that_is_given_again_depends_on_what_was_logged() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("POOL.CREATE raffle ITEMS mug 1 UNLIMITED");
    let lsn_of = |line: &str| {
        let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let command = tidemark_engine::command::resolve(&args).expect("a command");
        let call = tidemark_engine::Call { command, args: &args, db: 0, now_us: START_US };
        engine.execute(&call, &mut tidemark_engine::Reply::default()).lsn
    };
    let first = lsn_of("POOL.DRAW raffle REQUEST r1").expect("it was logged");
    assert_eq!(lsn_of("POOL.DRAW raffle REQUEST r1"), Some(first), "nothing more was logged");
    let reserved = lsn_of("POOL.RESERVE raffle 1000");
    lsn_of("POOL.CONFIRM raffle 1");
    assert!(lsn_of("POOL.CONFIRM raffle 1") > reserved);
}

#[test]
fn a_user_draws_and_wins_within_limits() {
    let engine = engine();
    let mut client = Client::new(&engine);
    let day = 86_400_000;
    let today_ends = (START_US / 1000 / day + 1) * day;
    client.run(&format!(
        "POOL.CREATE raffle LIMIT DRAWS 3 PER {day} LIMIT WINS 1 OF 1 car ITEMS car 1000000 UNLIMITED mug 1 UNLIMITED"
    ));
    let state = client.run("POOL.STATE raffle");
    assert!(
        state.contains(&format!(
            "$6 limits *2 *6 $5 draws :3 $3 per :{day} $2 of *0 *6 $4 wins :1 $3 per $-1 $2 of *1 $3 car"
        )),
        "{state}"
    );
    client.expect(&[
        ("POOL.DRAW raffle", "-ERR the pool has rules for each user: say whose draw it is, as in USER name"),
        (
            "POOL.DRAW raffle USER mira COUNT 4",
            "-LIMITED 4 draws at once are wanted, and a limit allows a user 3: ask for fewer",
        ),
        ("POOL.DRAW raffle USER mira COUNT 3 REQUEST r1", "*3 *2 :0 $3 car *2 :1 $3 mug *2 :2 $3 mug"),
        ("POOL.DRAW raffle USER mira COUNT 3 REQUEST r1", "*3 *2 :0 $3 car *2 :1 $3 mug *2 :2 $3 mug"),
        (
            "POOL.USER raffle mira",
            &format!(
                "*4 $6 limits *2 *12 $5 draws :3 $3 per :{day} $2 of *0 $4 used :3 $4 left :0 $5 until :{today_ends} \
                 *12 $4 wins :1 $3 per $-1 $2 of *1 $3 car $4 used :1 $4 left :0 $5 until $-1 $10 guarantees *0"
            ),
        ),
    ]);
    let limited = format!(
        "-LIMITED the user has reached a limit of 3: it is possible again from {today_ends} on, in milliseconds since 1970"
    );
    client.expect(&[("POOL.DRAW raffle USER mira", &limited)]);
    // A user may win again after giving the prize back, or after the reservation expires.
    client.sleep_ms(today_ends - START_US / 1000);
    assert_eq!(client.run("POOL.RETURN raffle car USER mira"), "$-1");
    let reserved = client.run("POOL.RESERVE raffle 1000 USER mira");
    assert!(reserved.ends_with("$3 car"), "{reserved}");
    assert_eq!(client.run("POOL.DRAW raffle USER mira"), "*2 :4 $3 mug");
    client.sleep_ms(1000);
    assert_eq!(client.run("POOL.DRAW raffle USER mira"), "*2 :5 $3 car", "it has expired");
    let again = comes_back(&engine);
    assert_eq!(Client::new(&again).run("POOL.USER raffle mira"), client.run("POOL.USER raffle mira"));
    client.expect(&[
        ("POOL.USER none mira", "$-1"),
        ("POOL.USER raffle \"\"", "-ERR a user's name must have 1 to 64 bytes"),
        (
            "POOL.CREATE wrong LIMIT WINS 1 OF 1 bus ITEMS car 1 1",
            "-ERR limit 1 names the item \"bus\", which is not there: name items of the catalogue",
        ),
        (
            "POOL.CREATE wrong LIMIT DRAWS 0 ITEMS car 1 1",
            "-ERR limit 1: its number is 0, and must be 1 to 9223372036854775807",
        ),
        (
            "POOL.CREATE wrong LIMIT CARS 1 ITEMS car 1 1",
            "-ERR LIMIT must be followed by DRAWS or WINS and a number",
        ),
        ("POOL.CREATE wrong LIMIT WINS 1 OF 9 car ITEMS car 1 1", "-ERR syntax error: POOL.CREATE ends after '1', where it takes id"),
        (
            "POOL.CREATE wrong LIMIT DRAWS 1 JSON {}",
            "-ERR a catalogue as text says its mode, rules, schedule and tables itself, and stands at the end",
        ),
    ]);
}

#[test]
fn what_is_guaranteed_comes_after_so_many_draws_in_vain() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run(
        "POOL.CREATE box GUARANTEE 3 OF 1 car GUARANTEE 9 POOL SOFT 8 1 OF 1 bike \
         ITEMS car 1 UNLIMITED bike 1 UNLIMITED mug 1000000000 UNLIMITED",
    );
    assert_eq!(client.run("POOL.DRAW box USER mira COUNT 3"), "*3 *2 :0 $3 mug *2 :1 $3 mug *2 :2 $3 mug");
    let returned = "*4 $6 limits *0 $10 guarantees *2 \
                *12 $5 after :3 $5 scope $4 user $9 soft-from $-1 $9 soft-step $-1 $2 of *1 $3 car $7 without :3 \
                *12 $5 after :9 $5 scope $4 pool $9 soft-from :8 $9 soft-step :1 $2 of *1 $4 bike $7 without :3";
    assert_eq!(client.run("POOL.USER box mira"), returned);
    let again = comes_back(&engine);
    for engine in [&engine, &again] {
        let client = Client::new(engine);
        assert_eq!(client.run("POOL.DRAW box USER mira"), "*2 :3 $3 car");
        assert_eq!(field(&client.run("POOL.STATE box"), "users"), ":0", "of whom nothing is counted");
        client.run("POOL.DRAW box USER noah");
        assert_eq!(field(&client.run("POOL.STATE box"), "users"), ":1");
    }
    comes_back(&engine);
}

/// A snapshot has the users as they were at its cut, although users change while it is taken.
#[test]
fn a_snapshot_has_the_users_of_a_large_pool() {
    let engine = engine();
    let mut client = Client::new(&engine);
    let items: Vec<String> =
        (0..30_000).map(|item| format!("a-rather-long-name-of-item-{item} 1 100")).collect();
    client.run(&format!("POOL.CREATE large LIMIT DRAWS 5 PER 1000 ITEMS {}", items.join(" ")));
    for number in 0..50 {
        client.run(&format!("POOL.DRAW large USER user{number} REQUEST r{number} COUNT 2"));
    }
    let (digest, mut turn) = (engine.digest(), 0);
    let (frames, _) = snapshot_of(&engine, || {
        turn += 1;
        client.sleep_ms(300);
        client.run(&format!("POOL.DRAW large USER user{} COUNT 5", turn % 60));
        client.run(&format!("POOL.DRAW large USER user{} REQUEST s{turn}", turn % 50));
    });
    assert!(turn > 2, "it came in parts");
    assert_eq!(loaded(&frames).digest(), digest, "the state at the cut");
    comes_back(&engine);
}

/// The frames of a snapshot. Calls `between` between its steps.
fn snapshot_of(engine: &Engine, mut between: impl FnMut()) -> (Vec<Vec<u8>>, tidemark_log::Lsn) {
    let mut snapshot = engine.snapshot();
    let lsn = snapshot.lsn();
    let mut frames = Vec::new();
    while let Some(frame) = snapshot.next_frame_at_ease(&mut between) {
        frames.push(frame);
    }
    snapshot.check().expect("every value is whole");
    (frames, lsn)
}

fn loaded(frames: &[Vec<u8>]) -> Engine {
    let engine = support::engine();
    let loader = engine.load(START_US);
    // Frames may be loaded in any order.
    frames.iter().rev().for_each(|frame| loader.load_frame(frame).expect("a frame"));
    loader.finish().expect("nothing is missing");
    engine
}

#[test]
fn a_snapshot_has_a_large_pool_as_it_was_while_draws_go_on() {
    let engine = engine();
    let client = Client::new(&engine);
    let items: Vec<String> =
        (0..30_000).map(|item| format!("a-rather-long-name-of-item-{item} 1 100")).collect();
    client.run(&format!("POOL.CREATE large ITEMS {}", items.join(" ")));
    client.run("POOL.CREATE small ITEMS mug 1 UNLIMITED");
    draws(&client, "large", 200);
    client.run("POOL.RESERVE large 100000 COUNT 50");
    let digest = engine.digest();
    let mut turn = 0;
    let (frames, _) = snapshot_of(&engine, || {
        turn += 1;
        for _ in 0..20 {
            client.run("POOL.DRAW large COUNT 3");
        }
        client.run("POOL.DRAW small");
        let line = match turn % 5 {
            0 => "POOL.CANCEL large 200".to_owned(),
            1 => format!("POOL.UPDATE large REMOVE a-rather-long-name-of-item-{}", 29_999 - turn),
            2 => format!("POOL.UPDATE large ADD new-{turn} 5 5"),
            3 => format!("POOL.UPDATE large WEIGHT a-rather-long-name-of-item-{} 7", 20_000 + turn),
            _ => "POOL.EPOCH large".to_owned(),
        };
        client.run(&line);
    });
    assert!(turn > 2, "it came in parts");
    let then = loaded(&frames);
    assert_eq!(then.digest(), digest, "the state at the cut");
    assert_eq!(then.next_deadline(), Some(START_US / 1000 + 100_000));
    comes_back(&engine);
}

#[test]
fn a_pool_may_go_on_where_another_has_ended() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("POOL.CREATE p FROM 164001 ITEMS car 1 1 mug 9 UNLIMITED");
    assert_eq!(field(&client.run("POOL.STATE p"), "epoch-first-draw"), ":164001");
    assert_eq!(plain(&client.run("POOL.DRAW p"))[1], ":164001");
    assert_eq!(plain(&client.run("POOL.HISTORY p"))[2], ":164001");
    comes_back(&engine);
    for wrong in ["-1", "9223372036854775807", "x"] {
        let refused = client.run(&format!("POOL.CREATE q FROM {wrong} ITEMS car 1 1"));
        assert!(refused.starts_with("-ERR"), "{refused}");
    }
    assert_eq!(client.run("EXISTS q"), ":0");
}
