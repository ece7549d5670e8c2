//! A subscription over HTTP, independent of its connection: the sequence of its notices.
//!
//! Only answers to requests are queued here. Emissions stay with their query until the subscriber's
//! turn, so a slow subscriber costs no memory; it is notified if it fell too far behind.

use crate::command::gate;
use crate::command::watch_command::split;
use crate::net::outbox::Until;
use crate::shared::Shared;
use crate::subscription::cursor::{self, Cursor, Older, ResumePosition, Resuming, Searched};
use crate::subscription::delivery::{Delivery, Options, Start, read_options};
use crate::subscription::http_registry::HttpListener;
use crate::subscription::json_cache::Json;
use crate::subscription::replay_buffer::Notifier;
use crate::subscription::replay_queue::ReplayStart;
use crate::subscription::resume_error::ResumeError;
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::VecDeque;
use std::sync::Arc;
use tidemark_engine::watch::{Filter, Gone, Read, Subscribed};
use tidemark_engine::{CommandError, Protocol, SharedBytes};
use tidemark_log::Lsn;
use tokio::sync::Notify;

/// Notice for a subscriber.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Notice {
    /// ID that the subscriber gave the request that this answers, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<Box<RawValue>>,
    /// Kind of the notice.
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    #[serde(flatten)]
    pub(crate) body: Body,
}

/// Body of a notice; over Server-Sent Events, all of the data.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub(crate) enum Body {
    /// Answer of the read: the first or a changed one.
    Answer { sub_id: Box<str>, lsn: u64, seq: u64, value: Json },
    /// What has changed of the answer.
    Change { sub_id: Box<str>, lsn: u64, seq: u64, change: Json },
    /// The subscription is resumed; the number of its next emission.
    Resumed { sub_id: Box<str>, next: u64 },
    /// The subscription cannot be resumed: the reason and the LSN that it concerns.
    Stale { sub_id: Box<str>, reason: &'static str, floor: u64 },
    /// Whether there was a subscription to end.
    Unwatched { sub_id: String, ended: bool },
    /// The subscription has ended, and why.
    Failed { sub_id: Box<str>, error: String },
    /// A request failed.
    Error { error: String },
}

impl Notice {
    pub(crate) fn new(kind: &'static str, body: Body) -> Notice {
        Notice { id: None, kind, body }
    }

    pub(crate) fn error(error: impl ToString) -> Notice {
        Notice::new("error", Body::Error { error: error.to_string() })
    }

    pub(crate) fn failed(name: &str, error: impl ToString) -> Notice {
        Notice::new("failed", Body::Failed { sub_id: name.into(), error: error.to_string() })
    }
}

/// A notice, and the watermark that it must wait for.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) notice: Notice,
    pub(crate) after: Option<Until>,
}

impl From<Notice> for Pending {
    fn from(notice: Notice) -> Pending {
        Pending { notice, after: None }
    }
}

/// A subscription, which ends when it is dropped.
pub(crate) struct Watch {
    shared: Arc<Shared>,
    http_listener: Arc<HttpListener>,
    cursor: Cursor,
    /// Notices to send before further emissions.
    ready: VecDeque<Pending>,
    /// The subscription has failed: nothing follows the ready notices.
    has_ended: bool,
}

impl Watch {
    /// Creates a subscription at `cursor`. The connection must not watch its query yet.
    pub(crate) fn new(shared: &Arc<Shared>, http_listener: &Arc<HttpListener>, cursor: Cursor) -> Watch {
        let (shared, http_listener) = (Arc::clone(shared), Arc::clone(http_listener));
        shared.http_registry.join(cursor.query().id(), &http_listener);
        http_listener.notify(cursor.query().id());
        Watch { shared, http_listener, cursor, ready: VecDeque::new(), has_ended: false }
    }

    pub(crate) fn cursor(&self) -> &Cursor {
        &self.cursor
    }

