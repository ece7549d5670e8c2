//! One subscription to a read: how far it has got, and what its client is sent.

use crate::context::Context;
use crate::dice::Form;
use crate::net::outbox::{Outbox, Until};
use crate::subscription::cursor::{Cursor, Name, Older};
use crate::subscription::delivery::Delivery;
use crate::subscription::ownership::{FencingToken, NameOwners};
use std::ops::Deref;
use std::time::Instant;
use tidemark_engine::Reply;
use tidemark_engine::watch::{Acknowledged, Acknowledgement, Emission, Gone, Guarantee};
use tidemark_log::Lsn;

/// Why a named subscription goes on no more.
pub(crate) const TAKEN: &str =
    "another connection has taken the subscription over, or UNWATCH NAMED has ended it";
/// The same, if the client itself is why.
pub(crate) const REPLACED: &str = "the connection watches the read under another name now";
/// Emissions taken from a query at once.
const BATCH: usize = 64;

/// A subscription over a connection for commands. A client may have a million: most are no more than their cursors.
#[derive(Debug)]
pub(crate) struct ReadSubscription {
    pub(crate) cursor: Cursor,
    /// What most subscriptions have nothing of.
    pub(super) more: Option<Box<More>>,
}

/// What a subscription needs beside, if its client has asked for it or has said something.
#[derive(Debug, Default)]
pub(super) struct More {
    pub(super) delivery: Delivery,
    /// Up to where the client has said that it has processed emissions.
    acknowledged: Lsn,
    /// Up to where the client has been told that there was nothing for it.
    told: Lsn,
    /// What it has missed is being sent, and the client wants to be told when that is done.
    pub(super) is_returning: bool,
    /// Nothing is sent before: the pause after an emission, if the latest is all that the client wants.
    pub(super) quiet_until: Option<Instant>,
    /// There may be emissions that the pause holds back.
    pub(super) is_held_back: bool,
    /// When the client is told up to where there was nothing.
    progress_at: Option<Instant>,
    /// Under which time the client's table of times has the subscription.
    pub(super) scheduled: Option<Instant>,
    /// How DiceDB's protocol tells them, if the client speaks it.
    form: Option<Box<Form>>,
    named: Option<Naming>,
}

/// What a named subscription needs beside.
#[derive(Debug)]
struct Naming {
    name: Box<[u8]>,
    fencing_token: FencingToken,
    /// If everything is given away at most once: the position, as far as this connection has moved it before it was
    /// given anything.
    claimed: Option<Lsn>,
}

/// How a client names a subscription.
pub(crate) enum Called<'w> {
    /// As it wanted to.
    Given(&'w [u8]),
    /// As the server has told it.
    Made(Name),
}

impl Deref for Called<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Called::Given(name) => name,
            Called::Made(name) => name.as_bytes(),
        }
    }
}

/// What has become of the wish to give emissions away at most once.
pub(super) enum Claim {
    /// They may leave when the log has come so far.
    Given(Option<Until>),
    /// Those up to here were given away, or done with, by somebody else.
    Skip(Lsn),
    /// Nothing may be given away any more, and why.
    Ended(String),
}

impl ReadSubscription {
    pub(crate) fn new(cursor: Cursor, delivery: Delivery) -> ReadSubscription {
        let progress_at = delivery.progress.map(|after| Instant::now() + after);
        let more = || Box::new(More { delivery, progress_at, ..More::default() });
        ReadSubscription { cursor, more: (delivery != Delivery::default()).then(more) }
    }

    /// The same for a subscription that has a name.
    pub(crate) fn named(
        cursor: Cursor,
        delivery: Delivery,
        name: &[u8],
        guarantee: Guarantee,
        fencing_token: FencingToken,
    ) -> ReadSubscription {
        let claimed = (guarantee == Guarantee::AtMostOnce).then(|| cursor.lsn());
        let mut subscription = ReadSubscription::new(cursor, delivery);
        subscription.more_mut().named = Some(Naming { name: name.into(), fencing_token, claimed });
        subscription
    }

    /// The same for a client of DiceDB's protocol.
    pub(crate) fn formed(cursor: Cursor, form: Form) -> ReadSubscription {
        let mut subscription = ReadSubscription::new(cursor, Delivery::default());
        subscription.more_mut().form = Some(Box::new(form));
        subscription
    }

