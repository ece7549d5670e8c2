//! Effects of a command other than its reply.

use crate::blocking::waiter::Block;
use crate::error::CommandError;
use crate::execute::noted::Noted;
use crate::script::Publication;
use crate::wire::reply::Reply;
use tidemark_log::Lsn;

/// A command that is logged in place of the one that ran.
#[derive(Debug)]
pub(crate) struct Rewritten {
    pub(crate) name: &'static str,
    pub(crate) args: Vec<Vec<u8>>,
}

/// Effects of a command other than its reply.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Whether anything changed, so that the command must be logged.
    pub(crate) changed: bool,
    /// Whether the answer must wait until the change is durable.
    pub(crate) durable: bool,
    /// An earlier record that the reply depends on and must wait for, whatever the command itself
    /// logs. [`Lsn::ZERO`] if there is none.
    pub(crate) awaited: Lsn,
    /// Whether the reply shows earlier changes that may not be durable yet; it waits as if the
    /// command had logged them.
    pub(crate) reveals_logged: bool,
    /// Whether a script has run a command that only reads, and none that changes something.
    pub(crate) script_reads: bool,
    /// The earliest deadline that was set, in milliseconds since 1970.
    pub(crate) earliest_deadline: Option<u64>,
    /// Rare effects, boxed so that most commands do not create, check and drop them.
    rare: Option<Box<RareEffects>>,
}

/// Effects that few commands have.
#[derive(Debug, Default)]
pub(crate) struct RareEffects {
    /// Commands to log in place of the command itself; empty logs the command itself.
    pub(crate) rewritten: Vec<Rewritten>,
    /// An argument of the command to log in place of the client's, with its position.
    pub(crate) chosen: Option<(usize, Box<[u8]>)>,
    /// What the commands of a script have changed, for the log in place of the command itself.
    pub(crate) recorded: Vec<Vec<u8>>,
    /// Messages that a script has published.
    pub(crate) published: Vec<Publication>,
    /// Keys that were found expired and removed.
    pub(crate) expired: Vec<Vec<u8>>,
    /// Keys that received something that blocked clients may wait for, each with its database.
    pub(crate) ready: Vec<(u8, Vec<u8>)>,
    /// Subscribers that the changes concern, for the `emit` of [`crate::Engine`].
    pub(crate) noted: Vec<Noted>,
    /// Counters committed by this command's records, each with its database.
    pub(crate) leased: Vec<(u8, Vec<u8>)>,
    /// Request to block the client.
    pub(crate) block: Option<Box<Block>>,
    /// Writes the reply from references that the handler has taken.
    pub(crate) rest: Option<Rest>,
}

/// The rest of a read: what it does with the references that its handler took under the locks. Runs
/// without locks where the caller can release them first.
pub(crate) struct Rest(Box<WriteRest>);

type WriteRest = dyn FnOnce(&mut Reply) -> Result<(), CommandError> + Send;

impl Rest {
    pub(crate) fn new(write: impl FnOnce(&mut Reply) -> Result<(), CommandError> + Send + 'static) -> Self {
        Self(Box::new(write))
    }

    /// Writes the reply, or the error in place of it.
    pub(crate) fn write(self, reply: &mut Reply) {
        let mark = reply.len();
        if let Err(error) = CommandError::guard(|| (self.0)(reply)) {
            reply.truncate(mark);
            reply.error(&error);
        }
    }
}

impl std::fmt::Debug for Rest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Rest")
    }
}

impl Effects {
    #[inline]
    pub(crate) fn rare(&self) -> Option<&RareEffects> {
        self.rare.as_deref()
    }

    /// The rare effects, created if absent.
    #[cold]
    pub(crate) fn rare_mut(&mut self) -> &mut RareEffects {
        self.rare.get_or_insert_default()
    }

    /// Drops the rest of a read that has failed.
    pub(crate) fn drop_rest(&mut self) {
        if let Some(rare) = &mut self.rare {
            rare.rest = None;
        }
    }

    pub(crate) fn take_rare(&mut self) -> RareEffects {
        self.rare.take().map_or_else(RareEffects::default, |rare| *rare)
    }

    pub(crate) fn take_noted(&mut self) -> Vec<Noted> {
        self.rare.as_mut().map_or_else(Vec::new, |rare| std::mem::take(&mut rare.noted))
    }

    pub(crate) fn take_ready(&mut self) -> Vec<(u8, Vec<u8>)> {
        self.rare.as_mut().map_or_else(Vec::new, |rare| std::mem::take(&mut rare.ready))
    }
}
