//! Runs one sink: connects, finds its position, delivers changes, and reconnects after an error.

use crate::address::{Address, Start};
use crate::outlet::{Message, Outlet, PATIENCE, Trouble};
use crate::status::{State, Status};
use crate::supply::Supply;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tidemark_changes::{End, Feed, Follower, NotFollowed};
use tidemark_log::{Log, Lsn};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// Pause after the first failure; doubles after each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// One sink of any kind.
pub(crate) struct Relay {
    pub(crate) feed: Arc<Feed>,
    pub(crate) address: Address,
    /// Record after which a sink without messages starts, as the address defines it at the start of
    /// the server. Independent of later changes of the log.
    pub(crate) origin: Lsn,
    pub(crate) status: Arc<Status>,
}

/// Why a connection ends.
enum Obstacle {
    /// Worth a retry.
    Trouble(Trouble),
    /// Not worth a retry: a message for the operator.
    Final(String),
}

impl From<Trouble> for Obstacle {
    fn from(trouble: Trouble) -> Obstacle {
        Obstacle::Trouble(trouble)
    }
}

impl Relay {
    pub(crate) fn new(feed: &Arc<Feed>, log: &Log, address: Address) -> Relay {
        let origin = match address.start {
            Start::Floor => log.floor().previous(),
            Start::End => log.committed(),
            Start::Behind(lsn) => lsn,
        };
        let status = Arc::new(Status::new(address.to_string()));
        Relay { feed: Arc::clone(feed), address, origin, status }
    }

    /// Delivers changes while it is active.
    pub(crate) async fn run<O: Outlet>(self, target: &O::Target, mut active: watch::Receiver<bool>) {
        loop {
            if !*active.borrow() {
                self.status.stand_by();
            }
            // An error means that the sinks are dropped.
            if active.wait_for(|is_active| *is_active).await.is_err() {
                return;
            }
            self.status.wake();
            tokio::select! {
                () = self.deliver::<O>(target) => {}
                _ = active.wait_for(|is_active| !*is_active) => {}
            }
            // What only an operator can mend may be mended when this sink becomes active again.
            if active.wait_for(|is_active| !*is_active).await.is_err() {
                return;
            }
        }
    }

    /// Delivers changes until only an operator can help.
    async fn deliver<O: Outlet>(&self, target: &O::Target) {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.pass_on::<O>(target, &mut pause).await {
                Obstacle::Trouble(trouble) => {
                    if self.status.fail(State::Retrying, trouble.to_string()) {
                        say(&format!("warning: the sink {} has to wait: {trouble}", self.status.name()));
                    }
                }
                Obstacle::Final(reason) => {
                    say(&format!("error: the sink {} has stopped: {reason}", self.status.name()));
                    self.status.fail(State::Stopped, reason);
                    return;
                }
            }
            sleep(pause).await;
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }

    /// Connects and delivers changes until an error occurs.
    async fn pass_on<O: Outlet>(&self, target: &O::Target, pause: &mut Duration) -> Obstacle {
        match self.try_to_pass_on::<O>(target, pause).await {
            Err(obstacle) => obstacle,
            Ok(never) => match never {},
        }
    }

    async fn try_to_pass_on<O: Outlet>(
        &self,
        target: &O::Target,
        pause: &mut Duration,
    ) -> Result<std::convert::Infallible, Obstacle> {
        let mut outlet: O = in_time("connecting", O::open(target)).await?;
        let (mut supply, mut passed) = self.supply(outlet.last())?;
        if outlet.last().is_none() && self.address.start == Start::End {
            // After a restart the end would be another one, so store this one in the target.
            in_time("keeping the place", outlet.append(vec![Message::progress(passed)])).await?;
        }
        loop {
            let follower = Arc::clone(supply.follower());
            let messages = tokio::select! {
                batch = supply.batch(&self.status) => batch.map_err(ended)?,
                note = self.note_progress(&follower, passed) => vec![note],
                trouble = outlet.lost() => return Err(trouble.into()),
            };
            self.status.work();
            let count = messages.len();
            for message in &messages {
                assert!(message.lsn > passed, "record {} is passed on behind record {passed}", message.lsn);
                passed = message.lsn;
            }
            in_time("passing changes on", outlet.append(messages)).await?;
            self.status.pass(count, passed);
            *pause = FIRST_PAUSE;
        }
    }

    /// Returns the next changes, and the record before them.
    fn supply(&self, last: Option<Lsn>) -> Result<(Supply, Lsn), Obstacle> {
        let mut seen = last.unwrap_or(self.origin);
        let follow = |seen| Supply::follow(&self.feed, seen, &self.address.selection, self.address.format);
        let supply = loop {
            match follow(seen) {
                // The log's start advances each time, so this ends.
                Err(NotFollowed::Stale(floor)) if self.address.skips_gaps => {
                    say(&format!(
                        "warning: the sink {} misses the records from {} to {}, which the log has dropped",
                        self.status.name(),
                        seen.next(),
                        floor.previous()
                    ));
                    seen = floor.previous();
                }
                followed => break followed,
            }
        };
        let supply = supply.map_err(|not_followed| match not_followed {
            NotFollowed::Stale(floor) => Obstacle::Final(gap(seen, floor)),
            NotFollowed::Invalid(end) if last.is_none() => Obstacle::Final(format!(
                "it is to begin behind record {seen}, and the log ends at {end}: give it from=end, or an LSN that the log has"
            )),
            NotFollowed::Invalid(end) => Obstacle::Final(format!(
                "it has records up to {seen}, and the log ends at {end}: it is another server's; give each server a \
                 stream or topic of its own"
            )),
            NotFollowed::Unreadable(reason) => Obstacle::Final(reason),
        })?;
        if self.status.run(seen) {
            say(&format!("the sink {} continues after LSN {seen}", self.status.name()));
        }
        Ok((supply, seen))
    }

    /// Waits until a progress message is due, and everything up to an LSN beyond `passed` has been
    /// read.
    async fn note_progress(&self, follower: &Follower, passed: Lsn) -> Message {
        loop {
            match self.address.progress {
                Some(after) => sleep(after).await,
                None => std::future::pending().await,
            }
            match follower.caught_up_to() {
                Some(lsn) if lsn > passed => return Message::progress(lsn),
                _ => {}
            }
        }
    }
}

fn say(line: &str) {
    // Standard error may be closed.
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn ended(end: End) -> Obstacle {
    match end {
        // A new connection finds the same gap, and skips it if configured.
        End::Stale(floor) => {
            Obstacle::Trouble(Trouble(format!("it was too slow: the log begins at LSN {floor}")))
        }
        End::Unreadable(reason) | End::TooLong(reason) => Obstacle::Final(reason),
    }
}

/// Advises the operator when the log no longer has the next record.
fn gap(seen: Lsn, floor: Lsn) -> String {
    format!(
        "it continues after record {seen}, and the log begins at {floor}. Give it gap=skip to continue without the records in between, or \
         empty the stream or topic to start again; keep more of the log with log-retention-bytes or log-retention-age; if \
         what it selects is rare, give it progress=SECONDS"
    )
}

async fn in_time<T>(attempt: &str, work: impl Future<Output = Result<T, Trouble>>) -> Result<T, Trouble> {
    match timeout(PATIENCE * 2, work).await {
        Ok(result) => result,
        Err(_) => Err(Trouble::while_(attempt, "no answer in time")),
    }
}
