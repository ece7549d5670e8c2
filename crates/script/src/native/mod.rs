//! Values between Lua and Redis, over Lua's C interface.
//!
//! Each call of a command and each answer of a script passes here, so values are not kept by handles.
//!
//! ```text
//! redis.call(…) ─► collect: arguments as bytes ─► execute: the caller ─► push: the answer as Lua values
//! run: KEYS, ARGV ─► the script, under the handler of errors ─► write: what it returns, as an answer
//! ```
//!
//! Lua leaves a function by a long jump when it runs out of memory. So no value with a destructor is on a frame
//! from which a function of Lua is called that may fail; what has destructors is done in functions that call
//! nothing of Lua, or only what cannot fail.

#![allow(unsafe_code, reason = "values are passed through the C interface of Lua")]

mod pushing;
mod writing;

use crate::caller::{Answer, with_caller};
use crate::number::general;
use mlua::ffi;
use mlua::{Function, Lua, Result, Table};
use pushing::push_answer;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::os::raw::{c_char, c_int};
use writing::write;

/// The state of a coroutine.
pub(crate) type State = *mut ffi::lua_State;

/// Bytes that the buffers of a thread keep.
const KEPT_BYTES: usize = 1 << 20;

/// Arguments and answer of one command of a script.
#[derive(Default)]
struct Buffers {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    answer: Vec<u8>,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::default();
    /// Whether the running script has chosen RESP3.
    static IS_RESP3: Cell<bool> = const { Cell::new(false) };
}

/// How a command of a script ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Called {
    /// The answer is in the buffer.
    Answered,
    /// The reason why it was not run is in the buffer.
    Refused,
}

/// Returns `redis.call`, `redis.pcall` and `unpack`.
pub(crate) fn functions(lua: &Lua) -> Result<(Function, Function, Function)> {
    // SAFETY: three functions without upvalues are pushed, and nothing else.
    unsafe {
        lua.exec_raw((), |state| {
            ffi::lua_pushcclosure(state, call, 0);
            ffi::lua_pushcclosure(state, protected_call, 0);
            ffi::lua_pushcclosure(state, unpack, 0);
        })
    }
}

/// Most values that `unpack` returns: the slots that Lua gives a function.
const MAX_UNPACKED: i64 = 8_000;

/// `unpack(list [, from [, to]])`. That of Lua 5.1 counts the values in 32 bits, and writes beyond its stack if
/// they are more.
unsafe extern "C-unwind" fn unpack(state: State) -> c_int {
    // SAFETY: the frame has plain values only. The stack is checked for as many values as are pushed.
    unsafe {
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        let from = ffi::luaL_optinteger(state, 2, 1) as i64;
        let to = match ffi::lua_type(state, 3) {
            ffi::LUA_TNIL | ffi::LUA_TNONE => ffi::lua_objlen(state, 1) as i64,
            _ => ffi::luaL_checkinteger(state, 3) as i64,
        };
        if from > to {
            return 0;
        }
        let count = to.saturating_sub(from).saturating_add(1);
        let range = c_int::try_from(from).ok().zip(c_int::try_from(to).ok());
        let Some((from, to)) =
            range.filter(|_| count < MAX_UNPACKED && ffi::lua_checkstack(state, count as c_int) != 0)
        else {
            return ffi::luaL_error(state, c"too many results to unpack".as_ptr());
        };
        for index in from..=to {
            ffi::lua_rawgeti_(state, 1, index);
        }
        count as c_int
    }
}

/// Sets the version of the protocol in which the running script sees answers.
pub(crate) fn set_resp3(is_resp3: bool) {
    IS_RESP3.set(is_resp3);
}

unsafe extern "C-unwind" fn call(state: State) -> c_int {
    // SAFETY: as documented for the module: the frame has plain values only.
    unsafe {
        if call_command(state) {
            ffi::lua_error(state);
        }
    }
    1
}

unsafe extern "C-unwind" fn protected_call(state: State) -> c_int {
    // SAFETY: as for `call`.
    unsafe { call_command(state) };
    1
}

