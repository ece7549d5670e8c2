//! Subscriptions that go on behind an LSN: at once, or as soon as the log has shown where, for which their client waits.

use crate::backlogs::Wanted;
use crate::context::Context;
use crate::cursor::{self, Cursor, Older, Place, Resuming, Search, Searched};
use crate::delivery::Delivery;
use crate::dice;
use crate::named_command::hold;
use crate::not_resumed::NotResumed;
use crate::session::Session;
use crate::wait::{self, WaitFor};
use crate::watch_command::{answer, begun, hold_position, refusal, refuse};
use crate::watching::{self, Watching};
use tidemark_engine::query::{Guarantee, Named, SharedQuery};
use tidemark_engine::{CommandError, SharedBytes};
use tidemark_log::Lsn;

/// A subscription that is to go on.
pub(crate) struct Returning {
    pub(crate) query: SharedQuery,
    /// What its subscriber has seen.
    pub(crate) lsn: Lsn,
    pub(crate) delivery: Delivery,
    pub(crate) asked: Asked,
}

/// Who asks for it, and is answered.
pub(crate) enum Asked {
    /// `X.WATCH … | RESUME lsn`. The number that the subscription's own begin behind, if the client has it already; and up to where
    /// the log was when the client asked.
    Watch(Option<u64>, Lsn),
    /// `EMITRECONNECT` with a name that says where the subscription's numbers begin.
    Reconnect(u64),
    /// `X.WATCH … | AS name`, and the first answer, if it is to be given again.
    NamedWatch(Box<[u8]>, Option<SharedBytes>),
    /// `EMITRECONNECT` with such a name.
    NamedReconnect(Box<[u8]>),
    /// `EMITRECONNECT` of DiceDB's protocol: the number that the subscription's own begin behind, and the query's number of the
    /// last emission that the client has.
    Dice(u64, u64),
}

/// A client's wait for the place where its subscription goes on.
pub(crate) struct Sought {
    returning: Returning,
    search: Search,
}

/// The client does not wait for its place any more. Who subscribes listens from the first, so that has to end.
pub(crate) fn give_up(session: &Session, sought: &Sought, cx: &Context<'_>) {
    watching::leave_if_unused(session, &sought.returning.query, cx);
}

/// Lets a subscription go on; its client waits if the place has to be looked for.
pub(crate) fn go_on(
    session: &mut Session,
    mut returning: Returning,
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    if !matches!(returning.asked, Asked::Watch(..)) {
        // Before it began there was nothing.
        returning.lsn = returning.lsn.max(returning.query.id());
    }
    let worker = session.client.worker;
    let tell = watching::teller(session, cx);
    let older = Older { backlogs: &cx.shared.backlogs, tell: &tell };
    match cursor::resume(&cx.shared.engine, returning.query.id(), returning.wanted(), worker, &older) {
        Ok(Resuming::Found(place)) => end(session, &returning, Ok(place), cx),
        Ok(Resuming::Sought(search)) => {
            wait::begin(session, WaitFor::Place(Box::new(Sought { returning, search })), None);
            Ok(())
        }
        Err(why) => end(session, &returning, Err(why), cx),
    }
}

/// Whether the client waits for the place where its subscription to this query goes on.
pub(crate) fn waits(session: &Session, query: Lsn) -> bool {
    match session.wait.as_ref().map(|wait| &wait.what) {
        Some(WaitFor::Place(sought)) => sought.returning.query.id() == query,
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
    let found = match search.look(&cx.shared.engine, session.client.worker) {
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
    let found = found.and_then(|place| match returning.named(cx) {
        Ok(named) => Ok((place, named)),
        Err(why) => {
            watching::leave_if_unused(session, &returning.query, cx);
            Err(why)
        }
    });
    match (found, &returning.asked) {
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
        Some((name, named)) => hold(session, name, named, (cursor, *delivery), cx),
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
    }
    replaced.tell(session);
    watching::catch_up_soon(session, id);
}

impl Returning {
    fn wanted(&self) -> Wanted {
        match self.asked {
            Asked::Dice(_, number) => Wanted::After(number, self.lsn),
            _ => Wanted::Behind(self.lsn),
        }
    }

    /// The name and what it stands for, if it is named: it may have ended, or its position moved, while the client has
    /// waited.
    fn named(&self, cx: &Context<'_>) -> Result<Option<(&[u8], Named)>, NotResumed> {
        let (Asked::NamedWatch(name, _) | Asked::NamedReconnect(name)) = &self.asked else { return Ok(None) };
        let named = cx.shared.engine.named(name).filter(|named| named.query.id() == self.query.id());
        let named = named.ok_or(NotResumed::NotFound)?;
        let position = named.position.max(self.query.id());
        if named.guarantee == Guarantee::AtMostOnce && position != self.lsn {
            return Err(NotResumed::Invalid(named.position));
        }
        Ok(Some((name, named)))
    }
}
