//! Subscriptions that go on behind an LSN: at once, or as soon as the log has shown where, for which their client waits.

use crate::command::channel_command;
use crate::context::Context;
use crate::cursor::{self, Cursor, Older, Place, Resuming, Searched};
use crate::holding::hold_position;
use crate::not_resumed::NotResumed;
use crate::session::{Asked, Returning, Session, Sought, WaitFor, Watching};
use crate::watch_answer::{answer, begun, refusal, refuse};
use crate::{dice, wait, watching};
use tidemark_engine::CommandError;
use tidemark_engine::query::{Guarantee, Named};
use tidemark_log::Lsn;

/// Lets a subscription go on; its client waits if the place has to be looked for.
pub(crate) fn go_on(
    session: &mut Session,
    mut returning: Returning,
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    if !matches!(returning.asked, Asked::Watch(..) | Asked::Channel(_)) {
        // Before it began there was nothing.
        returning.lsn = returning.lsn.max(returning.query.id());
    }
    let listener = listener(session, &returning, cx);
    let tell = watching::teller(session, cx);
    let older = Older { backlogs: &cx.shared.backlogs, tell: &tell };
    match cursor::resume(&cx.shared.engine, returning.query.id(), returning.wanted(), listener, &older) {
        Ok(Resuming::Found(place)) => end(session, &returning, Ok(place), cx),
        Ok(Resuming::Sought(search)) => {
            wait::begin(session, WaitFor::Place(Box::new(Sought { returning, search })), None);
            Ok(())
        }
        Err(why) => end(session, &returning, Err(why), cx),
    }
}

/// Who is told of the emissions: the thread of channels, if the subscription is one of those.
fn listener(session: &Session, returning: &Returning, cx: &Context<'_>) -> usize {
    match returning.asked {
        Asked::Channel(_) => cx.shared.channel_watches.listener(),
        _ => session.client.worker,
    }
}

/// Whether the client waits for the place where its subscription to this query goes on.
pub(crate) fn waits(session: &Session, query: Lsn) -> bool {
    match session.wait.as_ref().map(|wait| &wait.what) {
        Some(WaitFor::Place(sought)) => sought.query().id() == query,
        _ => false,
    }
}

/// Ends a client's wait if the place is known, or there is none; whether it did.
pub(crate) fn look(session: &mut Session, cx: &Context<'_>) -> bool {
    let Some(mut wait) = session.wait.take() else { return false };
    let WaitFor::Place(sought) = wait.what else {
        session.wait = Some(wait);
        return false;
    };
    let Sought { returning, search } = *sought;
    let found = match search.look(&cx.shared.engine, listener(session, &returning, cx)) {
        Searched::NotYet(search) => {
            wait.what = WaitFor::Place(Box::new(Sought { returning, search }));
            session.wait = Some(wait);
            return false;
        }
        Searched::Done(found) => found,
    };
    let mark = session.output.reply.len();
    if let Err(error) = end(session, &returning, found, cx) {
        session.output.reply.error(&error);
    }
    if wait.is_silent {
        session.output.take_back(mark);
    }
    session.show_state();
    session.client.end_wait();
    true
}

/// Answers whoever has asked.
fn end(
    session: &mut Session,
    returning: &Returning,
    found: Result<Place, NotResumed>,
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    let found = found.and_then(|place| match named(returning, cx) {
        Ok(named) => Ok((place, named)),
        Err(why) => {
            watching::leave_if_unused(session, &returning.query, cx);
            Err(why)
        }
    });
    match (found, &returning.asked) {
        (Ok((place, _)), Asked::Channel(channel)) => {
            channel_command::go_on(session, channel, place, returning.lsn, cx)
        }
        (Err(why), Asked::Channel(channel)) if why != NotResumed::TryAgain => {
            channel_command::begin(session, channel, returning.query.read().clone(), Some(why), cx)
        }
        (Ok((place, named)), _) => {
            returned(session, returning, place, named, cx);
            Ok(())
        }
        (Err(why), Asked::Reconnect(_) | Asked::NamedReconnect(_)) if why != NotResumed::TryAgain => {
            refuse(session, why, cx);
            Ok(())
        }
        // A number of a log goes with no word of that protocol.
        (Err(why), Asked::Dice(..)) if why != NotResumed::TryAgain => Err(CommandError::text(why.word())),
        (Err(why), asked) => {
            if let Asked::Watch(..) = asked {
                // The worker listens since it was asked.
                watching::leave_if_unused(session, &returning.query, cx);
            }
            hold_position(session, session.output.reply.len(), why.lsn(), cx);
            Err(CommandError::Text(refusal(why).into()))
        }
    }
}

/// A subscription goes on at a place.
fn returned(
    session: &mut Session,
    returning: &Returning,
    place: Place,
    named: Option<(&[u8], Named)>,
    cx: &Context<'_>,
) {
    let Returning { query, lsn, delivery, asked } = returning;
    let (id, mark) = (query.id(), session.output.reply.len());
    if let Asked::Dice(base, number) = asked {
        dice::go_on(session, place, *base, cx);
        session.output.reply.bulk(format!("OK {}", number - base + 1).as_bytes());
        return;
    }
    let base = match (&named, asked) {
        (Some((_, named)), _) => named.base,
        (None, Asked::Reconnect(base)) => *base,
        (None, Asked::Watch(Some(base), _)) => place.number.min(*base),
        (None, _) => place.number,
    };
    let cursor = Cursor::at(place, base, *lsn);
    let (lsn, next) = (cursor.lsn(), cursor.sequence() + 1);
    let replaced = match &named {
        Some((name, named)) => watching::hold(session, name, named, (cursor, *delivery), cx),
        None => watching::begin(session, Watching::new(cursor, *delivery), cx),
    };
    match asked {
        Asked::Watch(_, shown) => {
            begun(session, id, lsn, None);
            hold_position(session, mark, *shown, cx);
        }
        Asked::NamedWatch(_, value) => {
            begun(session, id, lsn, value.as_deref());
            // Whichever record has moved the position, it is there by now.
            hold_position(session, mark, cx.shared.engine.log().appended(), cx);
        }
        Asked::Reconnect(_) | Asked::NamedReconnect(_) | Asked::Dice(..) => answer(session, "OK", next),
        Asked::Channel(_) => unreachable!("the thread of channels has that subscription"),
    }
    replaced.tell(session);
    watching::catch_up_soon(session, id);
}

/// The name and what it stands for, if it is named: it may have ended, or its position moved, while the client has
/// waited.
fn named<'r>(returning: &'r Returning, cx: &Context<'_>) -> Result<Option<(&'r [u8], Named)>, NotResumed> {
    let (Asked::NamedWatch(name, _) | Asked::NamedReconnect(name)) = &returning.asked else {
        return Ok(None);
    };
    let named = cx.shared.engine.named(name).filter(|named| named.query.id() == returning.query.id());
    let named = named.ok_or(NotResumed::NotFound)?;
    let position = named.position.max(returning.query.id());
    if named.guarantee == Guarantee::AtMostOnce && position != returning.lsn {
        return Err(NotResumed::Invalid(named.position));
    }
    Ok(Some((name, named)))
}
