//! `CHANGES`: streams the log to a connection.

use crate::config::Config;
use crate::context::Context;
use crate::net::inbox::Message;
use crate::net::outbox::Until;
use crate::session::{ChangeStream, Session};
use std::sync::Arc;
use std::time::Duration;
use tidemark_changes::{Format, NotFollowed, Selection};
use tidemark_engine::CommandError;
use tidemark_engine::command::parse::{self, is};
use tidemark_log::Lsn;

/// Allowed interval between two progress frames, in milliseconds: up to a day.
const PROGRESS_MS: std::ops::RangeInclusive<i64> = 10..=86_400_000;

/// Error if `changes-followers` connections already follow the log.
pub(crate) const NO_PLACE: &str = "ERR too many connections follow the log: the limit is changes-followers";

/// Parsed options of `CHANGES`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Request {
    /// Last record that the client has; `None` for the newest.
    seen: Option<Lsn>,
    selection: Selection,
    format: Format,
    progress: Option<Duration>,
}

/// `CHANGES FROM lsn|$ [PREFIX prefix ...] [TYPE type ...] [DB index ...] [FORMAT JSON|BINARY]
/// [PROGRESS milliseconds]`, and `CHANGES STOP`, which returns the number of ended streams.
pub(crate) fn changes(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    if let [_, word] = args
        && is(word, "STOP")
    {
        let followed = session.subscriptions.following.take().is_some();
        session.outbox.reply.count(usize::from(followed));
        session.show_state();
        return Ok(());
    }
    let request = read(args)?;
    if session.subscriptions.following.is_some() {
        return Err(CommandError::text(
            "ERR this connection follows the log already; end that with CHANGES STOP",
        ));
    }
    let place = Arc::clone(&cx.shared.follower_places).try_acquire_owned();
    let place = place.map_err(|_| CommandError::text(NO_PLACE))?;
    let log = cx.shared.engine.log();
    let seen = request.seen.unwrap_or_else(|| log.appended());
    let (inbox, connection_id) =
        (Arc::clone(&cx.shared.inboxes[session.client.worker]), session.connection_id());
    let waker = Box::new(move || inbox.send(Message::Changed(connection_id)));
    let (selection, limit) = (request.selection, longest(cx.config));
    let follower = cx.shared.feed.follow(seen, selection, request.format, limit, waker);
    let follower = follower.map_err(|not_followed| CommandError::Text(refusal(&not_followed).into()))?;
    let following =
        ChangeStream::new(follower, request.format, seen, request.progress, place, &cx.shared.clock);
    session.subscriptions.following = Some(following);
    session.show_state();
    let (mark, committed) = (session.outbox.reply.len(), log.committed());
    let reply = &mut session.outbox.reply;
    reply.map(3);
    for (name, lsn) in [("from", seen), ("floor", log.floor()), ("durable", committed)] {
        reply.bulk(name.as_bytes());
        reply.count(lsn.0 as usize);
    }
    if seen > committed {
        // The reply waits until its LSN is committed: a crash must not invalidate a position that a
        // client resumes from.
        session.outbox.hold(mark, Until::Committed(seen));
    }
    Ok(())
}

/// Longest change of one record that a client is sent, in bytes: its output limit.
pub(crate) fn longest(config: &Config) -> usize {
    match config.output_limits.pubsub.hard_bytes {
        0 => usize::MAX,
        bytes => bytes,
    }
}

/// Returns the error text: why the log cannot be followed from that LSN, and what to do.
pub(crate) fn refusal(not_followed: &NotFollowed) -> String {
    match not_followed {
        NotFollowed::Stale(_) => {
            format!("STALE_SEQUENCE {not_followed}: copy the state again, and follow from its LSN")
        }
        NotFollowed::Invalid(_) => {
            format!("INVALID_SEQUENCE {not_followed}: that LSN is not from this server")
        }
        NotFollowed::Unreadable(reason) => format!("ERR {reason}"),
    }
}

/// Error for a request without `FROM`.
pub(crate) fn unplaced() -> CommandError {
    CommandError::text(
        "ERR FROM is missing: give the last LSN that you have, 0 for the beginning or $ for the end",
    )
}

