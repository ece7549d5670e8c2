//! Functions: the libraries that clients have loaded.
//!
//! ```text
//! FUNCTION LOAD ─► is it a library? ─► library.set: its text, in the log and in a database of its own
//! FCALL ─► all locks ─► the table of functions, rebuilt if the texts have changed ─► running
//! ```
//!
//! The texts are data, as keys are: they are in records, snapshots and digests, and every member of a group has
//! them. The table is each process's own.

use super::busy::RunningScripts;
use super::command::{DELETE, SET};
use super::function_table::Functions;
use super::host::ScriptHost;
use crate::command::{LibraryAction, find_logged, parse};
use crate::context::{Keys, Locked};
use crate::engine::Engine;
use crate::error::CommandError;
use crate::execute::call::Call;
use crate::execute::logging::encode_effects;
use crate::keyspace::LIBRARIES;
use crate::wire::reply::Reply;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidemark_script::functions::{Library, LibraryFunction, LibraryHead};
use tidemark_script::{Caller, with_interpreter};

/// Most libraries, and most bytes of all their texts.
pub(super) const MAX_LIBRARIES: usize = 1_000;
pub(super) const MAX_LIBRARY_BYTES: usize = 8 << 20;

/// How long the program of a library may take when a client loads it.
const LOAD_TIME: Duration = Duration::from_millis(500);

/// What runs the program of a library: it calls no commands, and ends in time.
struct Loading<'a> {
    host: Option<&'a Arc<dyn ScriptHost>>,
    ends_at: Option<Instant>,
}

impl Caller for Loading<'_> {
    fn call(&mut self, _: &[&[u8]], _: bool, _: &mut Vec<u8>) -> Result<(), Cow<'static, str>> {
        Err("redis.call can only be called inside a script invocation".into())
    }

    fn interrupt(&mut self) -> Option<&'static str> {
        if let Some(reason) = RunningScripts::own().and_then(|own| own.killed()) {
            return Some(reason);
        }
        let now = self.host?.now();
        self.ends_at.filter(|ends_at| now >= *ends_at).map(|_| "FUNCTION LOAD timeout")
    }

    fn log(&mut self, level: u8, message: &[u8]) {
        if let Some(host) = self.host {
            host.log(level, message);
        }
    }

    fn knows(&self, _: &[u8]) -> bool {
        false
    }
}

/// The beginning of an argument, for an error.
pub(super) fn shown(arg: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&arg[..arg.len().min(128)])
}

pub(super) fn failure(reason: String) -> CommandError {
    CommandError::Text(format!("ERR {reason}").into())
}

/// The error of a subcommand that has too many arguments.
pub(super) fn wrong_number(call: &Call<'_>) -> CommandError {
    failure(format!(
        "unknown subcommand or wrong number of arguments for '{}'. Try FUNCTION HELP.",
        shown(call.args[1])
    ))
}

/// A change of a library: a command that only the log has, with the name and perhaps the text.
pub(super) struct Change<'a> {
    pub(super) command: &'static str,
    pub(super) args: &'a [&'a [u8]],
}

impl Engine {
    /// Returns the numbers of libraries and of their functions. While a script may hold the locks, those that
    /// were there when a function was needed last.
    pub fn function_totals(&self) -> (usize, usize) {
        let functions = self.known_functions();
        (functions.libraries.len(), functions.by_name.len())
    }

    /// Returns the table of functions without a lock that a script may hold: while one may, as it was when a
    /// function was needed last.
    pub(super) fn known_functions(&self) -> Arc<Functions> {
        let table = self.scripts().functions();
        if let Some(functions) = table.of(self.keyspace().library_changes()) {
            return functions;
        }
        if self.scripts().running().any() {
            return table.last();
        }
        let keys = self.keys(Locked::All(self.keyspace().lock_all()), 0, 0);
        self.functions(&keys).unwrap_or_else(|_| table.last())
    }

