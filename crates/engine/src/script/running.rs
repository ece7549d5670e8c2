//! Runs a script or a function under the locks of its command.
//!
//! One that fails has changed what its commands had changed until then, as in Redis.

use super::answer::ScriptReply;
use super::busy::{Announced, RunningFunction, Shards};
use super::calling::{QUICK, ScriptRun};
use super::host::ScriptHost;
use crate::command::{Command, KeySpec, LibraryAction, Run, ScriptAction, flags, parse};
use crate::context::Keys;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::execute::call::Call;
use crate::wire::reply::Reply;
use std::sync::Arc;
use std::time::Instant;
use tidemark_script::script::{Flags, Script};
use tidemark_script::with_interpreter;

impl Engine {
    /// Whether a command may touch keys that its arguments do not name.
    #[inline]
    pub(crate) fn concerns_all(&self, command: &Command, args: &[&[u8]]) -> bool {
        match command.run {
            Run::Script(action) => self.leaves_keys(action, args),
            _ => command.keys.concerns_all(args),
        }
    }

    /// Whether a script may touch keys that it is not given. One that cannot run touches none. A function is made
    /// of several parts of its library, which are not looked at, and its texts are on all shards.
    #[cold]
    fn leaves_keys(&self, action: ScriptAction, args: &[&[u8]]) -> bool {
        match action {
            ScriptAction::Text | ScriptAction::Id => {
                self.script_of(action, args).is_ok_and(|script| !script.is_confined)
            }
            ScriptAction::Function | ScriptAction::Libraries(_) => true,
        }
    }

    fn script_of(&self, action: ScriptAction, args: &[&[u8]]) -> Result<Arc<Script>, CommandError> {
        let name = args.get(1).copied().unwrap_or_default();
        match action {
            ScriptAction::Text => self.scripts().of_text(name),
            _ => self.scripts().of_id(name),
        }
    }

    /// Runs a command of scripts or functions, and leaves its effects in `keys`.
    pub(crate) fn run_script(
        &self,
        action: ScriptAction,
        call: &Call<'_>,
        keys: &mut Keys<'_>,
        reply: &mut Reply,
    ) {
        let ran = match action {
            ScriptAction::Libraries(action) => self.run_on_libraries(action, call, keys, reply),
            ScriptAction::Function => self.try_function(call, keys, reply),
            ScriptAction::Text | ScriptAction::Id => self.try_script(action, call, keys, reply),
        };
        if let Err(error) = ran {
            reply.error(&error);
        }
    }

    fn try_script(
        &self,
        action: ScriptAction,
        call: &Call<'_>,
        keys: &mut Keys<'_>,
        reply: &mut Reply,
    ) -> Result<(), CommandError> {
        let (own_keys, own_args) = split(call.args, CommandError::NotAnInteger)?;
        let script = self.script_of(action, call.args)?;
        let only_reads = !call.command.is(flags::WRITE);
        self.check_flags(script.flags, script.text.starts_with(b"#!"), only_reads)?;
        if !(script.is_confined || keys.holds_all()) {
            // Only if it was replaced between the choice of the locks and now.
            return Err(CommandError::text("TRYAGAIN the script was loaded again meanwhile"));
        }
        let mut run = ScriptRun::new(self, call, keys, own_keys, only_reads || script.flags.no_writes);
        // Usually it is known how long the script takes, and no clock is read.
        let clock = self.scripts().host().filter(|_| !script.is_quick());
        let began = clock.map(|clock| clock.now());
        let mut answer = ScriptReply(reply);
        let ran = with_interpreter(|interpreter| {
            interpreter.run(&script, (own_keys, own_args), &mut run, &mut answer);
        });
        let is_long = run.finish();
        keys.select(call.db);
        if let Some(is_quick) = pace(clock.zip(began), is_long) {
            script.note_pace(is_quick);
        }
        ran.map_err(|reason| CommandError::Text(format!("OOM {reason}").into()))
    }

    /// `FCALL function numkeys [key …] [arg …]`
    fn try_function(
        &self,
        call: &Call<'_>,
        keys: &mut Keys<'_>,
        reply: &mut Reply,
    ) -> Result<(), CommandError> {
        let functions = self.functions(keys)?;
        let found = functions.find(call.args.get(1).copied().unwrap_or_default());
        let (library, index) = found.ok_or(CommandError::text("ERR Function not found"))?;
        let (own_keys, own_args) = split(call.args, CommandError::text("ERR Bad number of keys provided"))?;
        let function = &library.functions[index];
        let only_reads = !call.command.is(flags::WRITE);
        self.check_flags(function.flags, true, only_reads)?;
        let mut run = ScriptRun::new(self, call, keys, own_keys, only_reads || function.flags.no_writes);
        let clock = self.scripts().host().filter(|_| !function.is_quick());
        let began = clock.map(|clock| clock.now());
        let mut answer = ScriptReply(reply);
        let ran = with_interpreter(|interpreter| {
            interpreter.call((library, index), (own_keys, own_args), &mut run, &mut answer);
        });
        let is_long = run.finish();
        keys.select(call.db);
        if let Some(is_quick) = pace(clock.zip(began), is_long) {
            function.note_pace(is_quick);
        }
        ran.map_err(|reason| CommandError::Text(format!("OOM {reason}").into()))
    }

