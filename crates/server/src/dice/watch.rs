//! `X.WATCH`, `UNWATCH`, `EMITRECONNECT` and `EMITACK` of this protocol.

use super::form::Form;
use super::handing::{end, notify, place};
use super::notice::{Handed, Notice};
use super::request::Words;
use super::table::Row;
use super::{fingerprint, sorted_sets};
use crate::context::Context;
use crate::session::{NAMES_LIMIT, Session};
use crate::subscription::cursor::ResumePosition;
use crate::subscription::delivery::Delivery;
use crate::subscription::lifecycle;
use crate::subscription::pending_resumption::{ResumeRequest, Resumption};
use crate::subscription::resumption;
use tidemark_engine::CommandError;
use tidemark_engine::watch::{Filter, Read, SharedQuery, Subscribed};

const SUBSCRIPTION_NOT_FOUND: CommandError = CommandError::text("SUBSCRIPTION_NOT_FOUND");
const INVALID_SEQUENCE: CommandError = CommandError::text("INVALID_SEQUENCE");

/// `X.WATCH argument ...`: writes the frame with the read's answer to `answer`. A read that the
/// client already watches is answered again, and its subscription continues.
pub(super) fn watch(
    session: &mut Session,
    base_row: &Row,
    words: &Words<'_>,
    answer: &mut Vec<u8>,
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    if session.subscriptions.reads.len() >= NAMES_LIMIT {
        return Err(CommandError::text("ERR too many subscriptions"));
    }
    let words = read_words(base_row, words)?;
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let read = Read::new(session.db, session.outbox.reply.protocol(), &words, Filter::default())?;
    let subscribed = cx.shared.engine.subscribe(read, session.client.worker, cx.now_us)?;
    cx.shared.watching_began(cx.now_us);
    let answered = begin(session, &subscribed, answer, cx);
    if !session.subscriptions.reads.contains(subscribed.query.id()) {
        lifecycle::leave_if_unused(session, &subscribed.query, cx);
    }
    answered
}

fn begin(
    session: &mut Session,
    subscribed: &Subscribed,
    answer: &mut Vec<u8>,
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    let Subscribed { query, number, .. } = subscribed;
    let (id, connection) = (query.id(), session.client.id);
    let known = session.subscriptions.reads.get_mut(id).map(|known| known.cursor.base());
    let known = known.or_else(|| cx.shared.dice.base_of(connection, id));
    let base = known.unwrap_or(*number);
    let form = Form::of(query.read(), fingerprint::of(query, base)).ok_or(CommandError::Syntax)?;
    form.begin(answer, &subscribed.answer).map_err(|why| CommandError::Text(why.to_string().into()))?;
    if known.is_none() {
        let handed = Handed { place: ResumePosition::new(query.clone(), *number), base, replaces: false };
        match cx.shared.dice.listener_for(connection) {
            Some(listener) => notify(listener, Notice::TakeOver(vec![handed]), cx),
            None => place(session, handed, subscribed.lsn, cx),
        }
    }
    Ok(())
}

/// Returns Redis's arguments for a watched read.
fn read_words(base_row: &Row, words: &Words<'_>) -> Result<Vec<Vec<u8>>, CommandError> {
    let mut read: Vec<Vec<u8>> = words.iter().map(|word| word.to_vec()).collect();
    if let Some(name) = read.first_mut() {
        *name = base_row.name.as_bytes().to_vec();
    }
    match base_row.name {
        "ZRANGE" => {
            let range = sorted_sets::range(words).map_err(CommandError::text)?;
            let key = words.get(1).copied().unwrap_or_default().to_vec();
            read = vec![base_row.name.as_bytes().to_vec(), key, range.start, range.stop];
            if range.by_score {
                read.push(b"BYSCORE".to_vec());
            }
            read.push(b"WITHSCORES".to_vec());
        }
        "ZRANK" => read.push(b"WITHSCORE".to_vec()),
        _ => {}
    }
    Ok(read)
}

/// `UNWATCH fingerprint`: ends the subscription on any of the client's connections. An unknown one
/// counts as ended.
pub(super) fn unwatch(
    session: &mut Session,
    words: &Words<'_>,
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    let [_, fingerprint] = words.as_slice() else { return Err(CommandError::Arity("unwatch".into())) };
    let fingerprint = number(fingerprint).ok_or(CommandError::NotAnInteger)?;
    if !end(session, fingerprint, cx) {
        for other in cx.shared.dice.others(session.client.id) {
            notify(other, Notice::End(fingerprint), cx);
        }
    }
    Ok(())
}

/// `EMITRECONNECT key id:fingerprint number`: resumes after that emission, immediately or once the
/// log has been searched. Returns the number of the next emission.
pub(super) fn reconnect(
    session: &mut Session,
    words: &Words<'_>,
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    let (query, base, last) = position("emitreconnect", session, words, cx)?;
    if session.subscriptions.reads.len() >= NAMES_LIMIT {
        return Err(CommandError::text("ERR too many subscriptions"));
    }
    let (lsn, asked) = (query.id(), ResumeRequest::Dice(base, base.saturating_add(last)));
    resumption::go_on(session, Resumption { query, lsn, delivery: Delivery::default(), asked }, cx)
}

/// `EMITACK key id:fingerprint number`: checks that there is such an emission. Retention is limited
/// by time and size, not by acknowledgements.
pub(super) fn acknowledge(
    session: &Session,
    words: &Words<'_>,
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    position("emitack", session, words, cx).map(drop)
}

/// Returns the query of a subscription, its numbering offset, and the given number of an emission.
fn position(
    name: &'static str,
    session: &Session,
    words: &Words<'_>,
    cx: &Context<'_>,
) -> Result<(SharedQuery, u64, u64), CommandError> {
    let [_, key, subscription, last] = words.as_slice() else { return Err(CommandError::Arity(name.into())) };
    let last = number(last).ok_or(CommandError::NotAnInteger)?;
    let colon = subscription.iter().rposition(|byte| *byte == b':').ok_or(SUBSCRIPTION_NOT_FOUND)?;
    let fingerprint = subscription.get(colon + 1..).and_then(number).ok_or(SUBSCRIPTION_NOT_FOUND)?;
    let protocol = session.outbox.reply.protocol();
    let (query, base) = cx
        .shared
        .engine
        .queries_of(session.db, key)
        .into_iter()
        .filter(|query| query.read().protocol() == protocol)
        .find_map(|query| fingerprint::base(&query, fingerprint).map(|base| (query, base)))
        .ok_or(SUBSCRIPTION_NOT_FOUND)?;
    // The fingerprint's base is at most the count, so nothing saturates.
    if last > query.count().saturating_sub(base) {
        return Err(INVALID_SEQUENCE);
    }
    Ok((query, base, last))
}

fn number(word: &[u8]) -> Option<u64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}
