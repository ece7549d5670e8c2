//! What functions of libraries write: with a limit, and with questions whether the script must end.

use crate::library::Failure;
use crate::state::RunState;

/// Most bytes that the values of a script take, in one thread.
pub const MAX_MEMORY: usize = 256 << 20;

/// Most bytes of a string that a library makes. Lua copies it, within the limit of its own memory.
pub(crate) const MAX_OUTPUT: usize = MAX_MEMORY / 2;

/// Parts that are written between two questions whether the script must end.
const STEPS: u32 = 1 << 14;

/// Bytes that are written, and why no more are.
pub(crate) struct Output<'a> {
    bytes: Vec<u8>,
    state: &'a RunState,
    steps: u32,
    ended: Option<&'static str>,
}

impl<'a> Output<'a> {
    pub(crate) fn new(state: &'a RunState) -> Self {
        Self { bytes: Vec::new(), state, steps: 0, ended: None }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends bytes; nothing once it has ended.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        if self.ended.is_some() {
            return;
        }
        if bytes.len() > MAX_OUTPUT - self.bytes.len() {
            self.ended = Some("not enough memory");
            return;
        }
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn push(&mut self, byte: u8) {
        self.extend(&[byte]);
    }

    /// Whether nothing more is written. Called for each part, it also asks whether the script must end.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS) && self.ended.is_none() && self.state.looks_stopped() {
            self.ended = self.state.killed();
        }
        self.ended.is_some()
    }

    /// The bytes, unless it has ended before.
    pub(crate) fn finish(self) -> Result<Vec<u8>, Failure> {
        match self.ended {
            None => Ok(self.bytes),
            Some(reason) => Err(reason.into()),
        }
    }
}
