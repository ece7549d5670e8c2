//! An interpreter with its sandbox, and the scripts that it has compiled.

use crate::caller::{Answer, Caller, lend, with_caller};
use crate::functions::{self, Registering};
use crate::json::{self, JsonSettings};
use crate::library::{define, one};
use crate::native::{self, ScriptError, Work};
use crate::output::MAX_MEMORY;
use crate::script::{Script, ScriptId, hexadecimal, id_of};
use crate::state::RunState;
use crate::trampoline::in_c;
use crate::{bits, msgpack, strings, structs};
use mlua::chunk::ChunkMode;
use mlua::{Error, Function, HookTriggers, Lua, LuaOptions, Result, StdLib, Table, Value, VmState};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Bytes up to which an interpreter is used again as it is.
const KEPT_MEMORY: usize = 16 << 20;
/// Scripts that an interpreter keeps compiled.
const COMPILED: usize = 1_000;
/// Instructions between two questions whether the script must end.
const INSTRUCTIONS: u32 = 2_000;

/// The Redis version that scripts see.
const VERSION: (&str, i64) = ("7.4.0", 0x0007_0400);

const SANDBOX: &str = include_str!("sandbox.lua");

/// An interpreter of one thread.
pub struct Interpreter {
    pub(crate) lua: Lua,
    globals: Table,
    shown_globals: Table,
    /// Returns the globals of a library that is loaded, and what opens the rest of them when it is.
    pub(crate) library_environment: Function,
    pub(crate) handler: Function,
    state: Rc<RunState>,
    json: Rc<RefCell<JsonSettings>>,
    compiled: HashMap<ScriptId, Function>,
    pub(crate) registering: Registering,
    /// The functions of the libraries that were loaded.
    pub(crate) libraries: HashMap<ScriptId, Vec<Function>>,
}

thread_local! {
    static OWN: RefCell<Option<Interpreter>> = const { RefCell::new(None) };
}

/// Gives this thread's interpreter, which is created for its first script.
///
/// # Errors
/// There is no memory for one.
pub fn with_interpreter<R>(work: impl FnOnce(&mut Interpreter) -> R) -> std::result::Result<R, String> {
    OWN.with_borrow_mut(|own| {
        let interpreter = match own.take() {
            Some(interpreter) => own.insert(interpreter),
            None => own.insert(Interpreter::new().map_err(|error| error.to_string())?),
        };
        let result = work(interpreter);
        if interpreter.is_swollen() {
            *own = None;
        }
        Ok(result)
    })
}

impl Interpreter {
    fn new() -> Result<Self> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
        let lua = Lua::new_with(libraries, LuaOptions::new().catch_rust_panics(false))?;
        let state = Rc::new(RunState::new());
        let (json, settings) = json::library(&lua, &state)?;
        let host = host_of(&lua, json, &state)?;
        let registering = Registering::default();
        functions::add(&lua, &host, &registering)?;
        let (globals, shown_globals, library_environment): (Table, Table, Function) =
            lua.load(SANDBOX).set_name("=sandbox").set_mode(ChunkMode::Text).call(host)?;
        lua.set_globals(shown_globals.clone())?;
        let handler = lua.create_function(describe)?;
        let own = Rc::clone(&state);
        lua.set_global_hook(HookTriggers::new().every_nth_instruction(INSTRUCTIONS), move |_, _| {
            if own.looks_stopped() {
                return Err(Error::RuntimeError(own.killed().unwrap_or_default().into()));
            }
            Ok(VmState::Continue)
        })?;
        lua.set_memory_limit(MAX_MEMORY)?;
        let (compiled, libraries) = (HashMap::new(), HashMap::new());
        Ok(Self {
            lua,
            globals,
            shown_globals,
            library_environment,
            handler,
            state,
            json: settings,
            compiled,
            registering,
            libraries,
        })
    }

    /// Compiles a script, unless it is compiled.
    ///
    /// # Errors
    /// What Lua says of a text that is no program.
    pub fn compile(&mut self, script: &Script) -> std::result::Result<(), String> {
        if self.compiled.contains_key(&script.id) {
            return Ok(());
        }
        let chunk = self.lua.load(script.program()).set_name("@user_script").set_mode(ChunkMode::Text);
        let function = chunk.set_environment(self.shown_globals.clone()).into_function();
        let function = function.map_err(|error| match error {
            Error::SyntaxError { message, .. } => message,
            other => other.to_string(),
        })?;
        if self.compiled.len() >= COMPILED {
            self.compiled.clear();
        }
        self.compiled.insert(script.id, function);
        Ok(())
    }

    /// Runs a script with its keys and arguments, and writes its answer, or the error with which it ended.
    pub fn run(
        &mut self,
        script: &Script,
        (keys, args): (&[&[u8]], &[&[u8]]),
        caller: &mut dyn Caller,
        answer: &mut dyn Answer,
    ) {
        if let Err(reason) = self.compile(script) {
            answer.error(format!("ERR Error compiling script (new function): {reason}").as_bytes());
            return;
        }
        let function = &self.compiled[&script.id];
        let work = Work { function, globals: Some(&self.globals), keys, args };
        self.begin();
        let ended = lend(caller, || native::run(&self.lua, &self.handler, &work, answer));
        let name = || hexadecimal(&script.id);
        write_end(ended, name, answer);
    }

    /// Takes away what the last script was given.
    pub(crate) fn forget_arguments(&self) {
        for name in ["KEYS", "ARGV"] {
            // Nothing is allocated for a field that is taken away.
            drop(self.globals.raw_set(name, Value::Nil));
        }
    }

    pub(crate) fn begin(&self) {
        self.state.begin();
        self.json.replace(JsonSettings::default());
    }

    /// Whether more memory is in use than is kept between scripts.
    fn is_swollen(&self) -> bool {
        if self.lua.used_memory() <= KEPT_MEMORY {
            return false;
        }
        // A script that has run out of memory may have left the collector in the middle.
        self.lua.gc_collect().is_err() || self.lua.used_memory() > KEPT_MEMORY
    }
}

