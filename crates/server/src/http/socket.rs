//! A WebSocket: many watched reads on one connection, with JSON messages.
//!
//! | client sends | server answers |
//! |---|---|
//! | `{"watch": ["GET", "k"], "id": any, "db": 0}` | `snapshot`, then an `emission` for every change |
//! | `{"resume": "17-0", "lsn": 42, "key": "k", "id": any}` | `resumed`, then what was missed; or `stale`, then a `snapshot` if the query still exists, or `failed` |
//! | `{"unwatch": "17-0", "id": any}` | `unwatched` |
//!
//! Answers repeat the `id` of the request. While the client reads slowly, its messages are not read
//! either (back-pressure).

use crate::http::stream::ALIVE_PAUSE;
use crate::http::watch::{self, Body, Notice, Pending, Watch};
use crate::http::web_socket;
use crate::http::word::Word;
use crate::shared::Shared;
use crate::subscription::cursor::{self, Cursor, reads};
use crate::subscription::http_registry::HttpListener;
use crate::subscription::http_registry::NeverReached;
use crate::subscription::resume_error::ResumeError;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use tidemark_engine::command::parse;
use tidemark_engine::watch::Subscribed;
use tidemark_log::Lsn;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// Longest message of a client, in bytes.
const MESSAGE_BYTES: usize = 1024 * 1024;
/// Most reads that one connection watches.
const WATCHES: usize = 16_384;

/// Message of a client.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    /// Returned as written; `null` counts as an ID.
    #[serde(default, deserialize_with = "as_written")]
    id: Option<Box<RawValue>>,
    watch: Option<Vec<Word>>,
    db: Option<u8>,
    unwatch: Option<String>,
    resume: Option<String>,
    key: Option<Word>,
    lsn: Option<u64>,
}

fn as_written<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(from).map(Some)
}

/// The answer to a message, and the query that it concerns.
struct Answer {
    query: Lsn,
    pending: Pending,
    /// Notice to send right after it.
    then: Option<Notice>,
}

impl Answer {
    /// Answers with a notice that depends on no record.
    fn of(notice: Notice) -> Answer {
        Answer { query: Lsn::ZERO, pending: notice.into(), then: None }
    }
}

/// The connection has ended.
struct Closed;

/// Upgrades to the WebSocket protocol. Reads use database `db` unless a message names another.
pub(crate) fn serve(upgrade: WebSocketUpgrade, shared: Arc<Shared>, db: u8) -> Response {
    let ended_terms = shared.ended_terms();
    upgrade.max_message_size(MESSAGE_BYTES).max_frame_size(MESSAGE_BYTES).on_upgrade(
        move |socket| async move {
            let connection = Connection {
                http_listener: Arc::new(HttpListener::default()),
                shared,
                socket,
                db,
                watches: BTreeMap::new(),
                last: Lsn::ZERO,
                ended_terms,
            };
            // The connection has ended; no error needs to be reported.
            let _ = connection.run().await;
        },
    )
}

struct Connection {
    shared: Arc<Shared>,
    socket: WebSocket,
    http_listener: Arc<HttpListener>,
    db: u8,
    /// By query, at most one of each.
    watches: BTreeMap<Lsn, Watch>,
    /// Query that was served last.
    last: Lsn,
    /// Terms of this member of a group that had ended when the connection began: it ends with the
    /// next one.
    ended_terms: u64,
}

