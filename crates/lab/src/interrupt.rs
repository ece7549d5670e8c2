//! Ctrl-C: what is measured already is not lost. Asked a second time, the program ends at once.

use anyhow::Context;
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// What a shell adds to the signal that has ended a program.
const SIGNALLED: i32 = 128;

static REGISTERED: OnceLock<Interrupt> = OnceLock::new();

/// Whether the run is to end early.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    is_asked_for: Arc<AtomicBool>,
    /// What a program ends with that the last signal has ended.
    exit_code: Arc<AtomicUsize>,
}

impl Interrupt {
    /// What Ctrl-C sets from now on.
    ///
    /// # Errors
    /// The system refuses to watch for the signal.
    pub fn by_signal() -> anyhow::Result<Self> {
        if let Some(interrupt) = REGISTERED.get() {
            return Ok(interrupt.clone());
        }
        let interrupt = Interrupt::default();
        interrupt.also_by(SIGINT)?;
        Ok(REGISTERED.get_or_init(|| interrupt).clone())
    }

    /// Has another signal ask for it, too: the first asks, the second ends the program.
    ///
    /// # Errors
    /// The system refuses to watch for the signal.
    pub fn also_by(&self, signal: i32) -> anyhow::Result<()> {
        let (asked, code) = (&self.is_asked_for, SIGNALLED + signal);
        // In this order: the first signal finds the flag unset.
        flag::register_conditional_shutdown(signal, code, Arc::clone(asked))
            .and_then(|_| flag::register_usize(signal, Arc::clone(&self.exit_code), code as usize))
            .and_then(|_| flag::register(signal, Arc::clone(asked)))
            .with_context(|| format!("cannot watch for signal {signal}"))?;
        Ok(())
    }

    /// Whether it was asked for.
    #[must_use]
    pub fn is_asked_for(&self) -> bool {
        self.is_asked_for.load(Ordering::Relaxed)
    }

    /// What the program is to end with if a signal has ended a run early: what a shell reports of a program that the signal
    /// itself has ended, 130 for Ctrl-C.
    #[must_use]
    pub fn exit_code() -> Option<u8> {
        let interrupt = REGISTERED.get().filter(|interrupt| interrupt.is_asked_for())?;
        u8::try_from(interrupt.exit_code.load(Ordering::Relaxed)).ok()
    }

    /// Asks for it.
    #[cfg(test)]
    pub(crate) fn ask(&self) {
        self.is_asked_for.store(true, Ordering::Relaxed);
    }
}