/// Writes the error with which a script ended, if it did.
pub(crate) fn write_end(
    ended: Result<Option<ScriptError>>,
    name: impl Fn() -> String,
    answer: &mut dyn Answer,
) {
    let error = match ended {
        Ok(None) => return,
        Ok(Some(error)) => error,
        Err(error) => {
            ScriptError { message: format!("ERR {}", text_of(&error)).into(), ..ScriptError::default() }
        }
    };
    let mut message = error.message;
    if !error.source.is_empty() && error.line != 0 {
        let source = String::from_utf8_lossy(&error.source);
        message.extend_from_slice(format!(" script: {}, on {source}:{}.", name(), error.line).as_bytes());
    }
    answer.error(&message);
}

/// The text of an error of the interpreter, without the parts that `mlua` adds.
pub(crate) fn text_of(error: &Error) -> String {
    match error {
        Error::RuntimeError(text) | Error::MemoryError(text) => text.clone(),
        Error::CallbackError { cause, .. } => text_of(cause),
        other => other.to_string(),
    }
}

/// Most functions on the stack among which that of the script is looked for.
const LOOKED_AT: usize = 16;

/// The handler of errors: makes each a table, and adds where it was raised.
fn describe(lua: &Lua, error: Value) -> Result<Value> {
    let table = match error {
        Value::Table(table) => table,
        other => {
            let text = match &other {
                Value::Error(error) => text_of(error).into_bytes(),
                Value::String(text) => text.as_bytes().to_vec(),
                other => other.to_string().unwrap_or_default().into_bytes(),
            };
            let table = lua.create_table_with_capacity(0, 3)?;
            table.raw_set("err", lua.create_string([b"ERR ", &*text].concat())?)?;
            table
        }
    };
    for level in 1..LOOKED_AT {
        let place = lua.inspect_stack(level, |frame| {
            let source = frame.source().source?.into_owned();
            source.starts_with("@user_").then(|| (source, frame.current_line().unwrap_or(0)))
        });
        match place {
            None => break,
            Some(None) => {}
            Some(Some((source, line))) => {
                table.raw_set("source", source)?;
                table.raw_set("line", line)?;
                break;
            }
        }
    }
    Ok(Value::Table(table))
}

/// What the sandbox gets of this crate.
fn host_of(lua: &Lua, json: Table, state: &Rc<RunState>) -> Result<Table> {
    let host = lua.create_table()?;
    let (call, pcall, unpack) = native::functions(lua)?;
    host.raw_set("unpack", unpack)?;
    host.raw_set("call", call)?;
    host.raw_set("pcall", pcall)?;
    host.raw_set("cjson", json)?;
    host.raw_set("cmsgpack", msgpack::library(lua, state)?)?;
    host.raw_set("struct", structs::library(lua, state)?)?;
    host.raw_set("bit", bits::library(lua)?)?;
    let text_functions = lua.create_table()?;
    strings::add(lua, &text_functions, state)?;
    host.raw_set("strings", text_functions)?;
    let redis = lua.create_table()?;
    redis.raw_set("REDIS_VERSION", VERSION.0)?;
    redis.raw_set("REDIS_VERSION_NUM", VERSION.1)?;
    host.raw_set("redis", redis)?;
    define(lua, &host, "in_c", |lua, args| match args.get(0) {
        Value::Function(function) => one(Value::Function(in_c(lua, function.clone())?)),
        _ => Err(args.wrong(0, "function expected")),
    })?;
    define(lua, &host, "sha1hex", |lua, args| {
        let text = args.text(lua, 0)?;
        one(Value::String(lua.create_string(hexadecimal(&id_of(&text.as_bytes())))?))
    })?;
    define(lua, &host, "log", |lua, args| {
        let (level, message) = (args.integer(lua, 0)?, args.text(lua, 1)?);
        with_caller(|caller| caller.log(level.clamp(0, 3) as u8, &message.as_bytes()));
        one(Value::Nil)
    })?;
    define(lua, &host, "knows", |lua, args| {
        let name = args.text(lua, 0)?;
        one(Value::Boolean(with_caller(|caller| caller.knows(&name.as_bytes())).unwrap_or(false)))
    })?;
    define(lua, &host, "setresp", |_, args| {
        native::set_resp3(*args.get(0) == Value::Boolean(true));
        one(Value::Nil)
    })?;
    let own = Rc::clone(state);
    define(lua, &host, "killed", move |lua, _| {
        one(own.killed().map_or(Ok(Value::Nil), |reason| lua.create_string(reason).map(Value::String))?)
    })?;
    let own = Rc::clone(state);
    define(lua, &host, "randomseed", move |lua, args| {
        own.seed(args.integer(lua, 0)?);
        one(Value::Nil)
    })?;
    let own = Rc::clone(state);
    define(lua, &host, "random", move |lua, args| {
        let random = own.random();
        let (from, to) = match args.len() {
            0 => return one(Value::Number(random)),
            1 => (1, args.integer(lua, 0)?),
            2 => (args.integer(lua, 0)?, args.integer(lua, 1)?),
            _ => return Err("wrong number of arguments".into()),
        };
        if from > to {
            return Err(args.wrong(args.len() - 1, "interval is empty"));
        }
        let span = to as f64 - from as f64 + 1.0;
        one(Value::Number((random * span).floor() + from as f64))
    })?;
    Ok(host)
}
