//! What a command does beside answering.

use crate::blocking::waiter::Block;
use crate::execute::noted::Noted;
use tidemark_log::Lsn;

/// A command that goes into the log in place of the one that ran.
#[derive(Debug)]
pub(crate) struct Rewritten {
    pub(crate) name: &'static str,
    pub(crate) args: Vec<Vec<u8>>,
}

/// What a command did beside answering.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Whether anything changed, so that the command must be logged.
    pub(crate) changed: bool,
    /// Whether the answer must wait until the change is durable.
    pub(crate) durable: bool,
    /// A record of before that the answer depends on, whatever the command itself has logged: it waits until that is durable.
    /// [`Lsn::ZERO`] if there is none.
    pub(crate) awaited: Lsn,
    /// Whether the answer tells of what was logged before and may not be durable yet, as if the command had logged it itself.
    pub(crate) tells_logged: bool,
    /// The earliest deadline that was set, in milliseconds since 1970.
    pub(crate) earliest_deadline: Option<u64>,
    /// What most commands have nothing of, so that none of them has to make it, look at it and drop it.
    rare: Option<Box<RareEffects>>,
}

/// What few commands do.
#[derive(Debug, Default)]
pub(crate) struct RareEffects {
    /// What to log instead of the command itself; empty means the command itself.
    pub(crate) rewritten: Vec<Rewritten>,
    /// Keys that were found expired and removed on the way.
    pub(crate) expired: Vec<Vec<u8>>,
    /// Keys that got something that blocked clients may wait for.
    pub(crate) ready: Vec<(u8, Vec<u8>)>,
    /// Whom the changes concern. Whoever takes them out hands them to [`crate::Engine`]'s `emit`.
    pub(crate) noted: Vec<Noted>,
    /// Counters that are committed by what is logged, each with its database.
    pub(crate) leased: Vec<(u8, Vec<u8>)>,
    /// The wish to wait.
    pub(crate) block: Option<Box<Block>>,
}

impl Effects {
    /// What few commands do, if this one did any of it.
    #[inline]
    pub(crate) fn rare(&self) -> Option<&RareEffects> {
        self.rare.as_deref()
    }

    /// As [`Effects::rare`], to add to it.
    #[cold]
    pub(crate) fn rare_mut(&mut self) -> &mut RareEffects {
        self.rare.get_or_insert_default()
    }

    /// Takes out what few commands do.
    pub(crate) fn take_rare(&mut self) -> RareEffects {
        self.rare.take().map_or_else(RareEffects::default, |rare| *rare)
    }

    /// Takes out whom the changes concern.
    pub(crate) fn take_noted(&mut self) -> Vec<Noted> {
        self.rare.as_mut().map_or_else(Vec::new, |rare| std::mem::take(&mut rare.noted))
    }

    /// Takes out which keys got something.
    pub(crate) fn take_ready(&mut self) -> Vec<(u8, Vec<u8>)> {
        self.rare.as_mut().map_or_else(Vec::new, |rare| std::mem::take(&mut rare.ready))
    }
}