    pub(super) fn more_mut(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    fn naming(&self) -> Option<&Naming> {
        self.more.as_ref()?.named.as_ref()
    }

    /// The name that its client has given it, and since when this connection has it.
    pub(crate) fn given_name(&self) -> Option<(&[u8], FencingToken)> {
        self.naming().map(|naming| (&*naming.name, naming.fencing_token))
    }

    /// Lets go of its name, if it has one.
    pub(crate) fn release_name(&self, name_owners: &NameOwners) {
        if let Some((name, fencing_token)) = self.given_name() {
            name_owners.release(name, fencing_token);
        }
    }

    fn delivery(&self) -> Delivery {
        self.more.as_ref().map_or(Delivery::default(), |more| more.delivery)
    }

    /// How the client names it.
    pub(crate) fn name(&self) -> Called<'_> {
        match self.naming() {
            Some(naming) => Called::Given(&naming.name),
            None => Called::Made(self.cursor.name()),
        }
    }

    /// Writes how the client names it.
    fn write_name(&self, reply: &mut Reply) {
        match self.naming() {
            Some(naming) => reply.bulk(&naming.name),
            None => self.cursor.write_name(reply),
        }
    }

    /// How DiceDB's protocol tells its emissions, if the client speaks it.
    pub(crate) fn form(&self) -> Option<&Form> {
        self.more.as_ref()?.form.as_deref()
    }

    /// Up to where the client has said that it has processed emissions.
    pub(crate) fn acknowledged(&self) -> Lsn {
        self.more.as_ref().map_or(Lsn::ZERO, |more| more.acknowledged)
    }

    /// Up to where the client knows all there is, so that it may acknowledge that.
    pub(crate) fn given(&self) -> Lsn {
        self.more.as_ref().map_or(Lsn::ZERO, |more| more.told).max(self.cursor.lsn())
    }

    pub(crate) fn acknowledge(&mut self, lsn: Lsn) {
        let more = self.more_mut();
        more.acknowledged = more.acknowledged.max(lsn);
    }

    /// Takes the emissions that are to be written next; whether there may be more.
    pub(super) fn take(&mut self, batch: &mut Vec<Emission>, older: &Older<'_>) -> Result<bool, Gone> {
        if self.delivery().squash.is_some() {
            batch.extend(self.cursor.latest(older)?);
            // Behind what is made again from the log there may be something newer.
            return Ok(self.cursor.is_behind() && !batch.is_empty());
        }
        self.cursor.next(BATCH, batch, older)?;
        Ok(batch.len() == BATCH || (self.cursor.is_behind() && !batch.is_empty()))
    }

    /// If everything is given away at most once: up to where this connection has moved the position.
    pub(super) fn claimed(&self) -> Option<Lsn> {
        self.naming()?.claimed
    }

    /// Moves the position from `claimed` behind a batch, before it is given away.
    pub(super) fn claim(&mut self, claimed: Lsn, batch: &[Emission], cx: &Context<'_>) -> Claim {
        let Some(last) = batch.last().filter(|last| last.lsn > claimed) else { return Claim::Given(None) };
        let naming = self.more.as_mut().and_then(|more| more.named.as_mut());
        let naming = naming.expect("only a named subscription claims what it gives away");
        let name = &*naming.name;
        match cx.shared.engine.claim(Acknowledgement { name, lsn: last.lsn }, claimed, cx.now_us) {
            Ok(Acknowledged::Moved(record)) => {
                naming.claimed = Some(last.lsn);
                Claim::Given(cx.shared.holds_back_position(record, false))
            }
            Ok(Acknowledged::Before(position))
                if cx
                    .shared
                    .name_owners
                    .of(name)
                    .is_some_and(|last| last.fencing_token == naming.fencing_token) =>
            {
                naming.claimed = Some(position);
                Claim::Skip(position)
            }
            Ok(_) => Claim::Ended(TAKEN.to_owned()),
            Err(error) => Claim::Ended(error.to_string()),
        }
    }

    /// Notes that the client is given an emission, or that another connection has been.
    pub(super) fn pass(&mut self, emission: &Emission) {
        if self.delivery().squash.is_some() {
            self.cursor.pass_latest(emission);
        } else {
            self.cursor.pass(emission);
        }
    }

