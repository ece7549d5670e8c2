//! State that consumers share: the names under which the server keeps their positions, and which
//! positions it has acknowledged.

use super::read::Read;
use crate::commands::{Generator, Random};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidemark_engine::Protocol;

/// How often the work for an emission is done, despite any kills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// At least once: acknowledged after the work.
    AtLeast,
    /// At most once: acknowledged by the server before it is sent.
    AtMost,
    /// Exactly once: acknowledged in the transaction that does the work.
    Exactly,
}

/// A named subscription. Its name is never used for another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Errand {
    pub(crate) name: String,
    pub(crate) read: Read,
    pub(crate) manner: Manner,
}

impl Errand {
    /// Returns a command about the emissions up to an LSN.
    pub(crate) fn words(&self, command: &str, lsn: u64) -> [Vec<u8>; 4] {
        [command.into(), self.read.key(), self.name.clone().into(), lsn.to_string().into()]
    }
}

/// Whether a name may begin. A consumer that begins a name holds the lock as long as the server may
/// do so: an ended name must not begin again, so the log has each name once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Fate {
    #[default]
    Lives,
    /// Its end was requested, or will be immediately.
    Doomed,
    /// The server has confirmed its end, in this run.
    Ended(usize),
}

/// Numbers of ended names: of the consumer itself, of another consumer, and without an owner.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ends {
    pub(crate) own: usize,
    pub(crate) of_others: usize,
    pub(crate) unclaimed: usize,
}

/// The errands of a case, one at a time of each manner.
pub(crate) struct Errands {
    present: Mutex<Vec<Errand>>,
    /// By name: the run of the server, and the last LSN that it has confirmed as acknowledged.
    done: Mutex<BTreeMap<String, (usize, u64)>>,
    fates: Mutex<BTreeMap<String, Arc<Mutex<Fate>>>>,
    /// Number of consumers that believe to own a name.
    holders: Mutex<BTreeMap<String, usize>>,
    ends: Mutex<Ends>,
}

impl Errands {
    pub(crate) fn new(generator: &mut Generator) -> Self {
        let manners = [Manner::AtLeast, Manner::AtMost, Manner::Exactly];
        let present = manners.map(|manner| errand(manner, 1, generator));
        Self {
            present: Mutex::new(present.into()),
            done: Mutex::default(),
            fates: Mutex::default(),
            holders: Mutex::default(),
            ends: Mutex::default(),
        }
    }

    pub(crate) fn any(&self, random: &mut Random) -> Errand {
        let present = lock(&self.present);
        present[random.below(present.len() as u64) as usize].clone()
    }

    pub(crate) fn of_number(&self, number: usize) -> Option<Errand> {
        lock(&self.present).get(number).cloned()
    }

    /// Replaces an errand that cannot continue.
    pub(crate) fn replace(&self, over: &Errand, generator: &mut Generator) {
        let mut present = lock(&self.present);
        // Another consumer may have replaced it already.
        if let Some(place) = present.iter_mut().find(|errand| errand.name == over.name) {
            let number = over.name.rsplit('.').next().and_then(|number| number.parse::<u64>().ok());
            *place = errand(over.manner, number.unwrap_or(0) + 1, generator);
        }
    }

    /// Notes that the server has confirmed in this run that everything up to an LSN is
    /// acknowledged.
    pub(crate) fn note_done(&self, name: &str, life: usize, lsn: u64) {
        let mut all = lock(&self.done);
        let done = all.entry(name.to_owned()).or_default();
        *done = if done.0 == life { (life, done.1.max(lsn)) } else { (life, lsn) };
    }

    /// Returns the last acknowledged LSN, if the server is still in this run.
    pub(crate) fn done(&self, name: &str, life: usize) -> u64 {
        lock(&self.done).get(name).filter(|done| done.0 == life).map_or(0, |done| done.1)
    }

    /// Returns the fate of a name.
    pub(crate) fn fate(&self, name: &str) -> Arc<Mutex<Fate>> {
        Arc::clone(lock(&self.fates).entry(name.to_owned()).or_default())
    }

    /// Returns whether a name may have ended.
    pub(crate) fn is_doomed(&self, name: &str) -> bool {
        *lock(&self.fate(name)) != Fate::Lives
    }

    /// Notes that a consumer owns a name, or no longer does.
    pub(crate) fn note_holder(&self, name: &str, has: bool) {
        let mut holders = lock(&self.holders);
        let count = holders.entry(name.to_owned()).or_default();
        *count = if has { *count + 1 } else { count.saturating_sub(1) };
    }

    /// Counts a name that a consumer has ended, which owned it or did not.
    pub(crate) fn note_end(&self, name: &str, is_own: bool) {
        let is_held = lock(&self.holders).get(name).is_some_and(|count| *count > 0);
        let mut ends = lock(&self.ends);
        match (is_own, is_held) {
            (true, _) => ends.own += 1,
            (false, true) => ends.of_others += 1,
            (false, false) => ends.unclaimed += 1,
        }
    }

    pub(crate) fn ends(&self) -> Ends {
        *lock(&self.ends)
    }
}

fn errand(manner: Manner, number: u64, generator: &mut Generator) -> Errand {
    let read = Read::any(generator, Protocol::Resp3);
    Errand { name: format!("{manner:?}.{number}"), read, manner }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
