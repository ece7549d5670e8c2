//! Loads libraries of functions, and runs the functions.

use crate::caller::{Answer, Caller, lend};
use crate::functions::{Library, LibraryHead};
use crate::interpreter::{Interpreter, text_of, write_end};
use crate::native::{self, Work};
use crate::script::id_of;
use mlua::chunk::ChunkMode;
use mlua::{Error, Function, Table};

/// Libraries that an interpreter keeps loaded.
const LOADED: usize = 1_000;

/// Takes the answer of a library's program, which means nothing.
struct Nothing;

impl Answer for Nothing {
    fn is_full(&self) -> bool {
        true
    }
    fn integer(&mut self, _: i64) {}
    fn bulk(&mut self, _: &[u8]) {}
    fn simple(&mut self, _: &[u8]) {}
    fn error(&mut self, _: &[u8]) {}
    fn null(&mut self) {}
    fn boolean(&mut self, _: bool) {}
    fn double(&mut self, _: f64) {}
    fn big_number(&mut self, _: &[u8]) {}
    fn verbatim(&mut self, _: &[u8], _: &[u8]) {}
    fn array(&mut self, _: usize) {}
    fn map(&mut self, _: usize) {}
    fn set(&mut self, _: usize) {}
}

impl Interpreter {
    /// Loads a library: runs its program, which registers the functions.
    ///
    /// # Errors
    /// It is no library, in Redis's words, without a code.
    pub fn load(&mut self, text: &[u8], caller: &mut dyn Caller) -> std::result::Result<Library, String> {
        let head = LibraryHead::of(text)?;
        let of_lua = |error: Error| format!("Error registering functions: ERR {}", text_of(&error));
        let (environment, open): (Table, Function) = self.library_environment.call(()).map_err(of_lua)?;
        let chunk = self.lua.load(head.program).set_name("@user_function").set_mode(ChunkMode::Text);
        let program = chunk.set_environment(environment).into_function().map_err(|error| {
            let reason = match error {
                Error::SyntaxError { message, .. } => message,
                other => text_of(&other),
            };
            format!("Error compiling function: {reason}")
        })?;
        self.registering.replace(Some(Vec::new()));
        self.begin();
        let work = Work { function: &program, globals: None, keys: &[], args: &[] };
        let ended = lend(caller, || native::run(&self.lua, &self.handler, &work, &mut Nothing));
        let registered = self.registering.take().unwrap_or_default();
        if let Some(error) = ended.map_err(of_lua)? {
            let message = String::from_utf8_lossy(&error.message).into_owned();
            return Err(format!("Error registering functions: {message}"));
        }
        if registered.is_empty() {
            return Err("No functions registered".into());
        }
        open.call::<()>(()).map_err(of_lua)?;
        let (functions, callbacks) = registered.into_iter().unzip();
        let id = id_of(text);
        if self.libraries.len() >= LOADED {
            self.libraries.clear();
        }
        self.libraries.insert(id, callbacks);
        Ok(Library { id, name: head.name, text: text.into(), functions })
    }

    /// Runs a function of a library with its keys and arguments, and writes its answer, or the error with which
    /// it ended. Loads the library if this interpreter does not have it.
    ///
    /// # Panics
    /// The library has no such function.
    pub fn call(
        &mut self,
        (library, index): (&Library, usize),
        (keys, args): (&[&[u8]], &[&[u8]]),
        caller: &mut dyn Caller,
        answer: &mut dyn Answer,
    ) {
        if !self.libraries.contains_key(&library.id)
            && let Err(reason) = self.load(&library.text, caller)
        {
            answer.error(format!("ERR {reason}").as_bytes());
            return;
        }
        self.forget_arguments();
        let work = Work { function: &self.libraries[&library.id][index], globals: None, keys, args };
        self.begin();
        let ended = lend(caller, || native::run(&self.lua, &self.handler, &work, answer));
        write_end(ended, || library.functions[index].name.clone(), answer);
    }
}