    /// Whether a command may run in an event loop: it runs no script, or one that was quick when it ran last.
    pub fn is_quick(&self, command: &Command, args: &[&[u8]]) -> bool {
        match command.run {
            // One that is not known runs as long as its error takes.
            Run::Script(action @ (ScriptAction::Text | ScriptAction::Id)) => {
                self.script_of(action, args).map_or(true, |script| script.is_quick())
            }
            Run::Script(ScriptAction::Function) => {
                // Of libraries that were loaded since, it is not known: one may have replaced a quick function.
                let known = self.scripts().functions().of(self.keyspace().library_changes());
                let name = args.get(1).copied().unwrap_or_default();
                known.is_some_and(|functions| {
                    let found = functions.find(name);
                    found.is_some_and(|(library, index)| library.functions[index].is_quick())
                })
            }
            Run::Script(ScriptAction::Libraries(action)) => {
                matches!(action, LibraryAction::Delete | LibraryAction::Flush | LibraryAction::List)
            }
            _ => true,
        }
    }

    /// Whether a command runs a script or a function that says that it changes nothing.
    pub fn runs_without_writes(&self, command: &Command, args: &[&[u8]]) -> bool {
        match command.run {
            Run::Script(action @ (ScriptAction::Text | ScriptAction::Id)) => {
                self.script_of(action, args).is_ok_and(|script| script.flags.no_writes)
            }
            Run::Script(ScriptAction::Function) => {
                let functions = self.known_functions();
                let found = functions.find(args.get(1).copied().unwrap_or_default());
                found.is_some_and(|(library, index)| library.functions[index].flags.no_writes)
            }
            _ => false,
        }
    }

    /// Announces the script of a command, so that commands that need its locks do not wait for them. Call it
    /// before the command is executed, on the same thread.
    pub fn announce_script(&self, command: &Command, args: &[&[u8]]) -> Option<Announced<'_>> {
        if !matches!(command.run, Run::Script(_)) {
            return None;
        }
        let now = self.scripts().host()?.now();
        let function = RunningFunction::of(command, args, now);
        Some(self.scripts().running().announce(self.shards_of(command, args), now, false, function))
    }

    /// When the announced script began for whose locks a command would wait. The caller has seen that there
    /// [is one](super::RunningScripts::any).
    #[cold]
    pub fn script_before(&self, command: &Command, args: &[&[u8]]) -> Option<Instant> {
        if matches!(command.keys, KeySpec::None) {
            return None;
        }
        self.scripts().running().met(&self.shards_of(command, args))
    }

    /// When the script began that has all locks, if there is one. The caller has seen that there [is
    /// one](super::RunningScripts::any).
    #[cold]
    pub fn script_with_all_locks(&self) -> Option<Instant> {
        // It is met even by what needs no lock.
        self.scripts().running().met(&Shards::Some(Vec::new()))
    }

    fn shards_of(&self, command: &Command, args: &[&[u8]]) -> Shards {
        if self.concerns_all(command, args) {
            return Shards::All;
        }
        Shards::Some(command.keys.keys(args).map(|key| self.keyspace().shard_of(key)).collect())
    }

    fn check_flags(&self, own: Flags, says_flags: bool, only_reads: bool) -> Result<(), CommandError> {
        if own.no_cluster && self.is_in_group() {
            return Err(CommandError::text("ERR Can not run script on cluster, 'no-cluster' flag is set."));
        }
        if only_reads && says_flags && !own.no_writes {
            return Err(CommandError::text(
                "ERR Can not execute a script with write flag using *_ro command.",
            ));
        }
        Ok(())
    }
}

/// Whether a script was quick, by the clock and the time at which it began, if these were read.
fn pace(began: Option<(&Arc<dyn ScriptHost>, Instant)>, is_long: bool) -> Option<bool> {
    match began {
        Some((clock, began)) => Some(clock.now().saturating_duration_since(began) < QUICK),
        None => is_long.then_some(false),
    }
}

/// Arguments of a command.
type Words<'a, 'b> = &'a [&'b [u8]];

/// Splits the arguments into keys and others.
fn split<'a, 'b>(
    args: &'a [&'b [u8]],
    no_count: CommandError,
) -> Result<(Words<'a, 'b>, Words<'a, 'b>), CommandError> {
    let count = args.get(2).copied().and_then(parse::canonical_integer).ok_or(no_count)?;
    let rest = args.get(3..).unwrap_or_default();
    if count < 0 {
        return Err(CommandError::text("ERR Number of keys can't be negative"));
    }
    usize::try_from(count)
        .ok()
        .and_then(|count| rest.split_at_checked(count))
        .ok_or(CommandError::text("ERR Number of keys can't be greater than number of args"))
}