fn read(args: &[&[u8]]) -> Result<Request, CommandError> {
    let mut request = Request::default();
    let (mut is_placed, mut rest) = (false, args.get(1..).unwrap_or_default());
    while let [word, after @ ..] = rest {
        let [value, behind @ ..] = after else { return Err(CommandError::Syntax) };
        rest = behind;
        let refused = |reason: String| CommandError::Text(format!("ERR {reason}").into());
        if is(word, "FROM") {
            is_placed = true;
            request.seen = place(value)?;
        } else if is(word, "PREFIX") {
            request.selection.add_prefix(value).map_err(|error| refused(error.to_string()))?;
        } else if is(word, "TYPE") {
            request.selection.add_type(value).map_err(|error| refused(error.to_string()))?;
        } else if is(word, "DB") {
            request.selection.add_database(value).map_err(|error| refused(error.to_string()))?;
        } else if is(word, "FORMAT") {
            let format = String::from_utf8_lossy(value).parse();
            request.format =
                format.map_err(|error: tidemark_changes::UnknownFormat| refused(error.to_string()))?;
        } else if is(word, "PROGRESS") {
            request.progress = Some(pause(value)?);
        } else {
            return Err(CommandError::Syntax);
        }
    }
    if is_placed { Ok(request) } else { Err(unplaced()) }
}

/// Parses the LSN to continue after; `None` for the newest.
pub(crate) fn place(value: &[u8]) -> Result<Option<Lsn>, CommandError> {
    if value == b"$" {
        return Ok(None);
    }
    let lsn = parse::canonical_integer(value).and_then(|lsn| u64::try_from(lsn).ok());
    lsn.map(|lsn| Some(Lsn(lsn)))
        .ok_or(CommandError::text("ERR FROM takes an LSN, or $ for the end of the log"))
}

/// Parses how long the stream may be idle before a progress frame is sent.
pub(crate) fn pause(value: &[u8]) -> Result<Duration, CommandError> {
    let milliseconds = parse::canonical_integer(value).filter(|value| PROGRESS_MS.contains(value));
    milliseconds.map(|value| Duration::from_millis(value as u64)).ok_or_else(|| {
        let (least, most) = (PROGRESS_MS.start(), PROGRESS_MS.end());
        CommandError::Text(format!("ERR PROGRESS takes milliseconds from {least} to {most}").into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(line: &str) -> Result<Request, String> {
        let words: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
        read(&words).map_err(|error| error.to_string())
    }

    #[test]
    fn a_request_names_a_place_and_may_choose() {
        assert_eq!(request("CHANGES FROM $"), Ok(Request::default()));
        let mut selection = Selection::default();
        for prefix in ["type", "b"] {
            selection.add_prefix(prefix.as_bytes()).expect("a prefix");
        }
        selection.add_type(b"hash").expect("a type");
        selection.add_database(b"3").expect("a database");
        assert_eq!(
            request("changes PREFIX type from 7 prefix b TYPE hash DB 3 FORMAT binary PROGRESS 1000"),
            Ok(Request {
                seen: Some(Lsn(7)),
                selection,
                format: Format::Binary,
                progress: Some(Duration::from_secs(1)),
            })
        );
    }

    #[test]
    fn what_is_no_request_is_answered_by_what_would_be_one() {
        for (line, error) in [
            ("CHANGES FORMAT JSON", "ERR FROM is missing"),
            ("CHANGES FROM", "ERR syntax error"),
            ("CHANGES FROM 0 EVERYTHING 1", "ERR syntax error"),
            ("CHANGES FROM x", "ERR FROM takes an LSN"),
            ("CHANGES FROM -1", "ERR FROM takes an LSN"),
            ("CHANGES FROM 0 FORMAT xml", "ERR the format must be json or binary"),
            (
                "CHANGES FROM 0 TYPE streams",
                "ERR the type must be string, list, hash, set, zset, counter, limit, pool, TSDB-TYPE, lens or stream",
            ),
            ("CHANGES FROM 0 DB 16", "ERR the database must be a number from 0 to 15"),
            ("CHANGES FROM 0 PROGRESS 1", "ERR PROGRESS takes milliseconds from 10 to 86400000"),
        ] {
            let error_text = request(line).expect_err(line);
            assert!(error_text.starts_with(error), "{line}: {error_text}");
        }
    }
}
