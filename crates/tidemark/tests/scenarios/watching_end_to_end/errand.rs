//! What consumers share: the names under which the server keeps their places, and how far they have been told that it has them.

use super::read::Read;
use crate::commands::{Generator, Random};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidemark_engine::Protocol;

/// How often what is done for an emission is done, whoever is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Acknowledged when it is done.
    AtLeast,
    /// Acknowledged by the server before it is told.
    AtMost,
    /// Acknowledged in the transaction that does it.
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
    /// A command about the emissions up to an LSN.
    pub(crate) fn words(&self, command: &str, lsn: u64) -> [Vec<u8>; 4] {
        [command.into(), self.read.key(), self.name.clone().into(), lsn.to_string().into()]
    }
}

/// Whether a name may be begun. Its lock is held by whoever may begin it for as long as the server may do so: a name that has
/// ended must not begin again, so that the log has each once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Fate {
    #[default]
    Lives,
    /// Its end was asked for, or will be at once.
    Doomed,
    /// The server has said that it has ended it, in this life.
    Ended(usize),
}

/// How many names were ended: that of the consumer itself, that of another one, and one that nobody had.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ends {
    pub(crate) own: usize,
    pub(crate) of_others: usize,
    pub(crate) of_nobody: usize,
}

/// The errands of a case, of each manner one at a time.
pub(crate) struct Errands {
    present: Mutex<Vec<Errand>>,
    /// In which life of the server it has answered that a name is done with up to which LSN.
    done: Mutex<BTreeMap<String, (usize, u64)>>,
    fates: Mutex<BTreeMap<String, Arc<Mutex<Fate>>>>,
    /// How many consumers believe that they have a name.
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

    /// Puts another errand in place of one that cannot be gone on with.
    pub(crate) fn replace(&self, over: &Errand, generator: &mut Generator) {
        let mut present = lock(&self.present);
        // Somebody else may have been first.
        if let Some(place) = present.iter_mut().find(|errand| errand.name == over.name) {
            let number = over.name.rsplit('.').next().and_then(|number| number.parse::<u64>().ok());
            *place = errand(over.manner, number.unwrap_or(0) + 1, generator);
        }
    }

    /// Notes that the server has said in this life that all up to an LSN is done with.
    pub(crate) fn note_done(&self, name: &str, life: usize, lsn: u64) {
        let mut all = lock(&self.done);
        let done = all.entry(name.to_owned()).or_default();
        *done = if done.0 == life { (life, done.1.max(lsn)) } else { (life, lsn) };
    }

    /// Up to where all was done with by now, if the server is still in this life.
    pub(crate) fn done(&self, name: &str, life: usize) -> u64 {
        lock(&self.done).get(name).filter(|done| done.0 == life).map_or(0, |done| done.1)
    }

    /// What is to become of a name.
    pub(crate) fn fate(&self, name: &str) -> Arc<Mutex<Fate>> {
        Arc::clone(lock(&self.fates).entry(name.to_owned()).or_default())
    }

    /// Whether a name may have ended by now.
    pub(crate) fn is_doomed(&self, name: &str) -> bool {
        *lock(&self.fate(name)) != Fate::Lives
    }

    /// Notes that a consumer has a name, or has it no more.
    pub(crate) fn note_holder(&self, name: &str, has: bool) {
        let mut holders = lock(&self.holders);
        let count = holders.entry(name.to_owned()).or_default();
        *count = if has { *count + 1 } else { count.saturating_sub(1) };
    }

    /// Notes that a name was ended by a consumer, which had it itself or did not.
    pub(crate) fn note_end(&self, name: &str, is_own: bool) {
        let is_held = lock(&self.holders).get(name).is_some_and(|count| *count > 0);
        let mut ends = lock(&self.ends);
        match (is_own, is_held) {
            (true, _) => ends.own += 1,
            (false, true) => ends.of_others += 1,
            (false, false) => ends.of_nobody += 1,
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
