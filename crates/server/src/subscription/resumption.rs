//! Resumes subscriptions after an LSN: immediately, or after a search in the log during which the
//! client is blocked.

use crate::context::Context;
use crate::dice;
use crate::durability::hold::hold_position;
use crate::session::{Session, WaitFor};
use crate::subscription::channel_watch;
use crate::subscription::cursor::{self, Cursor, Older, ResumePosition, Resuming, Searched};
use crate::subscription::lifecycle;
use crate::subscription::pending_resumption::{PendingResumption, ResumeRequest, Resumption};
use crate::subscription::read_subscription::ReadSubscription;
use crate::subscription::reply::{answer, begun, refusal, refuse};
use crate::subscription::resume_error::ResumeError;
use crate::wait;
use tidemark_engine::CommandError;
use tidemark_engine::watch::{Guarantee, Named};
use tidemark_log::Lsn;

/// Resumes a subscription. Blocks its client if the place must be searched in the log.
pub(crate) fn go_on(
    session: &mut Session,
    mut resumption: Resumption,
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    if !matches!(resumption.asked, ResumeRequest::Watch(..) | ResumeRequest::Channel(_)) {
        // The query has no emissions before its beginning.
        resumption.lsn = resumption.lsn.max(resumption.query.id());
    }
    let listener = listener(session, &resumption, cx);
    let notifier = lifecycle::notifier_of(session, cx);
    let older = Older { replays: &cx.shared.replays, notifier: &notifier };
    match cursor::resume(&cx.shared.engine, resumption.query.id(), resumption.wanted(), listener, &older) {
        Ok(Resuming::Found(place)) => end(session, &resumption, Ok(place), cx),
        Ok(Resuming::PendingResumption(search)) => {
            wait::begin(
                session,
                WaitFor::Resumption(Box::new(PendingResumption { resumption, search })),
                None,
            );
            Ok(())
        }
        Err(why) => end(session, &resumption, Err(why), cx),
    }
}

/// Listener that is notified of the emissions: the channel thread or the client's worker.
fn listener(session: &Session, resumption: &Resumption, cx: &Context<'_>) -> usize {
    match resumption.asked {
        ResumeRequest::Channel(_) => cx.shared.channel_registry.listener(),
        _ => session.client.worker,
    }
}

/// Whether the client waits for the place where its subscription to this query resumes.
pub(crate) fn waits(session: &Session, query: Lsn) -> bool {
    match session.wait.as_ref().map(|wait| &wait.what) {
        Some(WaitFor::Resumption(pending)) => pending.query().id() == query,
        _ => false,
    }
}

/// Ends a client's wait if the search has finished. Returns whether it has.
pub(crate) fn look(session: &mut Session, cx: &Context<'_>) -> bool {
    let Some(mut wait) = session.wait.take() else { return false };
    let WaitFor::Resumption(pending) = wait.what else {
        session.wait = Some(wait);
        return false;
    };
    let PendingResumption { resumption, search } = *pending;
    let found = match search.look(&cx.shared.engine, listener(session, &resumption, cx)) {
        Searched::NotYet(search) => {
            wait.what = WaitFor::Resumption(Box::new(PendingResumption { resumption, search }));
            session.wait = Some(wait);
            return false;
        }
        Searched::Done(found) => found,
    };
    let mark = session.outbox.reply.len();
    if let Err(error) = end(session, &resumption, found, cx) {
        session.outbox.reply.error(&error);
    }
    if wait.is_silent {
        session.outbox.take_back(mark);
    }
    session.show_state();
    session.client.end_wait();
    true
}