    pub(super) fn write(&mut self, emission: &Emission, outbox: &mut Outbox, cx: &Context<'_>) {
        self.pass(emission);
        let mark = outbox.reply.len();
        let reply = &mut outbox.reply;
        if let Some(form) = self.form() {
            form.emit(&emission.answer, reply);
        } else {
            let old = self.delivery().old;
            reply.push(if old { 6 } else { 5 });
            reply.bulk(b"emission");
            self.write_name(reply);
            reply.count(emission.lsn.0 as usize);
            reply.count(self.cursor.sequence() as usize);
            reply.encoded(&emission.answer);
            if old {
                reply.encoded(&emission.before);
            }
        }
        if let Some(more) = &mut self.more {
            more.set_timers();
        }
        cx.counters.emissions.add(1);
        if let Some(until) = cx.shared.holds_back(emission) {
            outbox.hold(mark, until);
        }
    }

    /// Tells the client up to where there was nothing for it, if that is so and it is time.
    pub(super) fn write_progress(&mut self, now: Instant, outbox: &mut Outbox, cx: &Context<'_>) {
        let progress_at = self.more.as_ref().and_then(|more| more.progress_at);
        if progress_at.is_none_or(|at| at > now) {
            return;
        }
        let mut told = None;
        if outbox.has_room() {
            let progress = cx.shared.engine.progress(self.cursor.query());
            if let Some((lsn, count)) = progress
                && self.cursor.has_all(count)
            {
                self.write_place(b"progress", lsn, outbox, cx);
                told = Some(lsn);
            }
        }
        let more = self.more_mut();
        more.told = told.unwrap_or(more.told);
        more.progress_at = more.delivery.progress.map(|after| Instant::now() + after);
    }

    /// A frame that says how far the subscription is.
    pub(super) fn write_place(&self, what: &[u8], lsn: Lsn, outbox: &mut Outbox, cx: &Context<'_>) {
        let mark = outbox.reply.len();
        outbox.reply.push(3);
        outbox.reply.bulk(what);
        self.write_name(&mut outbox.reply);
        outbox.reply.count(lsn.0 as usize);
        if let Some(until) = cx.shared.holds_back_position(lsn, false) {
            outbox.hold(mark, until);
        }
    }

    /// Tells the client that the subscription goes on no more on this connection.
    pub(crate) fn write_ended(&self, reason: &str, outbox: &mut Outbox) {
        write_ended(&self.name(), reason, outbox);
    }

    /// When time matters next.
    pub(super) fn next_time(&self) -> Option<Instant> {
        let more = self.more.as_ref()?;
        let quiet = more.quiet_until.filter(|_| more.is_held_back);
        [quiet, more.progress_at].into_iter().flatten().min()
    }

    /// Whether a pause keeps what there is from being sent: then it waits for the pause's end. Otherwise there is none any more.
    pub(super) fn is_quiet(&mut self) -> bool {
        let Some(more) = &mut self.more else { return false };
        more.is_held_back = more.quiet_until.is_some_and(|until| until > Instant::now());
        if !more.is_held_back {
            more.quiet_until = None;
        }
        more.is_held_back
    }

    /// Whether the client is to be told, once, that it has got what it had missed.
    pub(super) fn has_returned(&mut self) -> bool {
        let is_behind = self.cursor.is_behind();
        let more = self.more.as_mut().filter(|_| !is_behind);
        more.is_some_and(|more| std::mem::take(&mut more.is_returning))
    }

    /// Tells the client that it has been too slow, and how far it had got.
    pub(super) fn write_stale(&self, gone: Gone, outbox: &mut Outbox, cx: &Context<'_>) {
        if let Some(form) = self.form() {
            return form.end(&mut outbox.reply);
        }
        if let Some(until) = cx.shared.holds_back_position(gone.floor, false) {
            outbox.hold(outbox.reply.len(), until);
        }
        let reply = &mut outbox.reply;
        reply.push(4);
        reply.bulk(b"stale");
        self.write_name(reply);
        reply.count(self.cursor.lsn().0 as usize);
        reply.count(gone.floor.0 as usize);
    }
}

impl More {
    /// Begins the pauses that follow an emission.
    fn set_timers(&mut self) {
        let Delivery { squash, progress, .. } = self.delivery;
        let after = |pause| Instant::now() + pause;
        self.quiet_until = squash.filter(|pause| !pause.is_zero()).map(after);
        self.progress_at = progress.map(after);
    }
}

/// Tells a client that a subscription goes on no more.
pub(crate) fn write_ended(name: &[u8], reason: &str, outbox: &mut Outbox) {
    outbox.reply.push(3);
    outbox.reply.bulk(b"ended");
    outbox.reply.bulk(name);
    outbox.reply.bulk(reason.as_bytes());
}
