//! `GET /v1/watch`: a watched read as Server-Sent Events, and the upgrade to a WebSocket.
//!
//! ```text
//! request ─► access (may it?) ─► a place ─► Engine::subscribe ─► watch: notices in order ─► events
//!                                └► Upgrade: websocket ─► socket: the same notices as messages
//! ```

use crate::http::listener::Visit;
use crate::http::refusal::Refusal;
use crate::http::stream::{as_events, share_with_origin};
use crate::http::watch::{self, Body, Notice, Pending, Watch};
use crate::http::{access, socket};
use crate::shared::Shared;
use crate::subscription::cursor::{self, Cursor};
use crate::subscription::http_registry::HttpListener;
use crate::subscription::http_registry::NeverReached;
use crate::subscription::resume_error::ResumeError;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{ConnectInfo, FromRequestParts, State};
use axum::http::header;
use axum::http::request::Parts;
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use std::convert::Infallible;
use std::sync::Arc;
use tidemark_changes::query_string;
use tidemark_engine::CommandError;
use tidemark_engine::command::parse;
use tidemark_engine::watch::Read;
use tidemark_log::Lsn;

/// Options in the target of a request.
#[derive(Debug, Default)]
struct Wish {
    command: Vec<u8>,
    args: Vec<Vec<u8>>,
    db: u8,
    /// Name and LSN of a subscription to resume.
    resume: Option<Vec<u8>>,
    token: Option<Vec<u8>>,
}

impl Wish {
    fn parse(query: &str) -> Result<Wish, Refusal> {
        let mut wish = Wish::default();
        for (name, value) in query_string::parse(query) {
            match name.as_slice() {
                b"command" => wish.command = value,
                b"arg" => wish.args.push(value),
                b"db" => wish.db = parse::database(&value)?,
                b"resume" => wish.resume = Some(value),
                b"token" => wish.token = Some(value),
                other => {
                    let other = String::from_utf8_lossy(&other[..other.len().min(64)]).into_owned();
                    return Err(Refusal::wrong(format!(
                        "ERR unknown parameter '{other}': there are command, arg, db, resume and token"
                    )));
                }
            }
        }
        Ok(wish)
    }

    fn read(&self) -> Result<Read, CommandError> {
        if self.command.is_empty() {
            return Err(CommandError::text(
                "ERR no command: ask for a read as in /v1/watch?command=GET&arg=key, or for a WebSocket",
            ));
        }
        let words = std::iter::once(&self.command).chain(&self.args);
        watch::read(self.db, &words.map(Vec::as_slice).collect::<Vec<_>>())
    }
}

/// `GET /v1/watch`
pub(crate) async fn watch(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(visit): ConnectInfo<Visit>,
    mut parts: Parts,
) -> Response {
    let mut response = match answer(shared.clone(), visit, &mut parts).await {
        Ok(response) => response,
        Err(refusal) => refusal.into_response(),
    };
    share_with_origin(&shared, &parts.headers, &mut response);
    response
}

async fn answer(shared: Arc<Shared>, visit: Visit, parts: &mut Parts) -> Result<Response, Refusal> {
    let wish = Wish::parse(parts.uri.query().unwrap_or_default())?;
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
    let place = shared.http_registry.place().ok_or_else(|| {
        Refusal::unavailable("as many connections watch already as http-watch-connections allows")
    })?;
    if parts.headers.contains_key(header::UPGRADE) {
        let upgrade = WebSocketUpgrade::from_request_parts(parts, &()).await;
        let upgrade =
            upgrade.map_err(|error| Refusal { status: error.status(), reason: error.body_text() })?;
        visit.watch_from(place);
        return Ok(socket::serve(upgrade, shared, wish.db));
    }
    // `Last-Event-ID` of a reconnecting browser is newer than the target, which does not change.
    let last = parts.headers.get("last-event-id").map(|id| id.as_bytes().to_vec()).or(wish.resume.clone());
    let read = wish.read()?;
    // First, as finding a position in the log may take longer than a request's time limit.
    visit.watch_from(place);
    let events = Events::begin(&shared, read, last.as_deref()).await?;
    Ok(events.into_response())
}

/// One subscription as a stream of events.
struct Events {
    shared: Arc<Shared>,
    http_listener: Arc<HttpListener>,
    watch: Watch,
    /// Terms of this member of a group that had ended when the stream began: it ends with the next
    /// one.
    ended_terms: u64,
}