/// Runs the command in a function's arguments and pushes its answer. Returns whether that is an error.
unsafe fn call_command(state: State) -> bool {
    // SAFETY: the frame has plain values only, and Lua has given at least 20 free slots.
    unsafe {
        if ffi::lua_gettop(state) == 0 {
            push_error(state, b"ERR Please specify at least one argument for this redis lib call");
            return true;
        }
        if !collect(state) {
            push_error(state, b"ERR Lua redis lib command arguments must be strings or integers");
            return true;
        }
        let called = execute();
        // The buffer stays as it is until the next call: nothing that is pushed calls a command.
        let (start, len) = BUFFERS.with(|buffers| {
            let answer = &(*buffers.as_ptr()).answer;
            (answer.as_ptr(), answer.len())
        });
        let bytes = std::slice::from_raw_parts(start, len);
        if called == Called::Refused {
            push_answered_error(state, bytes);
            return true;
        }
        let mut rest = bytes;
        if !push_answer(state, &mut rest, 0) {
            ffi::lua_pushboolean(state, 0);
        }
        bytes.first() == Some(&b'-')
    }
}

/// Copies the arguments to the buffer. Returns `false` if one is neither a string nor a number.
unsafe fn collect(state: State) -> bool {
    BUFFERS.with_borrow_mut(|buffers| {
        buffers.bytes.clear();
        buffers.ends.clear();
        // SAFETY: nothing here fails or allocates in Lua: strings are not converted.
        unsafe {
            for index in 1..=ffi::lua_gettop(state) {
                match ffi::lua_type(state, index) {
                    ffi::LUA_TSTRING => buffers.bytes.extend_from_slice(text_at(state, index)),
                    ffi::LUA_TNUMBER => {
                        let number = ffi::lua_tonumber(state, index);
                        buffers.bytes.extend_from_slice(general(number, 17).as_bytes());
                    }
                    _ => return false,
                }
                buffers.ends.push(buffers.bytes.len());
            }
        }
        true
    })
}

/// Runs the command in the buffer. Calls nothing of Lua.
fn execute() -> Called {
    BUFFERS.with_borrow_mut(|buffers| {
        let Buffers { bytes, ends, answer } = buffers;
        answer.clear();
        if answer.capacity() > KEPT_BYTES {
            *answer = Vec::new();
        }
        let mut start = 0;
        let cut = |end: &usize| &bytes[std::mem::replace(&mut start, *end)..*end];
        let args: SmallVec<[&[u8]; 16]> = ends.iter().map(cut).collect();
        let refusal = with_caller(|caller| caller.call(&args, IS_RESP3.get(), answer))
            .unwrap_or(Err(Cow::Borrowed("redis.call/pcall can only be called inside a script invocation")));
        drop(args);
        if bytes.capacity() > KEPT_BYTES {
            *bytes = Vec::new();
        }
        let Err(reason) = refusal else { return Called::Answered };
        answer.clear();
        answer.extend_from_slice(b"ERR ");
        answer.extend_from_slice(reason.as_bytes());
        Called::Refused
    })
}

/// The bytes of a string on the stack, as long as it is there.
pub(crate) unsafe fn text_at<'a>(state: State, index: c_int) -> &'a [u8] {
    let mut len = 0;
    // SAFETY: the value is a string, which stays where it is while it is on the stack.
    unsafe {
        let start = ffi::lua_tolstring(state, index, &raw mut len);
        std::slice::from_raw_parts(start.cast::<u8>(), len)
    }
}

unsafe fn push_text(state: State, text: &[u8]) {
    // SAFETY: Lua copies the bytes.
    unsafe { ffi::lua_pushlstring_(state, text.as_ptr().cast::<c_char>(), text.len()) };
}

/// Sets a field of the table on the top of the stack to a string.
unsafe fn set_text(state: State, field: &[u8], text: &[u8]) {
    // SAFETY: two slots are used, and the table is below them.
    unsafe {
        push_text(state, field);
        push_text(state, text);
        ffi::lua_rawset(state, -3);
    }
}

/// Pushes the table of an error that is no answer of a command.
unsafe fn push_error(state: State, text: &[u8]) {
    // SAFETY: three slots are used.
    unsafe {
        ffi::lua_createtable(state, 0, 3);
        set_text(state, b"err", text);
    }
}

