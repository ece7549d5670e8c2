//! Writes values as JSON.
//!
//! Tables in each other are walked over Lua's C interface, with a list of the open ones: a recursive function
//! would overflow the stack of a small thread, and a handle for each value would cost more than its text.

#![allow(unsafe_code, reason = "tables are walked through the C interface of Lua")]

use super::{Invalid, JsonSettings};
use crate::library::Failure;
use crate::native::{State, text_at};
use crate::number::general;
use crate::output::Output;
use crate::state::RunState;
use mlua::ffi;
use mlua::{Lua, Value};
use std::ffi::CStr;
use std::os::raw::c_int;

/// Writes a value.
pub(super) fn encode(
    lua: &Lua,
    settings: &JsonSettings,
    state: &RunState,
    value: &Value,
) -> Result<Vec<u8>, Failure> {
    let mut writer = Writer { settings, out: Output::new(state), open: Vec::new(), refused: None };
    // SAFETY: the closure has a reference alone; what has a destructor is in `writer`, outside of its frame.
    unsafe {
        lua.exec_raw::<()>(value, |state| {
            writer.write(state);
            ffi::lua_settop(state, 0);
        })?;
    }
    match writer.refused {
        Some(reason) => Err(reason.into()),
        None => writer.out.finish(),
    }
}

/// A table that is being written.
enum Open {
    /// Elements that are written, of how many. On the stack: the table.
    Array(c_int, c_int),
    /// Whether a pair is written. On the stack: the table, and the last key.
    Object(bool),
}

/// What to write next.
enum Next {
    /// The value on the top of the stack.
    Value,
    /// What follows in the innermost table.
    Rest,
    End,
}

struct Writer<'a> {
    settings: &'a JsonSettings,
    out: Output<'a>,
    open: Vec<Open>,
    refused: Option<String>,
}

