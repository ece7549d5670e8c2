//! Changes that a server delivers to sinks, and those that it should.

use super::{Answer, Client, Server};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_mins(1);

/// Returns the fields of the first sink in INFO.
pub(crate) fn sink(client: &mut Client) -> BTreeMap<String, String> {
    let Answer::Bulk(info) = client.call(&["INFO", "sinks"]).expect("an answer") else { panic!("a text") };
    let line = info.lines().find_map(|line| line.strip_prefix("sink0:")).expect("there is a sink");
    let fields = line.split(',').filter_map(|field| field.split_once('='));
    fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[track_caller]
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}: waited in vain");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until the sink has this state.
#[track_caller]
pub(crate) fn await_state(client: &mut Client, state: &str) {
    let began = Instant::now();
    while sink(client)["state"] != state {
        assert!(began.elapsed() < PATIENCE, "the sink is not {state}: {:?}", sink(client));
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until the sink has delivered everything.
#[track_caller]
pub(crate) fn settle(server: &Server) {
    let mut client = server.client();
    client.call(&["DURABLE", "SET", "last", "one"]).expect("an answer");
    let mut seen = BTreeMap::new();
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        seen = sink(&mut client);
        if seen["state"] == "running" && seen["lag"] == "0" {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the sink does not pass everything on: {seen:?}");
}

/// Returns every durable change that CHANGES sends, up to the one that [`settle`] makes: LSN and
/// payload.
pub(crate) fn changes(server: &Server) -> Vec<(u64, String)> {
    let mut client = server.client();
    client.call(&["CHANGES", "FROM", "0"]).expect("an answer");
    let mut changes = Vec::new();
    loop {
        let change = client.read().expect("a change").array();
        let Answer::Bulk(payload) = &change[2] else { panic!("a payload") };
        changes.push((change[1].integer() as u64, payload.clone()));
        if payload.contains("\"args\":[\"last\",\"one\"]") {
            return changes;
        }
    }
}

/// Fewest writes, however busy the machine is.
const WRITES_MIN: u64 = 150;

/// Writes for some time, and at least `WRITES_MIN` changes.
pub(crate) fn write_for(server: &Server, name: &str, time: Duration) {
    let (mut client, began, mut number) = (server.client(), Instant::now(), 0);
    while began.elapsed() < time || number < WRITES_MIN {
        number += 1;
        let value = format!("{name}-{number}");
        assert_eq!(client.call(&["SET", "k", &value]).expect("an answer"), Answer::Status("OK".to_owned()));
        if number % 10 == 0 {
            client.call(&["MULTI"]).expect("an answer");
            client.call(&["INCR", "n"]).expect("an answer");
            client.call(&["RPUSH", "l", &value]).expect("an answer");
            client.call(&["EXEC"]).expect("an answer");
        }
    }
}
