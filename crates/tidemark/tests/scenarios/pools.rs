//! Pools of the real program, killed under load: announced prizes stay won, no prize is won twice,
//! and none is lost.

use crate::support::prizes::create_prizes;
use crate::support::{Answer, Client, Server, call};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

const WRITERS: usize = 4;
const KILLS: u64 = 4;
/// Number of items with one unit each: a prize that is given twice is detected.
const PRIZES: usize = 30_000;
/// Most draws of one call.
const AT_ONCE: u64 = 3;

/// Every durability mode: a pool keeps its promises in each.
const MODES: [&str; 4] = ["always", "interval", "interval:5000ms", "off"];

fn start(directory: &Path) -> Server {
    start_with(directory, "interval")
}

fn start_with(directory: &Path, durability: &str) -> Server {
    Server::start(directory, &["--durability", durability, "--threads", "2"])
}

/// Answers that a writer got.
#[derive(Debug, Default)]
struct Ledger {
    /// Draws by number.
    drawn: BTreeMap<i64, String>,
    /// Reservations with their draws, and those whose end was acknowledged.
    reserved: BTreeMap<i64, Vec<(i64, String)>>,
    confirmed: BTreeSet<i64>,
    cancelled: BTreeSet<i64>,
    /// A reservation whose end was requested and not answered.
    in_doubt: Option<i64>,
}

/// Returns whether nothing is left.
fn is_empty(answer: &Answer) -> bool {
    matches!(answer, Answer::Error(text) if text.starts_with("EMPTY "))
}

/// Returns number and item of each draw.
fn draws(answer: Answer) -> Vec<(i64, String)> {
    let pair = |draw: Answer| match &draw.array()[..] {
        [number, Answer::Bulk(id)] => (number.integer(), id.clone()),
        other => panic!("not a draw: {other:?}"),
    };
    answer.array().into_iter().map(pair).collect()
}

/// Returns the value of a name in a flat map.
fn field(map: &[Answer], name: &str) -> Answer {
    let at = map.iter().position(|word| *word == Answer::Bulk(name.into())).expect(name);
    map[at + 1].clone()
}

/// Draws, reserves, confirms and cancels, in a pattern that differs between writers, until the
/// server is gone.
fn write(port: u16, writer: usize) -> Ledger {
    let mut ledger = Ledger::default();
    let Ok(mut client) = Client::connect(port) else { return ledger };
    let mut open = Vec::new();
    for turn in writer.. {
        match turn % 7 {
            0..=2 => {
                let count = (1 + turn as u64 % AT_ONCE).to_string();
                let Ok(answer) = client.call(&["POOL.DRAW", "prizes", "COUNT", &count]) else { break };
                if is_empty(&answer) {
                    break;
                }
                ledger.drawn.extend(draws(answer));
            }
            3 | 4 => {
                let Ok(answer) = client.call(&["POOL.RESERVE", "prizes", "3600000", "COUNT", "2"]) else {
                    break;
                };
                if is_empty(&answer) {
                    break;
                }
                let map = answer.array();
                let number = field(&map, "reservation").integer();
                ledger.reserved.insert(number, draws(field(&map, "draws")));
                open.push(number);
            }
            kind => {
                let Some(number) = open.pop() else { continue };
                let (name, ended) = if kind == 5 {
                    ("POOL.CONFIRM", &mut ledger.confirmed)
                } else {
                    ("POOL.CANCEL", &mut ledger.cancelled)
                };
                match client.call(&[name, "prizes", &number.to_string()]) {
                    Ok(answer) => {
                        assert_eq!(answer.integer(), 1, "{number} was open");
                        ended.insert(number);
                    }
                    Err(_) => {
                        ledger.in_doubt = Some(number);
                        break;
                    }
                }
            }
        }
    }
    ledger
}

/// Returns the units left and drawn of each prize.
fn stocks(client: &mut Client) -> BTreeMap<String, (i64, i64)> {
    let state = call(client, &["POOL.STATE", "prizes", "COUNT", "1000000"]).array();
    let entries = field(&state, "entries").array().into_iter().map(|entry| {
        let entry = entry.array();
        let Answer::Bulk(id) = field(&entry, "id") else { panic!("an id") };
        (id, (field(&entry, "left").integer(), field(&entry, "drawn").integer()))
    });
    entries.collect()
}

