//! One client's subscriptions to reads: how far each has got, and what it is sent.

use crate::backlog::Tell;
use crate::context::Context;
use crate::cursor::{Cursor, Name, Older};
use crate::delivery::Delivery;
use crate::dice::Form;
use crate::holders::Tenure;
use crate::inbox::Message;
use crate::output::{Output, Until};
use crate::session::Session;
use crate::target::Target;
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;
use tidemark_engine::Reply;
use tidemark_engine::query::{Acknowledged, Acknowledgement, ById, Emission, Gone, Guarantee, Query};
use tidemark_log::Lsn;

/// While more than this waits to be sent, a client gets no further emissions: they are retained, and it gets them when it
/// has read what it has. Bytes.
const OUTBOX_BYTES: usize = 256 * 1024;
/// Why a named subscription goes on no more.
const TAKEN: &str = "another connection has taken the subscription over, or UNWATCH NAMED has ended it";
/// The same, if the client itself is why.
const REPLACED: &str = "the connection watches the read under another name now";
/// Emissions taken from a query at once.
const BATCH: usize = 64;

/// A subscription over a connection for commands. A client may have a million: most are no more than their cursors.
#[derive(Debug)]
pub(crate) struct Watching {
    pub(crate) cursor: Cursor,
    /// What most subscriptions have nothing of.
    more: Option<Box<More>>,
}

/// What a subscription needs beside, if its client has asked for it or has said something.
#[derive(Debug, Default)]
struct More {
    delivery: Delivery,
    /// Up to where the client has said that it has processed emissions.
    acknowledged: Lsn,
    /// Up to where the client has been told that there was nothing for it.
    told: Lsn,
    /// What it has missed is being sent, and the client wants to be told when that is done.
    is_returning: bool,
    /// Nothing is sent before: the pause after an emission, if the latest is all that the client wants.
    quiet_until: Option<Instant>,
    /// There may be emissions that the pause holds back.
    is_held_back: bool,
    /// When the client is told up to where there was nothing.
    progress_at: Option<Instant>,
    /// How DiceDB's protocol tells them, if the client speaks it.
    form: Option<Box<Form>>,
    named: Option<Naming>,
}

/// What a named subscription needs beside.
#[derive(Debug)]
struct Naming {
    name: Box<[u8]>,
    tenure: Tenure,
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
enum Claim {
    /// They may leave when the log has come so far.
    Given(Option<Until>),
    /// Those up to here were given away, or done with, by somebody else.
    Skip(Lsn),
    /// Nothing may be given away any more, and why.
    Ended(String),
}

impl Watching {
    pub(crate) fn new(cursor: Cursor, delivery: Delivery) -> Watching {
        let progress_at = delivery.progress.map(|after| Instant::now() + after);
        let more = || Box::new(More { delivery, progress_at, ..More::default() });
        Watching { cursor, more: (delivery != Delivery::default()).then(more) }
    }

    /// The same for a subscription that has a name.
    pub(crate) fn named(
        cursor: Cursor,
        delivery: Delivery,
        name: &[u8],
        guarantee: Guarantee,
        tenure: Tenure,
    ) -> Watching {
        let claimed = (guarantee == Guarantee::AtMostOnce).then(|| cursor.lsn());
        let mut watching = Watching::new(cursor, delivery);
        watching.more_mut().named = Some(Naming { name: name.into(), tenure, claimed });
        watching
    }

    /// The same for a client of DiceDB's protocol.
    pub(crate) fn formed(cursor: Cursor, form: Form) -> Watching {
        let mut watching = Watching::new(cursor, Delivery::default());
        watching.more_mut().form = Some(Box::new(form));
        watching
    }