/// Answers the request to resume.
fn end(
    session: &mut Session,
    resumption: &Resumption,
    found: Result<ResumePosition, ResumeError>,
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    let found = found.and_then(|place| match named(resumption, cx) {
        Ok(named) => Ok((place, named)),
        Err(why) => {
            lifecycle::leave_if_unused(session, &resumption.query, cx);
            Err(why)
        }
    });
    match (found, &resumption.asked) {
        (Ok((place, _)), ResumeRequest::Channel(channel)) => {
            channel_watch::resume(session, channel, place, resumption.lsn, cx)
        }
        (Err(why), ResumeRequest::Channel(channel)) if why != ResumeError::TryAgain => {
            channel_watch::begin(session, channel, resumption.query.read().clone(), Some(why), cx)
        }
        (Ok((place, named)), _) => {
            returned(session, resumption, place, named, cx);
            Ok(())
        }
        (Err(why), ResumeRequest::Reconnect(_) | ResumeRequest::NamedReconnect(_))
            if why != ResumeError::TryAgain =>
        {
            refuse(session, why, cx);
            Ok(())
        }
        // DiceDB's protocol has no field for an LSN.
        (Err(why), ResumeRequest::Dice(..)) if why != ResumeError::TryAgain => {
            Err(CommandError::text(why.word()))
        }
        (Err(why), asked) => {
            if let ResumeRequest::Watch(..) = asked {
                // The worker was registered as a listener with the request.
                lifecycle::leave_if_unused(session, &resumption.query, cx);
            }
            hold_position(session, session.outbox.reply.len(), why.lsn(), cx);
            Err(CommandError::Text(refusal(why).into()))
        }
    }
}

/// Begins the subscription at the place found, and answers.
fn returned(
    session: &mut Session,
    resumption: &Resumption,
    place: ResumePosition,
    named: Option<(&[u8], Named)>,
    cx: &Context<'_>,
) {
    let Resumption { query, lsn, delivery, asked } = resumption;
    let (id, mark) = (query.id(), session.outbox.reply.len());
    if let ResumeRequest::Dice(base, number) = asked {
        dice::go_on(session, place, *base, cx);
        session.outbox.reply.bulk(format!("OK {}", number - base + 1).as_bytes());
        return;
    }
    let base = match (&named, asked) {
        (Some((_, named)), _) => named.base,
        (None, ResumeRequest::Reconnect(base)) => *base,
        (None, ResumeRequest::Watch(Some(base), _)) => place.number.min(*base),
        (None, _) => place.number,
    };
    let cursor = Cursor::at(place, base, *lsn);
    let (lsn, next) = (cursor.lsn(), cursor.sequence() + 1);
    let replaced = match &named {
        Some((name, named)) => lifecycle::hold(session, name, named, (cursor, *delivery), cx),
        None => lifecycle::begin(session, ReadSubscription::new(cursor, *delivery, &cx.shared.clock), cx),
    };
    match asked {
        ResumeRequest::Watch(_, shown) => {
            begun(session, id, lsn, None);
            hold_position(session, mark, *shown, cx);
        }
        ResumeRequest::NamedWatch(_, value) => {
            begun(session, id, lsn, value.as_deref());
            // Includes whichever record has moved the position.
            hold_position(session, mark, cx.shared.engine.log().appended(), cx);
        }
        ResumeRequest::Reconnect(_) | ResumeRequest::NamedReconnect(_) | ResumeRequest::Dice(..) => {
            answer(session, "OK", next);
        }
        ResumeRequest::Channel(_) => unreachable!("the thread of channels has that subscription"),
    }
    replaced.notify(session);
    lifecycle::catch_up_soon(session, id);
}

/// The name and its state, for a named subscription. It may have ended, or its position moved,
/// during the search.
fn named<'r>(resumption: &'r Resumption, cx: &Context<'_>) -> Result<Option<(&'r [u8], Named)>, ResumeError> {
    let (ResumeRequest::NamedWatch(name, _) | ResumeRequest::NamedReconnect(name)) = &resumption.asked else {
        return Ok(None);
    };
    let named = cx.shared.engine.named(name).filter(|named| named.query.id() == resumption.query.id());
    let named = named.ok_or(ResumeError::NotFound)?;
    let position = named.position.max(resumption.query.id());
    if named.guarantee == Guarantee::AtMostOnce && position != resumption.lsn {
        return Err(ResumeError::Invalid(named.position));
    }
    Ok(Some((name, named)))
}