    /// Returns the table of functions, which is rebuilt if the libraries have changed. All shards are locked.
    pub(super) fn functions(&self, keys: &Keys<'_>) -> Result<Arc<Functions>, CommandError> {
        let change = self.keyspace().library_changes();
        if let Some(functions) = self.scripts().functions().of(change) {
            return Ok(functions);
        }
        let known = self.scripts().functions().last();
        let mut texts = Vec::new();
        keys.for_each_library(|name, text| texts.push((name.to_vec(), text.to_vec())));
        let mut libraries = BTreeMap::new();
        for (name, text) in texts {
            let name = String::from_utf8_lossy(&name).into_owned();
            let library = match known.libraries.get(&name).filter(|known| *known.text == *text) {
                Some(known) => Arc::clone(known),
                None => Arc::new(self.load_library(&text, None)?),
            };
            libraries.insert(name, library);
        }
        let functions = Arc::new(Functions::of(libraries));
        self.scripts().functions().set(change, &functions);
        Ok(functions)
    }

    /// When the programs of libraries must have ended that may take so long.
    pub(super) fn end_of(&self, time: Duration) -> Option<Instant> {
        self.scripts().host().map(|host| host.now() + time)
    }

    /// Runs the program of a library, which registers its functions.
    pub(super) fn load_library(
        &self,
        text: &[u8],
        ends_at: Option<Instant>,
    ) -> Result<Library, CommandError> {
        let host = self.scripts().host();
        let mut loading = Loading { host, ends_at };
        with_interpreter(|interpreter| interpreter.load(text, &mut loading))
            .and_then(|loaded| loaded)
            .map_err(failure)
    }

    /// Runs a command on the libraries, and leaves its effects in `keys`.
    pub(super) fn run_on_libraries(
        &self,
        action: LibraryAction,
        call: &Call<'_>,
        keys: &mut Keys<'_>,
        reply: &mut Reply,
    ) -> Result<(), CommandError> {
        let args = call.args.get(2..).unwrap_or_default();
        match action {
            LibraryAction::Load => self.load_functions(args, call, keys, reply),
            LibraryAction::Delete => {
                let name = args.first().copied().unwrap_or_default();
                let functions = self.functions(keys)?;
                let is_there =
                    std::str::from_utf8(name).is_ok_and(|name| functions.libraries.contains_key(name));
                if !is_there {
                    return Err(CommandError::text("ERR Library not found"));
                }
                self.change_libraries(call, keys, &[Change { command: DELETE, args: &[name] }]);
                reply.ok();
                Ok(())
            }
            LibraryAction::Flush if args.len() > 1 => Err(wrong_number(call)),
            LibraryAction::Flush => {
                let is_mode = |mode: &&[u8]| parse::is(mode, "SYNC") || parse::is(mode, "ASYNC");
                if !args.iter().all(is_mode) {
                    return Err(CommandError::text("ERR FUNCTION FLUSH only supports SYNC|ASYNC option"));
                }
                let mut names = Vec::new();
                keys.for_each_library(|name, _| names.push(name.to_vec()));
                let names: Vec<[&[u8]; 1]> = names.iter().map(|name| [name.as_slice()]).collect();
                let changes = names.iter().map(|args| Change { command: DELETE, args });
                self.change_libraries(call, keys, &changes.collect::<Vec<_>>());
                reply.ok();
                Ok(())
            }
            LibraryAction::List => self.list(args, keys, reply),
            LibraryAction::Dump => Self::dump_libraries(keys, reply),
            LibraryAction::Restore => self.restore_libraries(call, keys, reply),
        }
    }