#[test]
fn a_pool_and_its_draws_are_there_behind_a_kill_in_every_mode() {
    for durability in MODES {
        let directory = tempfile::tempdir().expect("a directory");
        let server = start_with(directory.path(), durability);
        let mut client = server.client();
        call(&mut client, &["POOL.CREATE", "k", "ITEMS", "car", "1", "1", "mug", "1", "2"]);
        let drawn = call(&mut client, &["POOL.DRAW", "k", "COUNT", "3"]);
        server.kill();
        let server = start_with(directory.path(), durability);
        let mut client = server.client();
        let mut known = draws(drawn);
        known.reverse();
        let history = call(&mut client, &["POOL.HISTORY", "k"]).array();
        let kept: Vec<_> = history
            .into_iter()
            .map(|draw| match &draw.array()[..] {
                [number, _, Answer::Bulk(id)] => (number.integer(), id.clone()),
                other => panic!("not a draw: {other:?}"),
            })
            .collect();
        assert_eq!(kept, known, "{durability}");
        assert!(is_empty(&client.call(&["POOL.DRAW", "k"]).expect("an answer")), "{durability}");
    }
}

#[test]
fn a_killed_server_gives_no_prize_twice_and_takes_none_back() {
    for durability in MODES {
        kill_while_drawing(durability);
    }
}

fn kill_while_drawing(durability: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut won: BTreeMap<String, i64> = BTreeMap::new();
    let mut numbers = BTreeSet::new();
    let (mut answered, mut possible, mut ends) = (0, 0, Vec::new());
    for round in 0..KILLS {
        let server = start_with(directory.path(), durability);
        if round == 0 {
            create_prizes(&mut server.client(), PRIZES);
        }
        let ledgers: Vec<Ledger> = std::thread::scope(|scope| {
            let port = server.port;
            let writers: Vec<_> =
                (0..WRITERS).map(|writer| scope.spawn(move || write(port, writer))).collect();
            std::thread::sleep(Duration::from_millis(60 + round * 37 % 120));
            server.kill();
            writers.into_iter().map(|writer| writer.join().expect("the writer ends well")).collect()
        });

        let server = start_with(directory.path(), durability);
        let mut client = server.client();
        let there = stocks(&mut client);
        for (id, (left, drawn)) in &there {
            assert_eq!((left + drawn, *drawn >= 0), (1, true), "one {id} was put in");
        }
        let mut known = BTreeMap::new();
        for ledger in ledgers {
            let set_aside = ledger.reserved.values().flatten();
            for (number, id) in ledger
                .drawn
                .iter()
                .map(|(number, id)| (*number, id))
                .chain(set_aside.map(|(number, id)| (*number, id)))
            {
                assert!(numbers.insert(number), "two draws have the number {number}");
                known.insert(number, id.clone());
                answered += 1;
            }
            // Open reservations are confirmed now, so only cancelled prizes are not won.
            let mut cancelled = ledger.cancelled;
            for number in ledger.reserved.keys().copied() {
                let text = number.to_string();
                if cancelled.contains(&number) {
                    assert_eq!(call(&mut client, &["POOL.CANCEL", "prizes", &text]).integer(), 0);
                    continue;
                }
                let confirmed = client.call(&["POOL.CONFIRM", "prizes", &text]).expect("an answer");
                if confirmed.is_error() {
                    assert_eq!(ledger.in_doubt, Some(number), "{confirmed:?}");
                    cancelled.insert(number);
                } else if ledger.confirmed.contains(&number) {
                    assert_eq!(confirmed.integer(), 0, "{number} was confirmed before");
                }
                ends.push(number);
            }
            let kept = ledger.reserved.iter().filter(|(number, _)| !cancelled.contains(*number));
            let ids = ledger
                .drawn
                .into_values()
                .chain(kept.flat_map(|(_, draws)| draws.iter().map(|(_, id)| id.clone())));
            for id in ids {
                assert_eq!(there[&id].1, 1, "{id} was won, and is there again");
                assert_eq!(
                    *won.entry(id.clone()).and_modify(|times| *times += 1).or_insert(1),
                    1,
                    "{id} is won twice"
                );
            }
        }
        // Unanswered draws are few, and have numbers of their own.
        possible += WRITERS as i64 * AT_ONCE as i64;
        let state = call(&mut client, &["POOL.STATE", "prizes", "COUNT", "1"]).array();
        let made = field(&state, "draws").integer();
        assert!(answered <= made && made <= answered + possible, "{answered} of {made} draws were answered");
        assert!(round > 0 || answered > 0, "the writers got somewhere");
        for draw in call(&mut client, &["POOL.HISTORY", "prizes", "COUNT", "256"]).array() {
            let draw = draw.array();
            if let Some(id) = known.get(&draw[0].integer()) {
                assert_eq!(draw[2], Answer::Bulk(id.clone()), "as it was answered");
            }
        }
        // Reservations that no writer knows were never announced as won: they are cancelled.
        for reservation in call(&mut client, &["POOL.RESERVATIONS", "prizes"]).array() {
            let number = field(&reservation.array(), "reservation").integer().to_string();
            assert_eq!(call(&mut client, &["POOL.CANCEL", "prizes", &number]).integer(), 1);
        }
        server.kill();
    }
    let server = start_with(directory.path(), durability);
    let mut client = server.client();
    for number in ends.iter().rev().take(100) {
        let again = client.call(&["POOL.CANCEL", "prizes", &number.to_string()]).expect("an answer");
        assert!(again.is_error() || again.integer() == 0, "{number} has ended: {again:?}");
    }
    for (id, (_, drawn)) in stocks(&mut client) {
        assert!(drawn == 1 || !won.contains_key(&id), "{id} is won and there");
    }
}