    /// Whether nothing more follows.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended && self.ready.is_empty()
    }

    /// Moves the subscription to another position in the same query.
    pub(crate) fn put_at(&mut self, cursor: Cursor) {
        assert_eq!(cursor.query().id(), self.cursor.query().id(), "a subscription stays with its query");
        (self.cursor, self.has_ended) = (cursor, false);
        // These notices belong to the old position.
        self.ready.clear();
        self.http_listener.notify(self.cursor.query().id());
    }

    /// Queues a notice to send before further emissions.
    pub(crate) fn say(&mut self, pending: impl Into<Pending>) {
        self.ready.push_back(pending.into());
        self.http_listener.notify(self.cursor.query().id());
    }

    /// Returns the current answer, to be sent first, and skips the emissions that it contains.
    pub(crate) fn show(&mut self, subscribed: &Subscribed) -> Pending {
        self.cursor.skip_to(subscribed.number, subscribed.lsn);
        // The answer supersedes the queued notices.
        self.ready.clear();
        self.has_ended = false;
        Pending {
            notice: self.answer("snapshot", &subscribed.answer),
            after: self.shared.holds_back_position(subscribed.lsn, false),
        }
    }

    /// Returns the next notice; `None` until its listener is notified again.
    pub(crate) fn next(&mut self) -> Option<Pending> {
        if let Some(pending) = self.ready.pop_front() {
            return Some(pending);
        }
        if self.has_ended {
            return None;
        }
        let mut one = Vec::with_capacity(1);
        let notifier = notifier_of(&self.http_listener);
        let older = Older { replays: &self.shared.replays, notifier: &notifier };
        if let Err(gone) = self.cursor.next(1, &mut one, &older) {
            return Some(self.begin_anew(gone));
        }
        let emission = one.pop()?;
        self.cursor.pass(&emission);
        let after = self.shared.holds_back(&emission);
        self.shared.counters.last().inspect(|counters| counters.emissions.add(1));
        let notice = if emission.is_change {
            self.change(&emission.answer)
        } else {
            self.answer("emission", &emission.answer)
        };
        Some(Pending { notice, after })
    }

    /// Handles a subscriber that fell behind retention: a `stale` notice, then the current answer
    /// under a new name.
    fn begin_anew(&mut self, gone: Gone) -> Pending {
        let stale = stale(&self.shared, self.cursor.name().as_str(), ResumeError::Stale(gone.floor));
        match subscribe(&self.shared, self.cursor.query().read().clone()) {
            Ok(subscribed) if subscribed.query.id() == self.cursor.query().id() => {
                self.cursor = Cursor::new(subscribed.query.clone(), subscribed.number, subscribed.lsn);
                let snapshot = self.show(&subscribed);
                self.say(snapshot);
            }
            // A query with a listener is not dropped, unless it was ended.
            Ok(_) => self.end("ERR the watched read has ended"),
            Err(error) => self.end(error),
        }
        stale
    }

    /// Ends the subscription with a notice of the reason.
    pub(crate) fn end(&mut self, error: impl ToString) {
        self.has_ended = true;
        self.ready.clear();
        self.say(Notice::failed(self.cursor.name().as_str(), error));
    }

    fn answer(&self, kind: &'static str, answer: &SharedBytes) -> Notice {
        let cursor = &self.cursor;
        let body = Body::Answer {
            sub_id: cursor.name().as_str().into(),
            lsn: cursor.lsn().0,
            seq: cursor.sequence(),
            value: self.shared.http_registry.json.of(answer),
        };
        Notice::new(kind, body)
    }

    fn change(&self, change: &SharedBytes) -> Notice {
        let cursor = &self.cursor;
        let body = Body::Change {
            sub_id: cursor.name().as_str().into(),
            lsn: cursor.lsn().0,
            seq: cursor.sequence(),
            change: self.shared.http_registry.json.of(change),
        };
        Notice::new("change", body)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let query = self.cursor.query();
        let registry = &self.shared.http_registry;
        if registry.leave(query.id(), &self.http_listener) {
            self.shared.engine.leave(query, registry.listener(), self.shared.clock.now_us());
        }
    }
}

/// Returns the callback by which a replay notifies this connection's subscriptions.
fn notifier_of(http_listener: &Arc<HttpListener>) -> impl Fn(Lsn) -> Notifier + use<> {
    let http_listener = Arc::clone(http_listener);
    move |query| {
        let http_listener = Arc::clone(&http_listener);
        Box::new(move || http_listener.notify(query))
    }
}

/// Returns the place in query `id` to resume after `lsn`. Slow if the log must be searched.
pub(crate) async fn resume(
    shared: &Shared,
    http_listener: &Arc<HttpListener>,
    id: Lsn,
    lsn: Lsn,
) -> Result<ResumePosition, ResumeError> {
    let (found, listener) = (Arc::new(Notify::new()), shared.http_registry.listener());
    let notify_listener = notifier_of(http_listener);
    let notifier = |query| -> Notifier {
        let (found, notify_listener) = (Arc::clone(&found), notify_listener(query));
        Box::new(move || {
            found.notify_one();
            notify_listener();
        })
    };
    let older = Older { replays: &shared.replays, notifier: &notifier };
    let mut search = match cursor::resume(&shared.engine, id, ReplayStart::Behind(lsn), listener, &older)? {
        Resuming::Found(place) => return Ok(place),
        Resuming::PendingResumption(search) => search,
    };
    loop {
        match search.look(&shared.engine, listener) {
            Searched::Done(result) => return result,
            Searched::NotYet(not_yet) => search = not_yet,
        }
        found.notified().await;
    }
}

