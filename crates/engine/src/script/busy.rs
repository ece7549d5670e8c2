//! Scripts that take long: who must wait for them, and how they are ended.
//!
//! A script whose duration is not known is announced before it takes its locks, and any other when it turns
//! out to be long. So commands that need its locks are told, and do not wait for them.

use crate::command::{Command, Run, ScriptAction};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

/// It has changed nothing.
const CLEAN: u8 = 0;
/// It has changed something, and cannot be ended.
const WRITTEN: u8 = 1;
/// It ends as soon as it looks.
const KILLED: u8 = 2;

/// Why a script, and why a function ends that was killed.
const SCRIPT_KILLED: &str = "Script killed by user with SCRIPT KILL.";
const FUNCTION_KILLED: &str = "Script killed by user with FUNCTION KILL.";
/// Why a script ends that is still running when the server has waited for it long enough.
const STOPPED: &str = "Script ended because the server stops.";

/// The shards whose locks a script has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Shards {
    All,
    /// Some, by their indices.
    Some(Vec<usize>),
}

impl Shards {
    fn meets(&self, other: &Shards) -> bool {
        match (self, other) {
            (Shards::All, _) | (_, Shards::All) => true,
            (Shards::Some(own), Shards::Some(others)) => own.iter().any(|index| others.contains(index)),
        }
    }
}

/// A function that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningFunction {
    /// When it began.
    pub began: Instant,
    /// The command that runs it: its first arguments, each at most [`RunningFunction::ARGUMENT_BYTES`] long.
    pub command: Vec<Box<[u8]>>,
}

impl RunningFunction {
    /// Most arguments of a command that are shown, and most bytes of each.
    pub const ARGUMENTS: usize = 64;
    /// Most bytes of an argument that are shown.
    pub const ARGUMENT_BYTES: usize = 128;

    /// What a command runs; `None` if it runs no function.
    pub(super) fn of(command: &Command, args: &[&[u8]], began: Instant) -> Option<Self> {
        matches!(command.run, Run::Script(ScriptAction::Function)).then(|| Self::new(args, began))
    }

    fn new(args: &[&[u8]], began: Instant) -> Self {
        let shown = |arg: &&[u8]| arg[..arg.len().min(Self::ARGUMENT_BYTES)].into();
        Self { began, command: args.iter().take(Self::ARGUMENTS).map(shown).collect() }
    }
}

/// A script that was announced.
#[derive(Debug)]
pub(super) struct RunningScript {
    began: Instant,
    shards: Shards,
    state: AtomicU8,
    /// Set if it is a function.
    function: Option<RunningFunction>,
}

impl RunningScript {
    /// Notes that the script is about to change something. Returns `false` if it was killed before.
    pub(super) fn may_write(&self) -> bool {
        let noted = self.state.compare_exchange(CLEAN, WRITTEN, Ordering::AcqRel, Ordering::Acquire);
        noted.is_ok() || noted == Err(WRITTEN)
    }

    /// Why it must end, if it was killed.
    pub(super) fn killed(&self) -> Option<&'static str> {
        let reason = if self.function.is_some() { FUNCTION_KILLED } else { SCRIPT_KILLED };
        (self.state.load(Ordering::Acquire) == KILLED).then_some(reason)
    }
}

/// What came of the wish to end a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Killed {
    /// It ends.
    Yes,
    /// No script has been running for that long.
    NoneIsBusy,
    /// It has changed something.
    HasWritten,
    /// It is a function, and a script was to be ended, or the other way round.
    IsOther,
}

/// The announced scripts.
#[derive(Debug, Default)]
pub struct RunningScripts {
    count: AtomicUsize,
    list: Mutex<Vec<Arc<RunningScript>>>,
    /// When all of them end, because the server stops.
    ends_at: OnceLock<Instant>,
}

thread_local! {
    /// The script that this thread has announced.
    static OWN: RefCell<Option<Arc<RunningScript>>> = const { RefCell::new(None) };
}

/// Takes a script off the list when it has ended.
pub struct Announced<'a>(&'a RunningScripts);

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        let Some(own) = OWN.take() else { return };
        self.0.lock().retain(|running| !Arc::ptr_eq(running, &own));
        self.0.count.fetch_sub(1, Ordering::Release);
    }
}

