//! An in-memory server that keeps the contract, or breaks it in one way that the verdict must find.

use crate::test_server::{self, Behaviour, Connection, bulk, send};
use std::collections::HashMap;
use std::sync::Arc;
use tidemark_server::resp::Value;

/// A violation of the contract. Numbers count the emissions of all subscriptions, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    None,
    /// This emission is not sent.
    Drop(u64),
    /// This emission is neither sent nor numbered.
    DropUnnumbered(u64),
    /// This emission is sent twice.
    Repeat(u64),
    /// This emission is sent after the next one.
    Swap(u64),
    /// This emission has the value of the previous one.
    StaleValue(u64),
    /// A resuming subscriber is not sent the first emission that it missed.
    SkipOnResume,
    /// A resuming subscriber is sent the last emission that it received again.
    ReplayOnResume,
    /// Subscriptions end with their connections.
    Forget,
}

/// Returns a scenario's timeout as a flag value. A correct server always answers within the long
/// one; with a flaw the answer may never come, so the timeout is short.
pub(crate) fn patience_with(flaw: Flaw) -> &'static str {
    if flaw == Flaw::None { "20s" } else { "300ms" }
}

struct State {
    flaw: Flaw,
    values: HashMap<Vec<u8>, Vec<u8>>,
    lsn: i64,
    emitted: u64,
    subscriptions: Vec<Subscription>,
    /// Subscribers of channels.
    channels: HashMap<Vec<u8>, Connection>,
}

struct Subscription {
    id: Vec<u8>,
    key: Vec<u8>,
    /// Every emission: lsn, seq, frame.
    history: Vec<(i64, i64, Value)>,
    last_value: Value,
    held_back: Option<Value>,
    connection: Option<Connection>,
}

/// Starts the server and returns its port; it ends with the process.
pub(crate) fn start(flaw: Flaw) -> u16 {
    test_server::start(State {
        flaw,
        values: HashMap::new(),
        lsn: 0,
        emitted: 0,
        subscriptions: Vec::new(),
        channels: HashMap::new(),
    })
}

impl Behaviour for State {
    fn answer(&mut self, arguments: &[Vec<u8>], connection: &Connection) -> Vec<Value> {
        let argument = |index: usize| arguments.get(index).cloned().unwrap_or_default();
        let ok = || vec![Value::Simple(b"OK".to_vec())];
        match &argument(0)[..] {
            b"PING" => vec![Value::Simple(b"PONG".to_vec())],
            b"HELLO" => vec![Value::Map(vec![])],
            b"CLIENT" => ok(),
            b"GET" => vec![self.value(&argument(1))],
            b"SET" => {
                self.change(&argument(1), Some(argument(2)));
                ok()
            }
            b"DEL" => {
                let had = self.values.contains_key(&argument(1));
                self.change(&argument(1), None);
                vec![Value::Integer(i64::from(had))]
            }
            b"GET.WATCH" => vec![self.watch(argument(1), connection)],
            b"UNWATCH" => {
                let before = self.subscriptions.len();
                self.subscriptions.retain(|subscription| !arguments[1..].contains(&subscription.id));
                vec![Value::Integer((before - self.subscriptions.len()) as i64)]
            }
            b"EMITRECONNECT" => {
                let last = std::str::from_utf8(&argument(3)).unwrap().parse().unwrap();
                self.resume(&argument(2), last, connection)
            }
            b"SUBSCRIBE" => {
                self.channels.insert(argument(1), Arc::clone(connection));
                vec![Value::Push(vec![bulk(b"subscribe"), Value::Bulk(argument(1)), Value::Integer(1)])]
            }
            b"PUBLISH" => {
                let Some(subscriber) = self.channels.get(&argument(1)) else {
                    return vec![Value::Integer(0)];
                };
                let message = [bulk(b"message"), Value::Bulk(argument(1)), Value::Bulk(argument(2))];
                send(subscriber, [&Value::Push(message.to_vec())]);
                vec![Value::Integer(1)]
            }
            _ => vec![Value::Error(b"ERR unknown command".to_vec())],
        }
    }