/// Pushes the table of an error with which a command was answered, or refused.
unsafe fn push_answered_error(state: State, text: &[u8]) {
    // SAFETY: three slots are used.
    unsafe {
        push_error(state, text);
        push_text(state, b"ignore_error_stats_update");
        ffi::lua_pushboolean(state, 1);
        ffi::lua_rawset(state, -3);
    }
}

unsafe fn push_list(state: State, texts: &[&[u8]]) {
    // SAFETY: two slots are used.
    unsafe {
        ffi::lua_createtable(state, c_int::try_from(texts.len()).unwrap_or(0), 0);
        for (index, text) in texts.iter().enumerate() {
            push_text(state, text);
            ffi::lua_rawseti_(state, -2, index as c_int + 1);
        }
    }
}

/// What is run, and how it gets its arguments.
pub(crate) struct Work<'a> {
    pub(crate) function: &'a Function,
    /// The table of globals, which gets `KEYS` and `ARGV`; `None` passes them as arguments.
    pub(crate) globals: Option<&'a Table>,
    pub(crate) keys: &'a [&'a [u8]],
    pub(crate) args: &'a [&'a [u8]],
}

/// The error with which a script ended.
#[derive(Debug, Default)]
pub(crate) struct ScriptError {
    pub(crate) message: Vec<u8>,
    pub(crate) source: Vec<u8>,
    pub(crate) line: i64,
}

/// Runs a function under `handler`, and writes what it returns to `answer`. Returns its error, if it ended
/// with one. An error of the interpreter, as for want of memory, is that of the result.
pub(crate) fn run(
    lua: &Lua,
    handler: &Function,
    work: &Work<'_>,
    answer: &mut dyn Answer,
) -> Result<Option<ScriptError>> {
    IS_RESP3.set(false);
    let mut error = None;
    let (keys, args, is_global) = (work.keys, work.args, work.globals.is_some());
    // SAFETY: the closure has references alone; what it fills is filled by functions that call nothing of Lua.
    unsafe {
        lua.exec_raw::<()>((handler, work.globals, work.function), |state| {
            ffi::luaL_checkstack(state, 10, c"script".as_ptr());
            if is_global {
                for (name, texts) in [(b"KEYS", keys), (b"ARGV", args)] {
                    push_text(state, name);
                    push_list(state, texts);
                    ffi::lua_rawset(state, 2);
                }
            } else {
                push_list(state, keys);
                push_list(state, args);
            }
            let status = ffi::lua_pcall(state, if is_global { 0 } else { 2 }, 1, 1);
            if status == ffi::LUA_OK {
                write(state, answer, 0);
            } else {
                read_error(state, &mut error);
            }
            ffi::lua_settop(state, 0);
        })?;
    }
    Ok(error)
}

/// Reads the error on the top of the stack: a table of the handler, or a text if the handler could not run.
unsafe fn read_error(state: State, error: &mut Option<ScriptError>) {
    // SAFETY: fields are looked up without conversions, and their bytes are copied while they are on the stack.
    unsafe {
        let found = error.insert(ScriptError::default());
        if ffi::lua_type(state, -1) == ffi::LUA_TSTRING {
            found.message.extend_from_slice(b"ERR ");
            found.message.extend_from_slice(text_at(state, -1));
            return;
        }
        if ffi::lua_type(state, -1) != ffi::LUA_TTABLE {
            found.message.extend_from_slice(b"ERR unknown error");
            return;
        }
        for (field, text) in [(&b"err"[..], &mut found.message), (b"source", &mut found.source)] {
            push_text(state, field);
            ffi::lua_rawget(state, -2);
            if ffi::lua_type(state, -1) == ffi::LUA_TSTRING {
                text.extend_from_slice(text_at(state, -1));
            }
            ffi::lua_pop(state, 1);
        }
        push_text(state, b"line");
        ffi::lua_rawget(state, -2);
        if ffi::lua_type(state, -1) == ffi::LUA_TNUMBER {
            found.line = ffi::lua_tonumber(state, -1) as i64;
        }
        ffi::lua_pop(state, 1);
    }
}
