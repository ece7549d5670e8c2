//! One migration, on the thread of migrations.

use super::options::Options;
use super::queue::Migration;
use super::target::{Failure, Target, put_request};
use crate::durability::hold::{COMMIT_LOST, holds_back};
use crate::events::publishing::send_published;
use crate::net::offload_queue::OffloadResult;
use crate::net::outbox::Until;
use crate::shared::Shared;
use std::collections::VecDeque;
use std::time::Instant;
use tidemark_engine::command::{find, parse};
use tidemark_engine::{Call, Engine, Protocol, Reply, Terms, WatchedKeys};
use tidemark_log::Lsn;

/// A batch ends with the payload that brings it here. Bytes.
const BATCH_BYTES: usize = 4 << 20;
/// Most keys of a batch.
const BATCH_KEYS: usize = 256;

/// A key that is to move.
struct Moving {
    key: Box<[u8]>,
    /// Whether the target has an earlier value of it, from us.
    was_sent: bool,
}

/// The watch of a key until its value was sent, which ends when it is dropped.
struct Watched<'a> {
    engine: &'a Engine,
    keys: WatchedKeys,
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.engine.unwatch(&self.keys);
    }
}

/// A key that is on its way.
struct Sent<'a> {
    moving: Moving,
    watched: Watched<'a>,
    /// Whether it is gone here, so that its earlier value was deleted at the target.
    is_gone: bool,
}

struct Transfer<'a> {
    options: &'a Options,
    db: u8,
    shared: &'a Shared,
    began: Instant,
    target: Option<Target<'a>>,
    /// Whether a key was there.
    found: bool,
    /// The first error of the target about a key, which stays here.
    refusal: Option<String>,
    lsn: Option<Lsn>,
    held_until: Option<Until>,
}

/// Moves the keys, and returns the answer for the client.
pub(super) fn run(job: Migration, shared: &Shared) -> OffloadResult {
    let Migration { options, db, mut reply, .. } = job;
    let mut transfer = Transfer {
        options: &options,
        db,
        shared,
        began: shared.clock.now(),
        target: None,
        found: false,
        refusal: None,
        lsn: None,
        held_until: None,
    };
    match transfer.run() {
        Err(failure) => reply.error_text(&failure.text()),
        Ok(()) => match &transfer.refusal {
            Some(error) => reply.error_text(&format!("ERR Target instance replied with error: {error}")),
            None if transfer.found => reply.ok(),
            None => reply.simple("NOKEY"),
        },
    }
    let Transfer { lsn, held_until, .. } = transfer;
    OffloadResult { reply, lsn, held_until }
}

impl<'a> Transfer<'a> {
    fn run(&mut self) -> Result<(), Failure> {
        let keys = self.options.keys.iter();
        let mut waiting: VecDeque<Moving> =
            keys.map(|key| Moving { key: key.clone(), was_sent: false }).collect();
        while !waiting.is_empty() {
            let (batch, requests) = self.read_batch(&mut waiting)?;
            if batch.is_empty() {
                continue;
            }
            self.found = true;
            if self.target.is_none() {
                self.connect()?;
            }
            self.target().send(&requests)?;
            drop(requests);
            for sent in batch {
                match self.target().answer()? {
                    Err(error) => {
                        self.refusal.get_or_insert(error);
                    }
                    Ok(()) if self.options.copies || sent.is_gone || self.delete(&sent)? => {}
                    Ok(()) => waiting.push_back(Moving { key: sent.moving.key.clone(), was_sent: true }),
                }
            }
            let is_late =
                self.shared.clock.now().saturating_duration_since(self.began) >= self.options.timeout;
            if let Some(again) = waiting.iter().find(|moving| moving.was_sent).filter(|_| is_late) {
                return Err(Failure::Other(format!(
                    "IOERR '{}' changed whenever it was sent, until the timeout: the target has an earlier value",
                    String::from_utf8_lossy(&again.key[..again.key.len().min(128)])
                )));
            }
        }
        Ok(())
    }