    fn leave(&mut self, connection: &Connection) {
        let is_its = |other: &Connection| Arc::ptr_eq(other, connection);
        self.channels.retain(|_, subscriber| !is_its(subscriber));
        for subscription in &mut self.subscriptions {
            if subscription.connection.as_ref().is_some_and(is_its) {
                subscription.connection = None;
            }
        }
    }
}

impl State {
    fn value(&self, key: &[u8]) -> Value {
        self.values.get(key).cloned().map_or(Value::Null, Value::Bulk)
    }

    fn watch(&mut self, key: Vec<u8>, connection: &Connection) -> Value {
        let value = self.value(&key);
        let id = format!("sub{}", self.subscriptions.len() + self.lsn as usize * 1000).into_bytes();
        self.subscriptions.push(Subscription {
            id: id.clone(),
            key,
            history: Vec::new(),
            last_value: value.clone(),
            held_back: None,
            connection: Some(Arc::clone(connection)),
        });
        let (lsn, seq) = (Value::Integer(self.lsn), Value::Integer(0));
        Value::Map(vec![
            (bulk(b"sub_id"), Value::Bulk(id)),
            (bulk(b"lsn"), lsn),
            (bulk(b"seq"), seq),
            (bulk(b"value"), value),
        ])
    }

    fn change(&mut self, key: &[u8], value: Option<Vec<u8>>) {
        match value {
            Some(value) => drop(self.values.insert(key.to_vec(), value)),
            None => drop(self.values.remove(key)),
        }
        self.lsn += 1;
        let now = self.value(key);
        for subscription in &mut self.subscriptions {
            if subscription.key == key && subscription.last_value != now {
                self.emitted += 1;
                subscription.emit(self.lsn, now.clone(), self.flaw, self.emitted);
            }
        }
    }

    fn resume(&mut self, id: &[u8], last: i64, connection: &Connection) -> Vec<Value> {
        let answer = |status: &[u8], number| {
            vec![Value::Array(vec![Value::Bulk(status.to_vec()), Value::Integer(number)])]
        };
        if last > self.lsn {
            return answer(b"INVALID_SEQUENCE", self.lsn);
        }
        // A resuming subscriber uses a new connection, even if the end of the old one was not
        // noticed yet.
        let is_forgotten = self.flaw == Flaw::Forget;
        let subscription = self.subscriptions.iter_mut().find(|one| one.id == id && !is_forgotten);
        let Some(subscription) = subscription else {
            return answer(b"SUBSCRIPTION_NOT_FOUND", 0);
        };
        subscription.connection = Some(Arc::clone(connection));
        let had = subscription.history.iter().take_while(|(lsn, ..)| *lsn <= last).count();
        let from = match self.flaw {
            Flaw::SkipOnResume => had + 1,
            Flaw::ReplayOnResume => had.saturating_sub(1),
            _ => had,
        };
        let missed = subscription.history.iter().skip(from).map(|(.., frame)| frame.clone());
        answer(b"OK", had as i64 + 1).into_iter().chain(missed).collect()
    }
}

impl Subscription {
    fn emit(&mut self, lsn: i64, value: Value, flaw: Flaw, count: u64) {
        let before = std::mem::replace(&mut self.last_value, value.clone());
        if flaw == Flaw::DropUnnumbered(count) {
            return;
        }
        let value = if flaw == Flaw::StaleValue(count) { before } else { value };
        let seq = self.history.last().map_or(0, |(_, seq, _)| *seq) + 1;
        let (lsn_value, seq_value) = (Value::Integer(lsn), Value::Integer(seq));
        let frame =
            Value::Push(vec![bulk(b"emission"), Value::Bulk(self.id.clone()), lsn_value, seq_value, value]);
        self.history.push((lsn, seq, frame.clone()));
        // A disconnected subscriber requests the emission when it resumes.
        let Some(connection) = &self.connection else { return };
        match flaw {
            Flaw::Drop(dropped) if dropped == count => {}
            Flaw::Swap(held) if held == count => self.held_back = Some(frame),
            _ => {
                send(connection, [&frame]);
                if flaw == Flaw::Repeat(count) {
                    send(connection, [&frame]);
                }
                if let Some(held) = self.held_back.take() {
                    send(connection, [&held]);
                }
            }
        }
    }
}