impl Events {
    /// Starts with the answer of the read, or with the missed emissions of a resumed subscription.
    async fn begin(shared: &Arc<Shared>, read: Read, last: Option<&[u8]>) -> Result<Events, Refusal> {
        let ended_terms = shared.ended_terms();
        let http_listener = Arc::new(HttpListener::default());
        let resumed = match last {
            None => None,
            Some(last) => Some((last, resume(shared, &http_listener, &read, last).await)),
        };
        let stale = match resumed {
            None => None,
            Some((_, Ok(cursor))) => {
                let watch = Watch::new(shared, &http_listener, cursor);
                return Ok(Events { shared: Arc::clone(shared), http_listener, watch, ended_terms });
            }
            Some((last, Err(why))) => {
                let name = last.split(|byte| *byte == b':').next().unwrap_or_default();
                let name = String::from_utf8_lossy(&name[..name.len().min(64)]).into_owned();
                Some(watch::stale(shared, &name, why))
            }
        };
        shared.http_registry.wait_for_pause(&shared.pause, &shared.engine, &read).await;
        let subscribed = watch::subscribe(shared, read)?;
        let cursor = Cursor::new(subscribed.query.clone(), subscribed.number, subscribed.lsn);
        let mut watch = Watch::new(shared, &http_listener, cursor);
        let snapshot = watch.show(&subscribed);
        stale.into_iter().for_each(|stale| watch.say(stale));
        watch.say(snapshot);
        Ok(Events { shared: Arc::clone(shared), http_listener, watch, ended_terms })
    }

    async fn next(&mut self) -> Option<Event> {
        loop {
            if self.watch.has_ended() {
                return None;
            }
            let Some(Pending { notice, after }) = self.watch.next() else {
                self.http_listener.next(Lsn::ZERO).await;
                continue;
            };
            match self.shared.wait_for_log(after, self.ended_terms).await {
                Ok(()) => return Some(event(&notice)),
                // The client reconnects, and finds the leader.
                Err(NeverReached::TermEnded) => return None,
                Err(why @ NeverReached::LogFailed) => self.watch.end(why.error()),
            }
        }
    }
}

impl IntoResponse for Events {
    fn into_response(self) -> Response {
        let events = stream::unfold(self, |mut events| async move {
            let event = events.next().await?;
            Some((Ok::<Event, Infallible>(event), events))
        });
        as_events(events)
    }
}

fn event(notice: &Notice) -> Event {
    let data = serde_json::to_string(&notice.body).expect("a notice has a form in JSON");
    let event = Event::default().event(notice.kind).data(data);
    match &notice.body {
        Body::Answer { sub_id, lsn, .. } | Body::Change { sub_id, lsn, .. } => {
            event.id(format!("{sub_id}:{lsn}"))
        }
        _ => event,
    }
}

/// Returns a cursor for `read` that resumes after the event with the ID `last`.
async fn resume(
    shared: &Shared,
    http_listener: &Arc<HttpListener>,
    read: &Read,
    last: &[u8],
) -> Result<Cursor, ResumeError> {
    let parts = || {
        let at = last.iter().position(|byte| *byte == b':')?;
        let lsn = std::str::from_utf8(&last[at + 1..]).ok()?.parse().ok()?;
        Some((cursor::find(&shared.engine, &last[..at])?, Lsn(lsn)))
    };
    let Some(((query, base), lsn)) = parts() else { return Err(ResumeError::NotFound) };
    if query.read() != read {
        return Err(ResumeError::NotFound);
    }
    // There are no emissions before the query began.
    let lsn = lsn.max(query.id());
    Ok(Cursor::at(watch::resume(shared, http_listener, query.id(), lsn).await?, base, lsn))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_says_what_is_read() {
        let wish = Wish::parse("command=ZRANGE&arg=z&arg=0&arg=%2d1&db=3&resume=1-0:2&token=t");
        let Ok(wish) = wish else { panic!("it does") };
        let read = wish.read().expect("watchable");
        assert_eq!(read.args().collect::<Vec<_>>(), [&b"zrange"[..], b"z", b"0", b"-1"]);
        assert_eq!(read.db(), 3);
        assert_eq!((wish.resume.as_deref(), wish.token.as_deref()), (Some(&b"1-0:2"[..]), Some(&b"t"[..])));
    }

    #[test]
    fn a_target_that_says_something_else_is_refused() {
        for (query, reason) in [
            ("command=GET&key=k", "ERR unknown parameter 'key'"),
            ("command=GET&arg=k&db=16", "ERR DB index is out of range"),
            ("", "ERR no command"),
            ("arg=k", "ERR no command"),
            ("command=SET&arg=k&arg=v", "ERR 'set' cannot be watched"),
            ("command=GET", "ERR wrong number of arguments"),
        ] {
            let refused = Wish::parse(query).and_then(|wish| wish.read().map_err(Refusal::from)).err();
            let refused = refused.map(|refusal| refusal.reason).unwrap_or_default();
            assert!(refused.starts_with(reason), "{query}: {refused}");
        }
    }
}
