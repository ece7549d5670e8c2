//! Ctrl-C: what is measured already is not lost. Asked a second time, the program ends at once.

use anyhow::Context;
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// What a shell reports of a program that Ctrl-C has ended.
const EXIT_CODE: i32 = 128 + SIGINT;

/// Whether the run is to end early.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// What Ctrl-C sets from now on.
    pub(crate) fn by_signal() -> anyhow::Result<Self> {
        static REGISTERED: OnceLock<Interrupt> = OnceLock::new();
        if let Some(interrupt) = REGISTERED.get() {
            return Ok(interrupt.clone());
        }
        let interrupt = Interrupt::default();
        // In this order: the first signal finds the flag unset.
        let register = || {
            flag::register_conditional_shutdown(SIGINT, EXIT_CODE, Arc::clone(&interrupt.0))?;
            flag::register(SIGINT, Arc::clone(&interrupt.0))
        };
        register().context("cannot watch for Ctrl-C")?;
        Ok(REGISTERED.get_or_init(|| interrupt).clone())
    }

    /// Whether it was asked for.
    pub(crate) fn is_asked_for(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Asks for it.
    #[cfg(test)]
    pub(crate) fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