    /// `FUNCTION LOAD [REPLACE] text`
    fn load_functions(
        &self,
        args: &[&[u8]],
        call: &Call<'_>,
        keys: &mut Keys<'_>,
        reply: &mut Reply,
    ) -> Result<(), CommandError> {
        let Some((text, options)) = args.split_last() else { return Err(CommandError::Syntax) };
        if let Some(option) = options.iter().find(|option| !parse::is(option, "REPLACE")) {
            return Err(failure(format!("Unknown option given: {}", shown(option))));
        }
        let name = LibraryHead::of(text).map_err(failure)?.name;
        let functions = self.functions(keys)?;
        if options.is_empty() && functions.libraries.contains_key(&name) {
            return Err(failure(format!("Library '{name}' already exists")));
        }
        let others = functions.libraries.values().filter(|library| library.name != name);
        let (count, bytes) =
            others.fold((1, text.len()), |(count, bytes), other| (count + 1, bytes + other.text.len()));
        if count > MAX_LIBRARIES || bytes > MAX_LIBRARY_BYTES {
            return Err(failure(format!(
                "with this one, {count} libraries have {bytes} bytes, and the limits are {MAX_LIBRARIES} and \
                 {MAX_LIBRARY_BYTES}: FUNCTION DELETE removes one"
            )));
        }
        let library = self.load_library(text, self.end_of(LOAD_TIME))?;
        let taken = library.functions.iter().find(|function| {
            functions.find(function.name.as_bytes()).is_some_and(|(other, _)| other.name != name)
        });
        if let Some(function) = taken {
            return Err(failure(format!("Function {} already exists", function.name)));
        }
        self.change_libraries(call, keys, &[Change { command: SET, args: &[name.as_bytes(), text] }]);
        reply.bulk(name.as_bytes());
        Ok(())
    }

    /// Runs commands that only the log has, and leaves what the log gets of them in `keys`.
    pub(super) fn change_libraries(&self, call: &Call<'_>, keys: &mut Keys<'_>, changes: &[Change<'_>]) {
        let mut recorded = Vec::new();
        keys.select(LIBRARIES);
        for change in changes {
            let command = find_logged(change.command).expect("the table of logged commands has it");
            let args = [&[change.command.as_bytes()], change.args].concat();
            let call = Call { command, args: &args, db: LIBRARIES, now_us: call.now_us };
            let mut failure = Reply::default();
            self.run(&call, keys, &mut failure);
            assert!(
                failure.is_empty(),
                "a library is not changed: {}",
                String::from_utf8_lossy(failure.bytes())
            );
            let effects = std::mem::take(&mut keys.effects);
            encode_effects(&call, &effects, &mut recorded);
        }
        keys.select(call.db);
        if !recorded.is_empty() {
            keys.effects.changed = true;
            keys.effects.rare_mut().recorded = recorded;
        }
    }

    /// `FUNCTION LIST [LIBRARYNAME pattern] [WITHCODE]`
    fn list(&self, args: &[&[u8]], keys: &Keys<'_>, reply: &mut Reply) -> Result<(), CommandError> {
        let (mut pattern, mut with_code, mut rest) = (None, false, args.iter());
        while let Some(arg) = rest.next() {
            if !with_code && parse::is(arg, "WITHCODE") {
                with_code = true;
            } else if pattern.is_none() && parse::is(arg, "LIBRARYNAME") {
                let name =
                    rest.next().ok_or(CommandError::text("ERR library name argument was not given"))?;
                pattern = Some(*name);
            } else {
                return Err(failure(format!("Unknown argument {}", shown(arg))));
            }
        }
        let functions = self.functions(keys)?;
        let is_shown = |library: &&Arc<Library>| {
            pattern.is_none_or(|pattern| {
                parse::glob(&pattern.to_ascii_lowercase(), library.name.to_ascii_lowercase().as_bytes())
            })
        };
        let shown: Vec<&Arc<Library>> = functions.libraries.values().filter(is_shown).collect();
        reply.array(shown.len());
        for library in shown {
            reply.map(if with_code { 4 } else { 3 });
            reply.bulk(b"library_name");
            reply.bulk(library.name.as_bytes());
            reply.bulk(b"engine");
            reply.bulk(b"LUA");
            reply.bulk(b"functions");
            reply.array(library.functions.len());
            library.functions.iter().for_each(|function| show(function, reply));
            if with_code {
                reply.bulk(b"library_code");
                reply.bulk(&library.text);
            }
        }
        Ok(())
    }
}

fn show(function: &LibraryFunction, reply: &mut Reply) {
    reply.map(3);
    reply.bulk(b"name");
    reply.bulk(function.name.as_bytes());
    reply.bulk(b"description");
    match &function.description {
        Some(text) => reply.bulk(text),
        None => reply.null(),
    }
    reply.bulk(b"flags");
    let flags: Vec<&str> = function.flags.names().collect();
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.simple(flag));
}
