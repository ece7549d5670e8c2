//! One failover: clients write, the leader fails, another leads, everything that was acknowledged is
//! read, and the failed member comes back.

use super::audit::{self, Audit, disagreements};
use super::election::{Observer, Takeover};
use super::moments::{LongestGaps, Moments};
use super::options::{FailoverOptions, Fault};
use super::writer::{Keys, Outcome, Pace, Writer, Written};
use crate::cluster::{Cluster, MEMBERS, Network};
use crate::interrupt::Interrupt;
use crate::random::Random;
use anyhow::Context;
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// What a round measures, in milliseconds, and what it counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Round {
    pub(super) number: u32,
    pub(super) old_leader: usize,
    pub(super) election: Option<Takeover>,
    pub(super) gaps: LongestGaps,
    /// From the end of the fault until the member had everything.
    pub(super) return_ms: Option<f64>,
    /// By how much the number of the term grew.
    pub(super) terms: u64,
    /// Time of writing.
    pub(super) seconds: f64,
    pub(super) writes_during_failover: u64,
    pub(super) writes_succeeded: u64,
    pub(super) acknowledged: u64,
    pub(super) unknown: u64,
    pub(super) refusals: u64,
    /// Acknowledged writes that a member did not have, over all members.
    pub(super) missing: u64,
    pub(super) missing_keys: Vec<String>,
    pub(super) phantoms: u64,
    pub(super) disagreements: u64,
    /// Clients without an acknowledged write after the fault.
    pub(super) stuck_clients: u64,
    pub(super) wrong_answers: Vec<String>,
}

/// What a round is made with.
pub(super) struct Scene<'a> {
    pub(super) options: &'a FailoverOptions,
    pub(super) cluster: &'a mut Cluster,
    pub(super) interrupt: &'a Interrupt,
    /// Distinguishes the keys of this run from those of other runs.
    pub(super) run: u64,
    /// Pause after a failover, in which a second election would be seen.
    pub(super) settle: Duration,
    /// The newest known term.
    pub(super) term: u64,
}

/// Between two looks at the clients.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);
/// The moment of a fault is random within so many milliseconds: heartbeats are regular.
const JITTER_MS: u64 = 200;
/// Key by which a member is known to have caught up.
const MARKER: &str = "failover-bench:marker";

