//! What an entry of a queue is for: one pointer, tagged in its two lowest bits.

use crate::execution::event::Event;
use crate::execution::node::Header;

const RELEASE: usize = 1;
const JOB: usize = 2;
const CLOSE: usize = 3;
const BARRIER: usize = 7;
const TAGS: usize = 3;

/// A closure that runs once, in its place in the order, in the circuit's context.
pub(crate) struct Job {
    pub(crate) event: Event,
    pub(crate) work: Box<dyn FnOnce() + Send>,
}

/// An entry of a queue without its value.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Token(*mut ());

/// A decoded token.
pub(crate) enum Entry {
    /// A value for this node follows.
    Emission(*mut Header),
    /// This node has no handles any more.
    Release(*mut Header),
    /// Runs a job.
    Job(*mut Job),
    /// Ends the circuit here.
    Close,
    /// Only a place in the order: everything written into lanes before is handled before it.
    Barrier,
}

impl Token {
    pub(crate) fn emission(node: *mut Header) -> Self {
        debug_assert_eq!(node.addr() & TAGS, 0);
        Self(node.cast())
    }

    pub(crate) fn release(node: *mut Header) -> Self {
        Self(node.cast::<()>().map_addr(|address| address | RELEASE))
    }

    /// Makes a token that owns the job: [`Token::entry`] returns its pointer, to be freed once.
    pub(crate) fn job(job: Job) -> Self {
        Self(Box::into_raw(Box::new(job)).cast::<()>().map_addr(|address| address | JOB))
    }

    pub(crate) fn close() -> Self {
        Self(std::ptr::without_provenance_mut(CLOSE))
    }

    pub(crate) fn barrier() -> Self {
        Self(std::ptr::without_provenance_mut(BARRIER))
    }

    /// Returns whether entries of the lanes must be handled first.
    pub(crate) fn is_behind_lanes(self) -> bool {
        self.as_emission().is_none() && self.0.addr() & TAGS != JOB
    }

    pub(crate) fn from_raw(raw: *mut ()) -> Self {
        Self(raw)
    }

    pub(crate) fn into_raw(self) -> *mut () {
        self.0
    }

    /// The node that a value follows for, if this is an emission, as most tokens are.
    #[inline]
    pub(crate) fn as_emission(self) -> Option<*mut Header> {
        if self.0.addr() & TAGS == 0 { Some(self.0.cast()) } else { None }
    }

    #[inline]
    pub(crate) fn entry(self) -> Entry {
        let untagged = self.0.map_addr(|address| address & !TAGS);
        match self.0.addr() & TAGS {
            0 => Entry::Emission(untagged.cast()),
            RELEASE => Entry::Release(untagged.cast()),
            JOB => Entry::Job(untagged.cast()),
            _ if self.0.addr() == BARRIER => Entry::Barrier,
            _ => Entry::Close,
        }
    }
}