    fn more_mut(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    fn naming(&self) -> Option<&Naming> {
        self.more.as_ref()?.named.as_ref()
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
    fn take(&mut self, batch: &mut Vec<Emission>, older: &Older<'_>) -> Result<bool, Gone> {
        if self.delivery().squash.is_some() {
            batch.extend(self.cursor.latest(older)?);
            // Behind what is made again from the log there may be something newer.
            return Ok(self.cursor.is_behind_retention() && !batch.is_empty());
        }
        self.cursor.next(BATCH, batch, older)?;
        Ok(batch.len() == BATCH || (self.cursor.is_behind_retention() && !batch.is_empty()))
    }

    /// If everything is given away at most once: up to where this connection has moved the position.
    fn claimed(&self) -> Option<Lsn> {
        self.naming()?.claimed
    }

    /// Moves the position from `claimed` behind a batch, before it is given away.
    fn claim(&mut self, claimed: Lsn, batch: &[Emission], cx: &Context<'_>) -> Claim {
        let last = batch.last().filter(|last| last.lsn > claimed);
        let naming = self.more.as_mut().and_then(|more| more.named.as_mut());
        let (Some(last), Some(naming)) = (last, naming) else { return Claim::Given(None) };
        let name = &*naming.name;
        match cx.shared.engine.claim(Acknowledgement { name, lsn: last.lsn }, claimed, cx.now_us) {
            Ok(Acknowledged::Moved(record)) => {
                naming.claimed = Some(last.lsn);
                Claim::Given(cx.shared.holds_back_position(record, false))
            }
            Ok(Acknowledged::Before(position))
                if cx.shared.holders.of(name).is_some_and(|(_, last)| last == naming.tenure) =>
            {
                naming.claimed = Some(position);
                Claim::Skip(position)
            }
            Ok(_) => Claim::Ended(TAKEN.to_owned()),
            Err(error) => Claim::Ended(error.to_string()),
        }
    }

    fn write(&mut self, emission: &Emission, output: &mut Output, cx: &Context<'_>) {
        self.cursor.pass(emission);
        let mark = output.reply.len();
        let reply = &mut output.reply;
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
            output.hold(mark, until);
        }
    }

    /// Tells the client up to where there was nothing for it, if that is so and it is time.
    fn write_progress(&mut self, now: Instant, output: &mut Output, cx: &Context<'_>) {
        let progress_at = self.more.as_ref().and_then(|more| more.progress_at);
        if progress_at.is_none_or(|at| at > now) {
            return;
        }
        let mut told = None;
        if output.pending() <= OUTBOX_BYTES {
            let (lsn, count) = cx.shared.engine.progress(self.cursor.query());
            if self.cursor.has_all(count) {
                self.write_place(b"progress", lsn, output, cx);
                told = Some(lsn);
            }
        }
        let more = self.more_mut();
        more.told = told.unwrap_or(more.told);
        more.progress_at = more.delivery.progress.map(|after| Instant::now() + after);
    }

    /// A frame that says how far the subscription is.
    fn write_place(&self, what: &[u8], lsn: Lsn, output: &mut Output, cx: &Context<'_>) {
        let mark = output.reply.len();
        output.reply.push(3);
        output.reply.bulk(what);
        self.write_name(&mut output.reply);
        output.reply.count(lsn.0 as usize);
        if let Some(until) = cx.shared.holds_back_position(lsn, false) {
            output.hold(mark, until);
        }
    }

    /// Tells the client that the subscription goes on no more on this connection.
    fn write_ended(&self, reason: &str, output: &mut Output) {
        write_ended(&self.name(), reason, output);
    }

    /// When time matters next.
    fn next_time(&self) -> Option<Instant> {
        let more = self.more.as_ref()?;
        let quiet = more.quiet_until.filter(|_| more.is_held_back);
        [quiet, more.progress_at].into_iter().flatten().min()
    }

    /// Whether a pause keeps what there is from being sent: then it waits for the pause's end. Otherwise there is none any more.
    fn is_quiet(&mut self) -> bool {
        let Some(more) = &mut self.more else { return false };
        more.is_held_back = more.quiet_until.is_some_and(|until| until > Instant::now());
        if !more.is_held_back {
            more.quiet_until = None;
        }
        more.is_held_back
    }

    /// Whether the client is to be told, once, that it has got what it had missed.
    fn has_returned(&mut self) -> bool {
        let is_behind = self.cursor.is_behind_retention();
        let more = self.more.as_mut().filter(|_| !is_behind);
        more.is_some_and(|more| std::mem::take(&mut more.is_returning))
    }

    /// Tells the client that it has been too slow, and how far it had got.
    fn write_stale(&self, gone: Gone, output: &mut Output, cx: &Context<'_>) {
        if let Some(form) = self.form() {
            return form.end(&mut output.reply);
        }
        if let Some(until) = cx.shared.holds_back_position(gone.floor, false) {
            output.hold(output.reply.len(), until);
        }
        let reply = &mut output.reply;
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

/// A client's subscriptions, at most one to each query.
#[derive(Debug, Default)]
pub(crate) struct Watchings {
    by_query: ById<(Lsn, Watching)>,
    /// Those that may have emissions to write, for which there was no room yet.
    behind: BTreeSet<Lsn>,
    /// Not later than when time matters to one of them.
    timer: Option<Instant>,
}

impl Watchings {
    pub(crate) fn is_empty(&self) -> bool {
        self.by_query.is_empty()
    }

    /// When time matters next, or a little before.
    pub(crate) fn next_time(&self) -> Option<Instant> {
        self.timer
    }

    pub(crate) fn len(&self) -> usize {
        self.by_query.len()
    }

    pub(crate) fn contains(&self, query: Lsn) -> bool {
        self.by_query.get(query).is_some()
    }

    pub(crate) fn get_mut(&mut self, query: Lsn) -> Option<&mut Watching> {
        self.by_query.get_mut(query).map(|(_, watching)| watching)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Watching> {
        self.by_query.iter().map(|(_, watching)| watching)
    }

    /// Whether there may be emissions to write, for which there is room.
    pub(crate) fn may_catch_up(&self, output: &Output) -> bool {
        !self.behind.is_empty() && output.pending() <= OUTBOX_BYTES
    }

    /// Looks after the time that matters to a subscription.
    fn mind(&mut self, at: Option<Instant>) {
        self.timer = [self.timer, at].into_iter().flatten().min();
    }
}

/// How a client's subscriptions come to what is not retained any more: the client is told by a message to its worker.
pub(crate) fn teller<'a>(session: &Session, cx: &Context<'a>) -> impl Fn(Lsn) -> Tell + Sync + use<'a> {
    let (shared, worker, target) = (cx.shared, session.client.worker, session.target());
    move |query| {
        let inbox = Arc::clone(&shared.inboxes[worker]);
        Box::new(move || inbox.send(Message::Older(target, query)))
    }
}

/// A named subscription that another one has taken the place of, of which the client has to be told behind the answer:
/// in RESP2 it would take what stands before that for the answer.
#[must_use]
pub(crate) struct Replaced(Option<Box<[u8]>>);

impl Replaced {
    /// Tells the client, if there was one.
    pub(crate) fn tell(self, session: &mut Session) {
        if let Some(name) = self.0 {
            write_ended(&name, REPLACED, &mut session.output);
        }
    }
}

/// Adds a subscription, or puts it in place of the client's other one to the same query.
pub(crate) fn begin(session: &mut Session, watching: Watching, cx: &Context<'_>) -> Replaced {
    let (id, target) = (watching.cursor.query().id(), session.target());
    let watchings = &mut session.subscriptions.watchings;
    watchings.mind(watching.next_time());
    let name = watching.naming().map(|naming| naming.name.clone());
    let mut ended = None;
    match watchings.by_query.insert((id, watching)) {
        None => cx.watchers.join(id, target.slot),
        Some((_, replaced)) => {
            release_name(&replaced, cx);
            let its_name = replaced.naming().map(|naming| naming.name.clone());
            ended = its_name.filter(|its_name| name.as_ref() != Some(its_name));
        }
    }
    session.show_state();
    Replaced(ended)
}

fn write_ended(name: &[u8], reason: &str, output: &mut Output) {
    output.reply.push(3);
    output.reply.bulk(b"ended");
    output.reply.bulk(name);
    output.reply.bulk(reason.as_bytes());
}

/// Takes back that the worker listens to a query, if none of its clients does.
pub(crate) fn leave_if_unused(session: &Session, query: &Query, cx: &Context<'_>) {
    if cx.watchers.of(query.id()).is_empty() {
        cx.shared.engine.leave(query, session.client.worker, cx.now_us);
    }
}

/// Lets a subscription catch up: as soon as the client's answer is written.
pub(crate) fn catch_up_soon(session: &mut Session, query: Lsn) {
    let watchings = &mut session.subscriptions.watchings;
    if let Some((_, watching)) = watchings.by_query.get_mut(query) {
        if let Some(more) = &mut watching.more {
            more.is_returning = more.delivery.mark;
        }
        watchings.behind.insert(query);
    }
}

/// Ends a subscription; whether there was one.
pub(crate) fn end(session: &mut Session, query: Lsn, cx: &Context<'_>) -> bool {
    let watchings = &mut session.subscriptions.watchings;
    let Some((_, watching)) = watchings.by_query.remove(query) else { return false };
    watchings.behind.remove(&query);
    leave(&watching, session.target(), session.client.worker, cx);
    session.show_state();
    true
}

/// Ends all subscriptions without telling the client.
pub(crate) fn end_all(session: &mut Session, cx: &Context<'_>) {
    let watchings = std::mem::take(&mut session.subscriptions.watchings);
    for watching in watchings.iter() {
        leave(watching, session.target(), session.client.worker, cx);
    }
}

/// How many emissions fit into so many bytes of output; one at least.
fn fitting(batch: &[Emission], room: usize) -> usize {
    let mut taken = 0_usize;
    let behind = batch.iter().position(|emission| {
        taken += emission.answer.len();
        taken > room
    });
    behind.unwrap_or(batch.len()).max(1)
}

/// Ends a named subscription that another connection has taken over, or whose name has ended; unless the client has begun
/// it anew since.
pub(crate) fn lose_name(session: &mut Session, query: Lsn, tenure: Tenure, cx: &Context<'_>) {
    let Session { subscriptions, output, .. } = &mut *session;
    let Some((_, watching)) = subscriptions.watchings.by_query.get(query) else { return };
    if watching.naming().is_none_or(|naming| naming.tenure != tenure) {
        return;
    }
    watching.write_ended(TAKEN, output);
    end(session, query, cx);
}

/// Lets go of the name that a subscription has, if it has one.
fn release_name(watching: &Watching, cx: &Context<'_>) {
    if let Some(naming) = watching.naming() {
        cx.shared.holders.release(&naming.name, naming.tenure);
    }
}

fn leave(watching: &Watching, target: Target, worker: usize, cx: &Context<'_>) {
    release_name(watching, cx);
    if cx.watchers.leave(watching.cursor.query().id(), target.slot) {
        cx.shared.engine.leave(watching.cursor.query(), worker, cx.now_us);
    }
}

/// Writes what a query has emitted, as far as the client has room.
pub(crate) fn emit(session: &mut Session, query: Lsn, cx: &Context<'_>) {
    let tell = teller(session, cx);
    let older = Older { backlogs: &cx.shared.backlogs, tell: &tell };
    let Session { subscriptions, output, .. } = session;
    let Watchings { by_query, behind, timer } = &mut subscriptions.watchings;
    let Some((_, watching)) = by_query.get_mut(query) else { return };
    let mut batch = Vec::new();
    loop {
        if watching.claimed().is_some()
            && let Some(rest) = cx.shared.pause.rest(cx.now_us)
        {
            // To give something away would be to write to the log.
            watching.more_mut().quiet_until = Instant::now().checked_add(rest);
        }
        if watching.is_quiet() {
            // Whatever it is, the latest is sent when the pause is over.
            *timer = [*timer, watching.next_time()].into_iter().flatten().min();
            return;
        }
        let has_more = match watching.take(&mut batch, &older) {
            Ok(has_more) => has_more,
            Err(gone) => {
                watching.write_stale(gone, output, cx);
                end(session, query, cx);
                return;
            }
        };
        let mut has_more = has_more;
        let claimed = watching.claimed();
        if let Some(claimed) = claimed {
            if output.pending() > OUTBOX_BYTES {
                behind.insert(query);
                return;
            }
            // Nothing is claimed that there is no room for: nobody would be given it.
            let fitting = fitting(&batch, OUTBOX_BYTES - output.pending());
            has_more |= fitting < batch.len();
            batch.truncate(fitting);
            match watching.claim(claimed, &batch, cx) {
                Claim::Given(None) => {}
                Claim::Given(Some(until)) => output.hold(output.reply.len(), until),
                Claim::Skip(position) => {
                    for emission in batch.drain(..).filter(|emission| emission.lsn <= position) {
                        watching.cursor.pass(&emission);
                    }
                    continue;
                }
                Claim::Ended(reason) => {
                    watching.write_ended(&reason, output);
                    end(session, query, cx);
                    return;
                }
            }
        }
        for emission in &batch {
            if output.pending() > OUTBOX_BYTES && claimed.is_none() {
                behind.insert(query);
                return;
            }
            watching.write(emission, output, cx);
        }
        if !has_more {
            behind.remove(&query);
            if watching.has_returned() {
                watching.write_place(b"caught-up", watching.cursor.lsn(), output, cx);
            }
            return;
        }
        batch.clear();
    }
}

/// Gives away what had to wait for the end of `CLIENT PAUSE`.
pub(crate) fn pause_ended(session: &mut Session, cx: &Context<'_>) {
    let watchings = &mut session.subscriptions.watchings;
    let waits = |watching: &&Watching| {
        watching.claimed().is_some() && watching.more.as_ref().is_some_and(|more| more.is_held_back)
    };
    let waited: Vec<Lsn> =
        watchings.iter().filter(waits).map(|watching| watching.cursor.query().id()).collect();
    for query in &waited {
        if let Some(more) = watchings.get_mut(*query).and_then(|watching| watching.more.as_mut()) {
            more.quiet_until = None;
        }
    }
    waited.into_iter().for_each(|query| emit(session, query, cx));
}

/// Does what is due by now: sends what a pause has held back, and says up to where there was nothing.
pub(crate) fn time_has_come(session: &mut Session, now: Instant, cx: &Context<'_>) {
    if session.subscriptions.watchings.timer.is_none_or(|at| at > now) {
        return;
    }
    let due: Vec<Lsn> = {
        let is_due = |watching: &&Watching| watching.next_time().is_some_and(|at| at <= now);
        session
            .subscriptions
            .watchings
            .iter()
            .filter(is_due)
            .map(|watching| watching.cursor.query().id())
            .collect()
    };
    for query in due {
        emit(session, query, cx);
        let Session { subscriptions, output, .. } = &mut *session;
        if let Some(watching) = subscriptions.watchings.get_mut(query) {
            watching.write_progress(now, output, cx);
        }
    }
    let watchings = &mut session.subscriptions.watchings;
    watchings.timer = watchings.iter().filter_map(Watching::next_time).min();
}

/// Writes what the client's subscriptions have had to wait with.
pub(crate) fn catch_up(session: &mut Session, cx: &Context<'_>) {
    let behind = std::mem::take(&mut session.subscriptions.watchings.behind);
    behind.into_iter().for_each(|query| emit(session, query, cx));
}