impl Scene<'_> {
    /// Makes one failover.
    pub(super) fn fail_over(
        &mut self,
        number: u32,
        fault: Fault,
        random: &mut Random,
    ) -> anyhow::Result<Round> {
        let jitter = Duration::from_millis(random.below(JITTER_MS));
        self.settle_all(number)?;
        let keys = Keys { run: self.run, round: number };
        let targets = self.cluster.targets().to_vec();
        let moments = Moments::begin();
        let (written, failure) = std::thread::scope(|scope| {
            let writers = self.writers(&targets, keys, &moments);
            let writers: Vec<_> = writers.map(|writer| scope.spawn(|| writer.run())).collect();
            let failure = self.warm_up(&moments, jitter).and_then(|()| {
                // As late as possible: the lead may have moved meanwhile.
                let old_leader = self.cluster.write(MARKER, "leader")?;
                let observer = Observer::new(&targets, old_leader);
                let fault_at = Instant::now();
                moments.fault();
                self.begin_fault(fault, old_leader)?;
                let is_asked_for = || self.interrupt.is_asked_for();
                let (poll, patience) = (self.options.leader_poll, self.options.max_leader_wait);
                let election = observer.observe(fault_at, poll, patience, is_asked_for);
                moments.end_failing();
                self.await_recovery(&moments);
                Ok((old_leader, election))
            });
            moments.end();
            (join(writers.into_iter().map(std::thread::ScopedJoinHandle::join)), failure)
        });
        let (written, (old_leader, election)) = (written?, failure?);
        anyhow::ensure!(!self.interrupt.is_asked_for(), "interrupted");
        let mut round = Round::of(number, &moments, &written);
        round.old_leader = old_leader;
        round.election = election;
        round.stuck_clients = u64::from(self.options.clients) - moments.recovered();
        if election.is_none() {
            let (patience, name) = (self.options.max_leader_wait, fault.name());
            anyhow::bail!("no leader within {patience:?} (--max-leader-wait) of the fault `{name}`");
        }

        let survivors: Vec<usize> = (0..MEMBERS).filter(|member| *member != old_leader).collect();
        let mut audits = self.audit_all(&survivors, keys, &written)?;
        let ended_at = Instant::now();
        self.end_fault(fault, old_leader)?;
        self.await_all(&[old_leader], &format!("{number} returned"))?;
        round.return_ms = Some(ended_at.elapsed().as_secs_f64() * 1e3);
        audits.extend(self.audit_all(&[old_leader], keys, &written)?);
        round.judge(&audits);
        round.terms = self.clean_up(keys, &written)?;
        Ok(round)
    }

    /// Writes for some time without any fault.
    pub(super) fn stay_quiet(&mut self, number: u32, time: Duration) -> anyhow::Result<Round> {
        self.settle_all(number)?;
        let keys = Keys { run: self.run, round: number };
        let targets = self.cluster.targets().to_vec();
        let moments = Moments::begin();
        let written = std::thread::scope(|scope| {
            let writers = self.writers(&targets, keys, &moments);
            let writers: Vec<_> = writers.map(|writer| scope.spawn(|| writer.run())).collect();
            while moments.elapsed() < time && !self.interrupt.is_asked_for() {
                std::thread::sleep(LOOK_INTERVAL);
            }
            moments.end();
            join(writers.into_iter().map(std::thread::ScopedJoinHandle::join))
        })?;
        let mut round = Round::of(number, &moments, &written);
        let audits = self.audit_all(&[0, 1, 2], keys, &written)?;
        round.judge(&audits);
        round.terms = self.clean_up(keys, &written)?;
        Ok(round)
    }

    fn writers<'b>(
        &self,
        targets: &'b [crate::target::Target],
        keys: Keys,
        moments: &'b Moments,
    ) -> impl Iterator<Item = Writer<'b>> + use<'b> {
        let pace =
            Pace { interval: self.options.write_interval, answer_timeout: self.options.answer_timeout };
        (0..self.options.clients as usize)
            .map(move |client| Writer::new(client, targets, keys, pace, moments))
    }

    /// Waits until the clients have written for as long, and as much, as the options say.
    fn warm_up(&self, moments: &Moments, jitter: Duration) -> anyhow::Result<()> {
        let time = self.options.stabilize_wait + jitter;
        let deadline = time + self.options.max_leader_wait;
        while moments.elapsed() < time || moments.acknowledged() < self.options.warmup_writes {
            anyhow::ensure!(!self.interrupt.is_asked_for(), "interrupted");
            anyhow::ensure!(
                moments.elapsed() < deadline,
                "only {} of --warmup-writes {} were acknowledged within {deadline:?}",
                moments.acknowledged(),
                self.options.warmup_writes
            );
            std::thread::sleep(LOOK_INTERVAL);
        }
        Ok(())
    }

    /// Waits until every client has an acknowledged write after the fault, and then for as long as a
    /// second election would take.
    fn await_recovery(&self, moments: &Moments) {
        let deadline = Instant::now() + self.options.max_leader_wait;
        let all = u64::from(self.options.clients);
        while moments.recovered() < all && Instant::now() < deadline && !self.interrupt.is_asked_for() {
            std::thread::sleep(LOOK_INTERVAL);
        }
        std::thread::sleep(self.settle);
    }

    fn begin_fault(&mut self, fault: Fault, member: usize) -> anyhow::Result<()> {
        match fault {
            Fault::Kill => self.cluster.kill(member),
            Fault::Stop => self.cluster.signal(member, Signal::STOP),
            Fault::Cut => Network::cut(member),
        }
    }

    fn end_fault(&mut self, fault: Fault, member: usize) -> anyhow::Result<()> {
        match fault {
            Fault::Kill => self.cluster.restart(member),
            Fault::Stop => self.cluster.signal(member, Signal::CONT),
            Fault::Cut => Network::mend(member),
        }
    }

    /// Waits until all members have caught up, so that no round begins with what another left.
    fn settle_all(&mut self, number: u32) -> anyhow::Result<()> {
        self.await_all(&[0, 1, 2], &format!("{number} begins"))
    }

    /// Waits until these members have what was acknowledged until now.
    fn await_all(&mut self, members: &[usize], marker: &str) -> anyhow::Result<()> {
        self.cluster.write(MARKER, marker)?;
        members.iter().try_for_each(|member| self.cluster.await_value(*member, MARKER, marker))
    }

    /// Reads the writes of a round from each of these members once it has caught up.
    fn audit_all(
        &mut self,
        members: &[usize],
        keys: Keys,
        written: &[Written],
    ) -> anyhow::Result<Vec<Audit>> {
        self.await_all(members, &format!("{} written", keys.round))?;
        let audit = |member: &usize| {
            // A change of the leader closes connections.
            let audit = || audit::audit(&mut self.cluster.reader(*member).ok()?, keys, written).ok();
            self.cluster.until("a member could not be read", audit)
        };
        members.iter().map(audit).collect()
    }

    /// Removes the keys of a round. Returns by how much the number of the term has grown since the last
    /// time.
    fn clean_up(&mut self, keys: Keys, written: &[Written]) -> anyhow::Result<u64> {
        let remove = || {
            let leader = self.cluster.write(MARKER, "removes").ok()?;
            audit::remove(&mut self.cluster.reader(leader).ok()?, keys, written).ok()?;
            Some(leader)
        };
        let leader = self.cluster.until("the keys of a round could not be removed", remove)?;
        let term = self.cluster.term(leader)?;
        let grown = term.saturating_sub(self.term);
        self.term = term;
        Ok(grown)
    }
}