    fn target(&mut self) -> &mut Target<'a> {
        self.target.as_mut().expect("a target is connected before something is sent")
    }

    /// Connects, and selects the database: before any data is sent, which would otherwise go to another one.
    fn connect(&mut self) -> Result<(), Failure> {
        let target = self.target.insert(Target::connect(self.options, self.shared)?);
        let mut steps = Vec::new();
        if let Some(login) = &self.options.login {
            let words: Vec<&[u8]> =
                std::iter::once(&b"AUTH"[..]).chain(login.iter().map(|word| &**word)).collect();
            put_request(&mut steps, &words);
        }
        put_request(&mut steps, &[b"SELECT", self.options.db.to_string().as_bytes()]);
        target.send(&steps)?;
        let mut refusal = None;
        for _ in 0..=usize::from(self.options.login.is_some()) {
            if let Err(error) = target.answer()? {
                refusal.get_or_insert(error);
            }
        }
        match refusal {
            None => Ok(()),
            Some(error) => Err(Failure::Other(format!("ERR Target instance replied with error: {error}"))),
        }
    }

    /// Reads the next keys, and returns them with the requests for the target. What is read is committed, if the
    /// server promises that of answers.
    fn read_batch(&self, waiting: &mut VecDeque<Moving>) -> Result<(Vec<Sent<'a>>, Vec<u8>), Failure> {
        let (mut batch, mut requests, mut shown) = (Vec::new(), Vec::new(), Lsn::ZERO);
        while batch.len() < BATCH_KEYS
            && requests.len() < BATCH_BYTES
            && let Some(moving) = waiting.pop_front()
        {
            let mut watched = Watched { engine: &self.shared.engine, keys: WatchedKeys::new() };
            if !self.options.copies {
                watched.engine.watch(&mut watched.keys, self.db, &moving.key, self.shared.clock.now_us());
            }
            let found = self.read(&moving.key)?;
            shown = shown.max(self.newest_shown(&moving.key));
            match &found {
                Some((payload, ttl)) => {
                    let (ttl, replaces) = (ttl.to_string(), self.options.replaces || moving.was_sent);
                    let words = [&b"RESTORE"[..], &moving.key, ttl.as_bytes(), payload, b"REPLACE"];
                    put_request(&mut requests, &words[..if replaces { 5 } else { 4 }]);
                }
                None if moving.was_sent => put_request(&mut requests, &[b"DEL", &moving.key]),
                None => continue,
            }
            batch.push(Sent { moving, watched, is_gone: found.is_none() });
        }
        if self.shared.settings.waits_for_commit() && !batch.is_empty() {
            let committed = self.shared.engine.log().wait_committed(shown);
            committed.map_err(|_| Failure::Other(COMMIT_LOST.into()))?;
        }
        Ok((batch, requests))
    }

    fn newest_shown(&self, key: &[u8]) -> Lsn {
        let command = find(b"dump").expect("a command");
        self.shared.engine.newest_shown(command, &[b"DUMP", key])
    }

    /// Returns the payload of a key, and its time to live in milliseconds; 0 is for ever.
    fn read(&self, key: &[u8]) -> Result<Option<(Vec<u8>, i64)>, Failure> {
        let now_us = self.shared.clock.now_us();
        let db = self.db;
        let row = |name: &[u8]| find(name).expect("a command");
        let (dump, pttl) = ([&b"DUMP"[..], key], [&b"PTTL"[..], key]);
        let calls = [
            Call { command: row(b"dump"), args: &dump, db, now_us },
            Call { command: row(b"pttl"), args: &pttl, db, now_us },
        ];
        let mut reply = Reply::new(Protocol::Resp2);
        self.shared.engine.execute_transaction_as(&calls, None, &[], now_us, Terms::default(), &mut reply);
        read_answer(reply.bytes())
    }

    /// Deletes a key if it has not changed since it was read. Returns whether it is done.
    fn delete(&mut self, sent: &Sent<'_>) -> Result<bool, Failure> {
        let (key, now_us) = (&*sent.moving.key, self.shared.clock.now_us());
        let command = find(b"del").expect("a command");
        let args = [&b"DEL"[..], key];
        let calls = [Call { command, args: &args, db: self.db, now_us }];
        let mut reply = Reply::new(Protocol::Resp2);
        let engine = &self.shared.engine;
        let watched = Some(&sent.watched.keys);
        let executed =
            engine.execute_transaction_as(&calls, watched, &[], now_us, Terms::default(), &mut reply);
        send_published(executed.published(), self.shared);
        let until =
            holds_back(&executed, false, reply.bytes(), || engine.newest_shown(command, &args), self.shared);
        let until = until.map_err(|_| Failure::Other(COMMIT_LOST.into()))?;
        self.lsn = executed.lsn.or(self.lsn);
        self.held_until = until.or(self.held_until.take());
        match reply.bytes() {
            [b'-', error @ ..] => Err(Failure::Other(String::from_utf8_lossy(error).trim_end().into())),
            answer => Ok(answer.starts_with(b"*1")),
        }
    }
}

/// Reads the answer to `DUMP` and `PTTL` in a transaction.
fn read_answer(answer: &[u8]) -> Result<Option<(Vec<u8>, i64)>, Failure> {
    let (head, rest) = line(answer);
    let (first, rest) = if head.starts_with(b"*") { line(rest) } else { (head, rest) };
    if let [b'-', error @ ..] = first {
        return Err(Failure::Other(String::from_utf8_lossy(error).into_owned()));
    }
    let len = first.strip_prefix(b"$").and_then(parse::canonical_integer);
    let Some(len) = len.and_then(|len| usize::try_from(len).ok()) else { return Ok(None) };
    let (payload, rest) = rest.split_at(len);
    let (ttl, _) = line(&rest[2..]);
    let ttl = ttl.strip_prefix(b":").and_then(parse::canonical_integer).expect("PTTL answers a number");
    // As in Redis: one that ends at once does so at the target.
    Ok(Some((payload.to_vec(), if ttl < 0 { 0 } else { ttl.max(1) })))
}

/// Splits the first line off.
fn line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n").expect("the engine ends each line");
    (&bytes[..end], &bytes[end + 2..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_the_engine_are_read() {
        let read = |answer: &[u8]| read_answer(answer).map_err(|failure| failure.text());
        assert_eq!(read(b"*2\r\n$4\r\na\r\nb\r\n:-1\r\n"), Ok(Some((b"a\r\nb".to_vec(), 0))));
        assert_eq!(read(b"*2\r\n$1\r\na\r\n:0\r\n"), Ok(Some((b"a".to_vec(), 1))));
        assert_eq!(read(b"*2\r\n$-1\r\n:-2\r\n"), Ok(None));
        assert_eq!(read(b"*2\r\n-ERR a pool\r\n:-1\r\n"), Err("ERR a pool".into()));
        assert_eq!(read(b"-MISCONF no\r\n"), Err("MISCONF no".into()));
    }
}