/// Draws under request ids of its own until the server is gone; returns each result, and the id of
/// the unanswered request.
fn ask(port: u16, writer: usize, round: u64) -> (BTreeMap<String, (i64, String)>, Option<String>) {
    let mut given = BTreeMap::new();
    let Ok(mut client) = Client::connect(port) else { return (given, None) };
    for turn in 0_u64.. {
        let request = format!("{writer}-{round}-{turn}");
        let user = format!("user{}", turn % 50);
        let Ok(answer) = client.call(&["POOL.DRAW", "prizes", "USER", &user, "REQUEST", &request]) else {
            return (given, Some(request));
        };
        if is_empty(&answer) {
            break;
        }
        given.insert(request, draws(Answer::Array(vec![answer])).remove(0));
    }
    (given, None)
}

/// Returns the user of a request of [`ask`].
fn user_of(request: &str) -> String {
    let turn: u64 = request.rsplit('-').next().and_then(|turn| turn.parse().ok()).expect("a turn");
    format!("user{}", turn % 50)
}

#[test]
fn a_request_repeated_after_a_kill_gets_the_same_prize_and_exactly_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut given: BTreeMap<String, (i64, String)> = BTreeMap::new();
    for round in 0..KILLS {
        let server = start(directory.path());
        if round == 0 {
            let items: Vec<String> =
                (0..PRIZES).flat_map(|item| [format!("prize{item}"), "1".into(), "1".into()]).collect();
            let mut create = vec!["POOL.CREATE", "prizes", "LIMIT", "DRAWS", "1000000", "ITEMS"];
            create.extend(items.iter().map(String::as_str));
            call(&mut server.client(), &create);
        }
        let answered: Vec<_> = std::thread::scope(|scope| {
            let port = server.port;
            let writers: Vec<_> =
                (0..WRITERS).map(|writer| scope.spawn(move || ask(port, writer, round))).collect();
            std::thread::sleep(Duration::from_millis(60 + round * 37 % 120));
            server.kill();
            writers.into_iter().map(|writer| writer.join().expect("the writer ends well")).collect()
        });

        let server = start(directory.path());
        let mut client = server.client();
        let mut again = |request: &str| {
            let user = user_of(request);
            let answer = call(&mut client, &["POOL.DRAW", "prizes", "USER", &user, "REQUEST", request]);
            draws(Answer::Array(vec![answer])).remove(0)
        };
        for (given_prizes, in_doubt) in answered {
            for (request, draw) in given_prizes.iter().rev().take(200) {
                assert_eq!(again(request), *draw, "{request} was answered before the kill");
            }
            given.extend(given_prizes);
            if let Some(request) = in_doubt {
                // The draw may have been made or not; a repeat makes it exactly once.
                let draw = again(&request);
                assert_eq!(again(&request), draw);
                given.insert(request, draw);
            }
        }
        let state = call(&mut client, &["POOL.STATE", "prizes", "COUNT", "1"]).array();
        assert_eq!(field(&state, "draws").integer(), given.len() as i64, "one draw for each request");
        assert!(round > 0 || !given.is_empty(), "the writers got somewhere");
        let prizes: BTreeSet<&String> = given.values().map(|(_, prize)| prize).collect();
        assert_eq!(prizes.len(), given.len(), "no prize was given twice");
        let mut counted = 0;
        for user in 0..50 {
            let user = call(&mut client, &["POOL.USER", "prizes", &format!("user{user}")]).array();
            counted += field(&field(&user, "limits").array()[0].clone().array(), "used").integer();
        }
        assert_eq!(counted, given.len() as i64, "each draw counts once for its user");
        server.kill();
    }
}