impl Connection {
    async fn run(mut self) -> Result<(), Closed> {
        let mut alive = interval_at(Instant::now() + ALIVE_PAUSE, ALIVE_PAUSE);
        alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                message = web_socket::hear(&mut self.socket) => match message {
                    Some(Message::Text(text)) => self.hear(text.as_str()).await?,
                    Some(_) => self.send_notice(&Notice::error("ERR messages are JSON text")).await?,
                    None => return Err(Closed),
                },
                query = self.http_listener.next(self.last) => self.give_turn(query).await?,
                _ = alive.tick() => self.send(Message::Ping(Vec::new().into())).await?,
            }
        }
    }

    /// Sends the next notice of a query.
    async fn give_turn(&mut self, query: Lsn) -> Result<(), Closed> {
        self.last = query;
        let Some(watch) = self.watches.get_mut(&query) else { return Ok(()) };
        if let Some(pending) = watch.next() {
            // There may be more, which waits until the other queries had their turn.
            self.http_listener.notify(query);
            return self.give(query, pending).await;
        }
        if watch.has_ended() {
            self.watches.remove(&query);
        }
        Ok(())
    }

    /// Sends a notice of a query once the state that it shows is durable.
    async fn give(&mut self, query: Lsn, pending: Pending) -> Result<(), Closed> {
        let waiting = self.shared.wait_for_log(pending.after, self.ended_terms);
        match waiting.await {
            Ok(()) => {}
            Err(NeverReached::TermEnded) => return Err(Closed),
            Err(why @ NeverReached::LogFailed) => {
                if let Some(watch) = self.watches.get_mut(&query) {
                    watch.end(why.error());
                }
                return Ok(());
            }
        }
        self.send_notice(&pending.notice).await
    }

    /// Handles a message and answers it before anything else is sent: answers do not queue up.
    async fn hear(&mut self, text: &str) -> Result<(), Closed> {
        let request: Request = match serde_json::from_str(text) {
            Ok(request) => request,
            Err(error) => {
                return self
                    .send_notice(&Notice::error(format!("ERR no message of this protocol: {error}")))
                    .await;
            }
        };
        let id = request.id.clone();
        let answered = match request {
            Request { watch: Some(words), unwatch: None, resume: None, key: None, lsn: None, db, .. } => {
                self.watch(words, db.unwrap_or(self.db)).await
            }
            Request { watch: None, unwatch: Some(name), resume: None, key: None, lsn: None, db: None, .. } => {
                Ok(self.unwatch(name))
            }
            Request { watch: None, unwatch: None, resume: Some(name), lsn: Some(lsn), key, db: None, .. } => {
                self.resume(&name, key, Lsn(lsn)).await
            }
            _ => Err("ERR a message has either watch and perhaps db, or unwatch, or resume with lsn and perhaps key"
                .to_owned()),
        };
        match answered {
            Ok(Answer { query, mut pending, then }) => {
                pending.notice.id = id;
                self.give(query, pending).await?;
                match then {
                    Some(notice) => self.send_notice(&notice).await,
                    None => Ok(()),
                }
            }
            Err(error) => {
                let notice = Notice { id, ..Notice::error(error) };
                self.send_notice(&notice).await
            }
        }
    }

    async fn watch(&mut self, words: Vec<Word>, db: u8) -> Result<Answer, String> {
        let db = parse::database(db.to_string().as_bytes()).map_err(|error| error.to_string())?;
        let words: Vec<Vec<u8>> = words.into_iter().map(Word::into_bytes).collect::<Result<_, _>>()?;
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        self.check_room()?;
        let read = watch::read(db, &words).map_err(|error| error.to_string())?;
        self.shared.http_registry.wait_for_pause(&self.shared.pause, &self.shared.engine, &read).await;
        let subscribed = watch::subscribe(&self.shared, read).map_err(|error| error.to_string())?;
        let pending = self.watch_of(&subscribed).show(&subscribed);
        Ok(Answer { query: subscribed.query.id(), pending, then: None })
    }

    /// Returns the connection's subscription to a query, which is created if there is none.
    fn watch_of(&mut self, subscribed: &Subscribed) -> &mut Watch {
        self.watches.entry(subscribed.query.id()).or_insert_with(|| {
            let cursor = Cursor::new(subscribed.query.clone(), subscribed.number, subscribed.lsn);
            Watch::new(&self.shared, &self.http_listener, cursor)
        })
    }

    fn unwatch(&mut self, name: String) -> Answer {
        let query = cursor::parse_name(name.as_bytes()).map(|(query, _)| query);
        let known = query.filter(|query| {
            self.watches.get(query).is_some_and(|watch| watch.cursor().name().as_str() == name)
        });
        let ended = known.is_some_and(|query| self.watches.remove(&query).is_some());
        Answer::of(Notice::new("unwatched", Body::Unwatched { sub_id: name, ended }))
    }

    /// Resumes a subscription after `lsn`. If that fails, sends the reason, then the current answer
    /// if the query still exists.
    async fn resume(&mut self, name: &str, key: Option<Word>, lsn: Lsn) -> Result<Answer, String> {
        self.check_room()?;
        let key = key.map(Word::into_bytes).transpose()?;
        let engine = &self.shared.engine;
        let known = cursor::find(engine, name.as_bytes())
            .filter(|(query, _)| key.as_ref().is_none_or(|key| reads(query, key)));
        let Some((query, base)) = known else {
            let pending = watch::stale(&self.shared, name, ResumeError::NotFound);
            return Ok(Answer { query: Lsn::ZERO, pending, then: None });
        };
        // There are no emissions before the query began.
        let lsn = lsn.max(query.id());
        match watch::resume(&self.shared, &self.http_listener, query.id(), lsn).await {
            Ok(place) => {
                let cursor = Cursor::at(place, base, lsn);
                let resumed = Body::Resumed { sub_id: name.into(), next: cursor.sequence() + 1 };
                self.go_on(cursor);
                Ok(Answer::of(Notice::new("resumed", resumed)))
            }
            Err(why) => {
                let pending = watch::stale(&self.shared, name, why);
                let then = match watch::subscribe(&self.shared, query.read().clone()) {
                    Ok(subscribed) => {
                        let watch = self.watch_of(&subscribed);
                        let snapshot = watch.show(&subscribed);
                        watch.say(snapshot);
                        None
                    }
                    // The query was dropped in the meantime and cannot be created: its read fails
                    // by now, or there are too many.
                    Err(error) => Some(Notice::failed(name, error)),
                };
                Ok(Answer { query: query.id(), pending, then })
            }
        }
    }

    fn go_on(&mut self, cursor: Cursor) {
        match self.watches.entry(cursor.query().id()) {
            Entry::Occupied(mut known) => known.get_mut().put_at(cursor),
            Entry::Vacant(place) => {
                place.insert(Watch::new(&self.shared, &self.http_listener, cursor));
            }
        }
    }

    fn check_room(&self) -> Result<(), String> {
        if self.watches.len() >= WATCHES {
            return Err(format!("ERR this connection watches {WATCHES} reads, which is the most"));
        }
        Ok(())
    }

    async fn send_notice(&mut self, notice: &Notice) -> Result<(), Closed> {
        let text = serde_json::to_string(notice).expect("a notice has a form in JSON");
        self.send(Message::Text(Utf8Bytes::from(text))).await
    }

    /// Sends a message and waits until the kernel has all of it: at most one is buffered here.
    async fn send(&mut self, message: Message) -> Result<(), Closed> {
        self.socket.send(message).await.map_err(|_| Closed)
    }
}