impl Round {
    fn of(number: u32, moments: &Moments, written: &[Written]) -> Round {
        let count = |outcome: Outcome| {
            let outcomes = written.iter().flat_map(|written| &written.outcomes);
            outcomes.filter(|one| **one == outcome).count() as u64
        };
        let (writes_during_failover, writes_succeeded) = moments.while_failing();
        let mut wrong_answers: Vec<String> =
            written.iter().flat_map(|written| written.wrong_answers.clone()).collect();
        wrong_answers.sort();
        wrong_answers.dedup();
        Round {
            number,
            gaps: moments.longest(),
            seconds: moments.elapsed().as_secs_f64(),
            writes_during_failover,
            writes_succeeded,
            acknowledged: count(Outcome::Acknowledged),
            unknown: count(Outcome::Unknown),
            refusals: written.iter().map(|written| written.refusals).sum(),
            wrong_answers,
            ..Round::default()
        }
    }

    fn judge(&mut self, audits: &[Audit]) {
        self.missing = audits.iter().map(|audit| audit.missing).sum();
        self.phantoms = audits.iter().map(|audit| audit.phantoms).sum();
        self.disagreements = disagreements(audits);
        self.missing_keys = audits.iter().flat_map(|audit| audit.missing_keys.clone()).collect();
        self.missing_keys.sort();
        self.missing_keys.dedup();
        self.missing_keys.truncate(audit::NAMED_MAX);
    }

    /// Returns what is wrong, each a sentence.
    pub(super) fn faults(&self, of: &str) -> Vec<String> {
        let counts = [
            (self.missing, "acknowledged writes are missing"),
            (self.phantoms, "refused writes were executed"),
            (self.disagreements, "writes are on one member and not on another"),
            (self.stuck_clients, "clients had no acknowledged write after the fault"),
        ];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        let mut faults: Vec<String> =
            counts.map(|(count, what)| format!("{of}, iteration {}: {count} {what}", self.number)).collect();
        if !self.missing_keys.is_empty() {
            faults.push(format!("{of}, iteration {}: missing: {}", self.number, self.missing_keys.join(" ")));
        }
        let answers = self.wrong_answers.iter();
        faults.extend(answers.map(|answer| format!("{of}, iteration {}: {answer}", self.number)));
        faults
    }
}

/// Collects what the writers have to say.
fn join(writers: impl Iterator<Item = std::thread::Result<Written>>) -> anyhow::Result<Vec<Written>> {
    writers.map(|written| written.ok().context("a client panicked")).collect()
}
