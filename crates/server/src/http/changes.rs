//! `GET /v1/changes`: the log's changes as Server-Sent Events, or as messages of a WebSocket.

use crate::command::changes_command::{self, pause, place};
use crate::command::gate;
use crate::http::listener::Visit;
use crate::http::refusal::Refusal;
use crate::http::stream::{ALIVE_PAUSE, as_events, share_with_origin};
use crate::http::{access, web_socket};
use crate::shared::Shared;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{ConnectInfo, FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tidemark_changes::{End, Follower, Format, NotFollowed, NotSelected, Selection, query_string};
use tidemark_log::Lsn;
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

/// Longest message from a WebSocket client, which has nothing to send, in bytes.
const MESSAGE_BYTES: usize = 1024;

/// Options in the target of a request.
#[derive(Debug, Default)]
struct Wish {
    /// Last record that the client has; `None` for the newest.
    seen: Option<Lsn>,
    selection: Selection,
    progress: Option<Duration>,
    token: Option<Vec<u8>>,
}

impl Wish {
    /// Parses the query string and `Last-Event-ID`. A browser sends the latter at a reconnect; it
    /// is newer than the target, which does not change.
    fn parse(query: &str, last_event: Option<&[u8]>) -> Result<Wish, Refusal> {
        let (mut wish, mut is_placed) = (Wish::default(), false);
        let selected =
            |result: Result<(), NotSelected>| result.map_err(|error| Refusal::wrong(format!("ERR {error}")));
        for (name, value) in query_string::parse(query) {
            match name.as_slice() {
                b"from" => {
                    wish.seen = place(&value)?;
                    is_placed = true;
                }
                b"prefix" => selected(wish.selection.add_prefix(&value))?,
                b"type" => selected(wish.selection.add_type(&value))?,
                b"db" => selected(wish.selection.add_database(&value))?,
                b"progress" => wish.progress = Some(pause(&value)?),
                b"token" => wish.token = Some(value),
                other => {
                    let other = String::from_utf8_lossy(&other[..other.len().min(64)]).into_owned();
                    return Err(Refusal::wrong(format!(
                        "ERR unknown parameter '{other}': there are from, prefix, type, db, progress and token"
                    )));
                }
            }
        }
        if let Some(last) = last_event {
            wish.seen = place(last)?;
            is_placed = true;
        }
        if is_placed { Ok(wish) } else { Err(changes_command::unplaced().into()) }
    }
}

impl From<&NotFollowed> for Refusal {
    fn from(not_followed: &NotFollowed) -> Refusal {
        let status = match not_followed {
            // A browser does not reconnect after this status.
            NotFollowed::Stale(_) => StatusCode::GONE,
            NotFollowed::Invalid(_) => StatusCode::BAD_REQUEST,
            NotFollowed::Unreadable(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Refusal { status, reason: changes_command::refusal(not_followed) }
    }
}

/// `GET /v1/changes`
pub(crate) async fn changes(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(visit): ConnectInfo<Visit>,
    mut parts: Parts,
) -> Response {
    let mut response = match answer(&shared, visit, &mut parts).await {
        Ok(response) => response,
        Err(refusal) => refusal.into_response(),
    };
    share_with_origin(&shared, &parts.headers, &mut response);
    response
}

async fn answer(shared: &Arc<Shared>, visit: Visit, parts: &mut Parts) -> Result<Response, Refusal> {
    let last_event = parts.headers.get("last-event-id").map(|id| id.as_bytes().to_vec());
    let wish = Wish::parse(parts.uri.query().unwrap_or_default(), last_event.as_deref())?;
    access::check(
        &shared.settings.current(),
        &shared.logins,
        visit.address,
        &parts.headers,
        wish.token.as_deref(),
    )?;
    if shared.is_stopping() {
        return Err(Refusal::unavailable("the server is stopping"));
    }
    let connection = shared.http_registry.place().ok_or_else(|| {
        Refusal::unavailable("as many connections watch already as http-watch-connections allows")
    })?;
    let notices = Notices::begin(shared, wish)?;
    if parts.headers.contains_key(header::UPGRADE) {
        let upgrade = WebSocketUpgrade::from_request_parts(parts, &()).await;
        let upgrade =
            upgrade.map_err(|error| Refusal { status: error.status(), reason: error.body_text() })?;
        visit.watch_from(connection);
        let upgrade = upgrade.max_message_size(MESSAGE_BYTES).max_frame_size(MESSAGE_BYTES);
        return Ok(upgrade.on_upgrade(|socket| serve(socket, notices)));
    }
    visit.watch_from(connection);
    let events = stream::unfold(notices, |mut notices| async move {
        let event = notices.next().await?.event();
        Some((Ok::<Event, Infallible>(event), notices))
    });
    Ok(as_events(events))
}

/// Notice for a follower.
enum Notice {
    Change { lsn: Lsn, json: String },
    Progress(Lsn),
    Stale { lsn: Lsn, floor: Lsn },
    Failed { lsn: Lsn, reason: String },
}

impl Notice {
    /// Returns its kind, the LSN to resume from, and its body as JSON.
    fn parts(self) -> (&'static str, Lsn, String) {
        match self {
            Notice::Change { lsn, json } => ("change", lsn, json),
            Notice::Progress(lsn) => ("progress", lsn, serde_json::json!({ "lsn": lsn.0 }).to_string()),
            Notice::Stale { lsn, floor } => {
                ("stale", lsn, serde_json::json!({ "lsn": lsn.0, "floor": floor.0 }).to_string())
            }
            Notice::Failed { lsn, reason } => {
                ("failed", lsn, serde_json::json!({ "lsn": lsn.0, "error": reason }).to_string())
            }
        }
    }

    fn event(self) -> Event {
        let (kind, lsn, json) = self.parts();
        Event::default().event(kind).id(lsn.to_string()).data(json)
    }

    fn message(self) -> Message {
        let (kind, _, json) = self.parts();
        Message::Text(format!("{{\"type\":\"{kind}\",\"{kind}\":{json}}}").into())
    }
}

/// Notices of one follower, in order.
struct Notices {
    shared: Arc<Shared>,
    follower: Follower,
    called: Arc<Notify>,
    /// Last LSN that was sent to the client.
    sent: Lsn,
    progress: Option<Duration>,
    /// When a progress notice is due, unless a change is sent before.
    progress_at: Option<Instant>,
    has_ended: bool,
    /// Released when the stream ends.
    _place: OwnedSemaphorePermit,
}

impl Notices {
    fn begin(shared: &Arc<Shared>, wish: Wish) -> Result<Notices, Refusal> {
        if let Some(error) = shared.group.as_ref().and_then(gate::objection_to_watching) {
            return Err(Refusal::of_error(error.to_string().as_bytes()));
        }
        let place = Arc::clone(&shared.follower_places).try_acquire_owned();
        let place = place.map_err(|_| Refusal::unavailable(changes_command::NO_PLACE))?;
        let seen = wish.seen.unwrap_or_else(|| shared.engine.log().appended());
        let called = Arc::new(Notify::new());
        let waker = Arc::clone(&called);
        let waker = Box::new(move || waker.notify_one());
        let limit = changes_command::longest(&shared.settings.current());
        let follower = shared.feed.follow(seen, wish.selection, Format::Json, limit, waker);
        let follower = follower.map_err(|not_followed| Refusal::from(&not_followed))?;
        let (shared, progress) = (Arc::clone(shared), wish.progress);
        let mut notices = Notices {
            shared,
            follower,
            called,
            sent: seen,
            progress,
            progress_at: None,
            has_ended: false,
            _place: place,
        };
        notices.await_progress();
        Ok(notices)
    }

    fn await_progress(&mut self) {
        self.progress_at = self.progress.map(|after| Instant::now() + after);
    }

    /// Returns the next notice; `None` at the end. Cancel-safe.
    async fn next(&mut self) -> Option<Notice> {
        while !self.has_ended {
            if let Some(record) = self.follower.next() {
                self.sent = record.lsn;
                self.await_progress();
                self.shared.counters.last().inspect(|counters| counters.changes.add(1));
                let json = String::from_utf8(record.payload).expect("JSON is text");
                return Some(Notice::Change { lsn: record.lsn, json });
            }
            if let Some(end) = self.follower.end() {
                self.has_ended = true;
                return Some(match end {
                    End::Stale(floor) => Notice::Stale { lsn: self.sent, floor },
                    End::Unreadable(reason) | End::TooLong(reason) => {
                        Notice::Failed { lsn: self.sent, reason }
                    }
                });
            }
            tokio::select! {
                () = self.called.notified() => {}
                () = until(self.progress_at) => {
                    self.await_progress();
                    if let Some(lsn) = self.follower.caught_up_to() {
                        self.sent = lsn;
                        return Some(Notice::Progress(lsn));
                    }
                }
            }
        }
        None
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Sends notices until one side ends the connection; no error needs to be reported then.
async fn serve(mut socket: WebSocket, mut notices: Notices) {
    let mut alive = interval_at(Instant::now() + ALIVE_PAUSE, ALIVE_PAUSE);
    alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let message = tokio::select! {
            heard = web_socket::hear(&mut socket) => match heard {
                Some(_) => continue,
                None => return,
            },
            notice = notices.next() => match notice {
                Some(notice) => notice.message(),
                None => Message::Close(None),
            },
            _ = alive.tick() => Message::Ping(Vec::new().into()),
        };
        let is_last = matches!(message, Message::Close(_));
        if socket.send(message).await.is_err() || is_last {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_says_what_is_followed() {
        let wish = Wish::parse("from=7&prefix=a%3a&type=hash&db=1&progress=1000&token=t", None).ok();
        let wish = wish.expect("it does");
        let mut selection = Selection::default();
        selection.add_prefix(b"a:").expect("a prefix");
        selection.add_type(b"hash").expect("a type");
        selection.add_database(b"1").expect("a database");
        assert_eq!((wish.seen, wish.selection), (Some(Lsn(7)), selection));
        assert_eq!((wish.progress, wish.token.as_deref()), (Some(Duration::from_secs(1)), Some(&b"t"[..])));
        let seen = |query, last| Wish::parse(query, last).ok().and_then(|wish| wish.seen);
        assert_eq!(seen("from=7", Some(b"9".as_slice())), Some(Lsn(9)), "what a browser says is newer");
        assert_eq!(seen("from=$", None), None);
    }

    #[test]
    fn a_target_that_says_something_else_is_refused() {
        for (query, last, reason) in [
            ("", None, "ERR FROM is missing"),
            ("from=x", None, "ERR FROM takes an LSN"),
            ("from=7", Some(b"17-0:3".as_slice()), "ERR FROM takes an LSN"),
            ("from=7&command=GET", None, "ERR unknown parameter 'command'"),
            ("from=7&type=x", None, "ERR the type must be"),
            ("from=7&db=x", None, "ERR the database must be"),
            ("from=7&progress=1", None, "ERR PROGRESS takes milliseconds"),
        ] {
            let refused = Wish::parse(query, last).err().map(|refusal| refusal.reason).unwrap_or_default();
            assert!(refused.starts_with(reason), "{query}: {refused}");
        }
    }
}