/// Returns the notice that a subscription cannot be resumed; it waits until its LSN is durable.
pub(crate) fn stale(shared: &Shared, name: &str, why: ResumeError) -> Pending {
    let body = Body::Stale { sub_id: name.into(), reason: why.word(), floor: why.lsn().0 };
    Pending { notice: Notice::new("stale", body), after: shared.holds_back_position(why.lsn(), false) }
}

/// Parses a read with optional operators after `|`. Uses RESP3, which distinguishes maps, doubles
/// and nulls as JSON does.
pub(crate) fn read(db: u8, words: &[&[u8]]) -> Result<Read, CommandError> {
    let (args, options) = split(words);
    if args.is_empty() {
        return Err(CommandError::text("ERR no command to watch"));
    }
    let Options { delivery, start, name, channel, operators, .. } = read_options(options)?;
    if delivery != Delivery::default() || start != Start::default() || name.is_some() || channel.is_some() {
        return Err(CommandError::text(
            "ERR SQUASH, OLD, PROGRESS, MARK, UPDATES, RESUME, AS and CHANNEL are only valid in the Redis protocol; operators are valid \
             after '|'",
        ));
    }
    Read::new(db, Protocol::Resp3, args, Filter::parse(&operators)?)
}

/// Registers HTTP as listener of a read and returns its answer. The caller must not await before it
/// has made a [`Watch`] of it.
pub(crate) fn subscribe(shared: &Shared, read: Read) -> Result<Subscribed, CommandError> {
    if let Some(error) = shared.group.as_ref().and_then(gate::objection_to_watching) {
        return Err(error);
    }
    let now_us = shared.clock.now_us();
    let subscribed = shared.engine.subscribe(read, shared.http_registry.listener(), now_us)?;
    shared.watching_began(now_us);
    Ok(subscribed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::durability::snapshots::Snapshots;
    use crate::net::outbox::Reached;
    use crate::subscription::http_registry::NeverReached;
    use std::time::Duration;
    use tidemark_engine::watch::RetentionLimits;
    use tidemark_engine::{Call, Engine, Reply, command};
    use tidemark_log::storage::faulty::{Fault, Plan, Site};
    use tidemark_log::{Clock, Durability, FaultyStorage, Log, MemoryStorage, Options};

    /// Returns a server without workers, and the storage of its log.
    fn server(durability: Durability) -> (Arc<Shared>, FaultyStorage) {
        let storage = FaultyStorage::new(Arc::new(MemoryStorage::new()), None);
        let options = Options { durability, segment_bytes: 64 * 1024, ..Options::default() };
        let (log, _) = Log::open(Arc::new(storage.clone()), options).expect("an empty log");
        let engine = Engine::new(Arc::new(log), 4, 1);
        // Without replay.
        let config = Config { durability, watch_backlogs: 0, ..Config::default() };
        let shared =
            Arc::new(Shared::new(engine, Snapshots::new(Lsn::ZERO, &Clock::System).0, config, Vec::new()));
        let weak = Arc::downgrade(&shared);
        let moved = move |_| weak.upgrade().into_iter().for_each(|shared| shared.http_registry.log_moved());
        shared.engine.log().set_listener(Box::new(moved));
        (shared, storage)
    }

    fn set(shared: &Shared, value: &str) {
        let args = [b"SET".as_slice(), b"k", value.as_bytes()];
        let command = command::resolve(&args).expect("a command");
        let mut reply = Reply::new(Protocol::Resp3);
        shared.engine.execute(&Call { command, args: &args, db: 0, now_us: 1 }, &mut reply);
        assert_eq!(reply.bytes(), b"+OK\r\n");
    }

    fn watch(shared: &Arc<Shared>) -> (Watch, Subscribed) {
        let read = read(0, &[b"GET", b"k"]).expect("watchable");
        let subscribed = subscribe(shared, read).expect("the log takes it");
        let cursor = Cursor::new(subscribed.query.clone(), subscribed.number, subscribed.lsn);
        (Watch::new(shared, &Arc::new(HttpListener::default()), cursor), subscribed)
    }

    fn summary(pending: Option<Pending>) -> Option<(&'static str, Option<Until>)> {
        pending.map(|pending| (pending.notice.kind, pending.after))
    }

    #[test]
    fn under_always_no_emission_precedes_its_durable_record() {
        let (shared, _) = server(Durability::Always);
        let (mut watch, subscribed) = watch(&shared);
        assert_eq!(
            summary(Some(watch.show(&subscribed))),
            Some(("snapshot", Some(Until::Committed(Lsn(1)))))
        );
        set(&shared, "1");
        assert_eq!(summary(watch.next()), Some(("emission", Some(Until::Committed(Lsn(2))))));
        set(&shared, "2");
        shared.engine.log().wait_durable(Lsn(3)).expect("it is stored");
        assert_eq!(summary(watch.next()), Some(("emission", None)));
        assert_eq!(summary(watch.next()), None);
        assert_eq!(summary(Some(watch.show(&subscribed))), Some(("snapshot", None)));
    }

    #[test]
    fn emissions_without_durability_are_sent_when_written() {
        let (shared, _) = server(Durability::Off);
        let (mut watch, subscribed) = watch(&shared);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let summary = |pending: Option<Pending>| {
            let Pending { notice, after } = pending.expect("there is a notice to send");
            if let Some(until) = after {
                assert!(matches!(until, Until::Written(_)), "{until:?}");
                let waiting = shared.wait_for_log(after, 0);
                assert_eq!(runtime.block_on(waiting), Ok(()));
                assert!(Reached::by(shared.engine.log()).has(until));
            }
            notice.kind
        };
        assert_eq!(summary(Some(watch.show(&subscribed))), "snapshot");
        assert!(shared.engine.log().written() >= subscribed.lsn);
        set(&shared, "1");
        assert_eq!(summary(watch.next()), "emission");
        assert!(shared.engine.log().written() >= Lsn(2));
    }

    #[test]
    fn the_end_of_a_subscription_says_of_which() {
        let (shared, _) = server(Durability::Off);
        let (mut watch, subscribed) = watch(&shared);
        watch.end("ERR why");
        let notice = serde_json::to_value(watch.next().expect("the notice is sent").notice).expect("JSON");
        let name = format!("{}-0", subscribed.query.id());
        assert_eq!(notice, serde_json::json!({ "type": "failed", "sub_id": name, "error": "ERR why" }));
        assert!(watch.next().is_none() && watch.has_ended());
    }

    #[test]
    fn waiting_ends_when_the_log_is_durable_or_has_failed() {
        let (shared, storage) = server(Durability::Always);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let wait = |lsn| {
            let patience = Duration::from_secs(20);
            runtime.block_on(async {
                tokio::time::timeout(patience, shared.wait_for_log(Some(Until::Committed(lsn)), 0)).await
            })
        };
        set(&shared, "1");
        assert_eq!(wait(Lsn(1)), Ok(Ok(())));
        assert!(shared.engine.log().durable() >= Lsn(1));
        let fault = Fault::Error(std::io::ErrorKind::Other);
        storage.set_plan(Some(Plan { fault, at: 1, site: Some(Site::SyncData), forever: true, seed: 0 }));
        set(&shared, "2");
        assert_eq!(wait(Lsn(2)), Ok(Err(NeverReached::LogFailed)));
        assert_eq!(wait(Lsn(1)), Ok(Ok(())));
    }

    #[test]
    fn a_stale_floor_is_sent_when_its_record_is_durable() {
        let (shared, _) = server(Durability::Always);
        shared.engine.limit_retention(RetentionLimits { bytes: 0, age_us: u64::MAX });
        let (mut watch, _) = watch(&shared);
        // The query retains its last emission regardless of the limit.
        ["1", "2", "3"].into_iter().for_each(|value| set(&shared, value));
        let pending = watch.next().expect("there is a notice to send");
        let Body::Stale { floor, .. } = &pending.notice.body else { panic!("{pending:?}") };
        assert_eq!(pending.after, Some(Until::Committed(Lsn(*floor))));
    }

    #[test]
    fn the_last_subscriber_that_leaves_ends_the_engines_notifications() {
        let (shared, _) = server(Durability::Off);
        let ((first, _), (second, _)) = (watch(&shared), watch(&shared));
        assert_eq!(shared.engine.next_forgetting_us(), None, "a receiver listens");
        drop(first);
        assert_eq!(shared.engine.next_forgetting_us(), None, "a listener is left");
        drop(second);
        assert!(shared.engine.next_forgetting_us().is_some(), "it is kept for a while, and no longer");
    }
}