impl RunningScripts {
    /// Whether any script is announced. One load.
    #[inline]
    pub fn any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// Announces a script of this thread that began at a time.
    pub(super) fn announce(
        &self,
        shards: Shards,
        began: Instant,
        has_written: bool,
        function: Option<RunningFunction>,
    ) -> Announced<'_> {
        let state = AtomicU8::new(if has_written { WRITTEN } else { CLEAN });
        let running = Arc::new(RunningScript { began, shards, state, function });
        self.lock().push(Arc::clone(&running));
        self.count.fetch_add(1, Ordering::Release);
        OWN.set(Some(running));
        Announced(self)
    }

    /// The script that this thread has announced.
    pub(super) fn own() -> Option<Arc<RunningScript>> {
        OWN.with_borrow(Clone::clone)
    }

    /// When the script began for whose locks a command would wait the longest.
    pub(super) fn met(&self, shards: &Shards) -> Option<Instant> {
        let list = self.lock();
        list.iter().filter(|running| running.shards.meets(shards)).map(|running| running.began).min()
    }

    /// The function that has run for the longest time.
    pub fn function(&self) -> Option<RunningFunction> {
        let list = self.lock();
        let functions = list.iter().filter_map(|running| running.function.as_ref());
        functions.min_by_key(|function| function.began).cloned()
    }

    /// Ends the scripts, or the functions, that began before a time.
    pub fn kill(&self, busy_since: Instant, functions: bool) -> Killed {
        let list = self.lock();
        let mut killed = Killed::NoneIsBusy;
        for running in list.iter().filter(|running| running.began <= busy_since) {
            if running.function.is_some() != functions {
                if killed == Killed::NoneIsBusy {
                    killed = Killed::IsOther;
                }
                continue;
            }
            let noted = running.state.compare_exchange(CLEAN, KILLED, Ordering::AcqRel, Ordering::Acquire);
            if noted == Err(WRITTEN) {
                killed = Killed::HasWritten;
            } else if killed != Killed::HasWritten {
                killed = Killed::Yes;
            }
        }
        killed
    }

    /// Has every script end that still runs at a time: the server stops. Idempotent.
    pub fn end_at(&self, time: Instant) {
        let _ = self.ends_at.set(time);
    }

    /// Why a script must end that runs now, whatever it has changed.
    pub(super) fn stopped(&self, now: Instant) -> Option<&'static str> {
        self.ends_at.get().is_some_and(|at| *at <= now).then_some(STOPPED)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<RunningScript>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_script_is_met_and_ended_while_it_is_announced() {
        let (scripts, before) = (RunningScripts::default(), Instant::now());
        let now = before + Duration::from_secs(1);
        assert_eq!(scripts.kill(now, false), Killed::NoneIsBusy);
        let announced = scripts.announce(Shards::Some(vec![1, 5]), now, false, None);
        assert!(scripts.any());
        assert_eq!(scripts.met(&Shards::Some(vec![5])), Some(now));
        assert_eq!(scripts.met(&Shards::Some(vec![2])), None);
        assert_eq!(scripts.met(&Shards::All), Some(now));
        let own = RunningScripts::own().expect("it is announced");
        assert_eq!(scripts.kill(before, false), Killed::NoneIsBusy, "it is not busy yet");
        assert_eq!(own.killed(), None);
        assert_eq!(scripts.kill(now, false), Killed::Yes);
        assert!(own.killed().is_some() && !own.may_write(), "what was killed changes nothing more");
        drop(announced);
        assert!(!scripts.any() && RunningScripts::own().is_none());

        let announced = scripts.announce(Shards::All, now, false, None);
        let own = RunningScripts::own().expect("it is announced");
        assert!(own.may_write() && own.may_write());
        assert_eq!(scripts.kill(now, false), Killed::HasWritten);
        assert_eq!(own.killed(), None);
        drop(announced);

        let function = RunningFunction::new(&[b"FCALL", b"f", &[b'x'; 1_000]], now);
        let announced = scripts.announce(Shards::All, now, false, Some(function.clone()));
        assert_eq!(function.command[2].len(), RunningFunction::ARGUMENT_BYTES);
        assert_eq!(scripts.function(), Some(function));
        assert_eq!(scripts.kill(now, false), Killed::IsOther);
        assert_eq!(scripts.kill(now, true), Killed::Yes);
        drop(announced);
        assert_eq!(scripts.function(), None);
    }
}