/// Whether a message requests a read that can be watched.
#[cfg(feature = "fuzzing")]
pub(crate) fn watches(shared: &Shared, text: &str) -> bool {
    let Ok(Request { watch: Some(words), db, key, resume, .. }) = serde_json::from_str(text) else {
        return false;
    };
    let _ = resume.as_ref().and_then(|name| cursor::parse_name(name.as_bytes()));
    let _ = key.map(Word::into_bytes);
    let words: Result<Vec<Vec<u8>>, String> = words.into_iter().map(Word::into_bytes).collect();
    let Ok(words) = words else { return false };
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let read = watch::read(db.unwrap_or_default() % 16, &words);
    read.is_ok_and(|read| watch::subscribe(shared, read).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_may_be_any_json() {
        let id = |text: &str| {
            let request: Request = serde_json::from_str(text).expect("a request");
            request.id.map(|id| id.get().to_owned())
        };
        assert_eq!(id(r#"{"id": null}"#).as_deref(), Some("null"));
        assert_eq!(id(r#"{"id": 0.10}"#).as_deref(), Some("0.10"));
        assert_eq!(id("{}"), None);
    }

    #[test]
    fn what_is_misspelt_is_refused() {
        for text in ["", "[]", "{\"wach\": []}", "{\"watch\": \"GET\"}", "{\"watch\": [}", "{\"db\": 300}"] {
            assert!(serde_json::from_str::<Request>(text).is_err(), "{text}");
        }
    }
}