impl Writer<'_> {
    /// Writes the value on the top of the stack.
    unsafe fn write(&mut self, state: State) {
        let mut next = Next::Value;
        loop {
            // SAFETY: each step leaves on the stack what `Open` says.
            next = unsafe {
                match next {
                    Next::Value => self.value(state),
                    Next::Rest => self.rest(state),
                    Next::End => return,
                }
            };
            if self.refused.is_some() || self.out.has_ended() {
                return;
            }
        }
    }

    /// Writes the value on the top of the stack, and takes it off unless it is a table.
    unsafe fn value(&mut self, state: State) -> Next {
        // SAFETY: the stack is checked before a table needs more of it.
        unsafe {
            match ffi::lua_type(state, -1) {
                ffi::LUA_TNIL => self.out.extend(b"null"),
                ffi::LUA_TBOOLEAN if ffi::lua_toboolean(state, -1) != 0 => self.out.extend(b"true"),
                ffi::LUA_TBOOLEAN => self.out.extend(b"false"),
                ffi::LUA_TNUMBER => self.number(ffi::lua_tonumber(state, -1)),
                ffi::LUA_TSTRING => self.text(text_at(state, -1)),
                ffi::LUA_TLIGHTUSERDATA if ffi::lua_touserdata(state, -1).is_null() => {
                    self.out.extend(b"null");
                }
                ffi::LUA_TTABLE => {
                    // The table, a key, its value, and a copy of the key.
                    if ffi::lua_checkstack(state, 5) == 0 {
                        self.refuse("Cannot serialise, excessive nesting", self.open.len() + 1);
                        return Next::End;
                    }
                    self.begin(state);
                    return Next::Rest;
                }
                other => self.refuse_type(state, other, "type not supported"),
            }
            ffi::lua_pop(state, 1);
        }
        Next::Rest
    }

    /// Begins the table on the top of the stack.
    unsafe fn begin(&mut self, state: State) {
        if self.open.len() as i64 >= self.settings.encode_depth {
            return self.refuse("Cannot serialise, excessive nesting", self.open.len() + 1);
        }
        // SAFETY: one slot is used.
        unsafe {
            match self.array_length(state) {
                Some(len) if len > 0 => {
                    self.out.push(b'[');
                    self.open.push(Open::Array(0, len));
                }
                _ => {
                    self.out.push(b'{');
                    self.open.push(Open::Object(false));
                    ffi::lua_pushnil(state);
                }
            }
        }
    }

    /// Goes on with the innermost table: pushes its next value, or ends it and takes it off the stack.
    unsafe fn rest(&mut self, state: State) -> Next {
        // SAFETY: the stack was checked when the table began.
        unsafe {
            match self.open.last_mut() {
                None => return Next::End,
                Some(Open::Array(written, len)) if *written < *len => {
                    *written += 1;
                    let index = *written;
                    if index > 1 {
                        self.out.push(b',');
                    }
                    ffi::lua_rawgeti_(state, -1, index);
                    return Next::Value;
                }
                Some(Open::Array(..)) => self.out.push(b']'),
                Some(Open::Object(has_pairs)) => {
                    if ffi::lua_next(state, -2) != 0 {
                        if std::mem::replace(has_pairs, true) {
                            self.out.push(b',');
                        }
                        match ffi::lua_type(state, -2) {
                            ffi::LUA_TSTRING => self.text(text_at(state, -2)),
                            ffi::LUA_TNUMBER => {
                                self.out.push(b'"');
                                self.number(ffi::lua_tonumber(state, -2));
                                self.out.push(b'"');
                            }
                            other => {
                                self.refuse_type(state, other, "table key must be a number or string");
                            }
                        }
                        self.out.push(b':');
                        return Next::Value;
                    }
                    self.out.push(b'}');
                }
            }
            self.open.pop();
            ffi::lua_pop(state, 1);
        }
        Next::Rest
    }

    /// The length of the table on the top of the stack as an array; `None` if it is written as an object.
    unsafe fn array_length(&mut self, state: State) -> Option<c_int> {
        let (mut most, mut items) = (0_i64, 0_i64);
        // SAFETY: two slots are used, and none is left.
        unsafe {
            ffi::lua_pushnil(state);
            while ffi::lua_next(state, -2) != 0 {
                ffi::lua_pop(state, 1);
                let index = ffi::lua_tonumber(state, -1);
                let is_index = ffi::lua_type(state, -1) == ffi::LUA_TNUMBER
                    && index.fract() == 0.0
                    && (1.0..=f64::from(c_int::MAX)).contains(&index);
                if !is_index {
                    ffi::lua_pop(state, 1);
                    return None;
                }
                most = most.max(index as i64);
                items += 1;
            }
        }
        let settings = self.settings;
        let is_sparse = settings.sparse_ratio > 0
            && most > items.saturating_mul(settings.sparse_ratio)
            && most > settings.sparse_safe;
        if is_sparse && settings.converts_sparse {
            return None;
        }
        if is_sparse {
            self.refused = Some("Cannot serialise table: excessively sparse array".into());
        }
        Some(most as c_int)
    }

    fn number(&mut self, number: f64) {
        if number.is_finite() || self.settings.invalid == Invalid::Written {
            self.out.extend(general(number, self.settings.precision).as_bytes());
        } else if self.settings.invalid == Invalid::Null {
            self.out.extend(b"null");
        } else {
            self.refused = Some("Cannot serialise number: must not be NaN or Inf".into());
        }
    }

    fn text(&mut self, text: &[u8]) {
        self.out.push(b'"');
        let mut rest = text;
        while let Some(at) = rest.iter().position(|byte| is_escaped(*byte)) {
            let (plain, behind) = rest.split_at(at);
            self.out.extend(plain);
            match behind[0] {
                b'"' => self.out.extend(b"\\\""),
                b'\\' => self.out.extend(b"\\\\"),
                b'/' => self.out.extend(b"\\/"),
                0x08 => self.out.extend(b"\\b"),
                b'\t' => self.out.extend(b"\\t"),
                b'\n' => self.out.extend(b"\\n"),
                0x0c => self.out.extend(b"\\f"),
                b'\r' => self.out.extend(b"\\r"),
                byte => self.out.extend(format!("\\u{byte:04x}").as_bytes()),
            }
            rest = &behind[1..];
        }
        self.out.extend(rest);
        self.out.push(b'"');
    }

    fn refuse(&mut self, reason: &str, depth: usize) {
        self.refused = Some(format!("{reason} ({depth})"));
    }

    unsafe fn refuse_type(&mut self, state: State, kind: c_int, reason: &str) {
        // SAFETY: the name of a type is a static text.
        let name = unsafe { CStr::from_ptr(ffi::lua_typename(state, kind)) }.to_string_lossy();
        self.refused = Some(format!("Cannot serialise {name}: {reason}"));
    }
}

fn is_escaped(byte: u8) -> bool {
    matches!(byte, 0..0x20 | b'"' | b'\\' | b'/' | 0x7f)
}
