//! What scripts return, as answers.

use super::{IS_RESP3, State, push_text, text_at};
use crate::caller::Answer;
use crate::number::truncated;
use mlua::ffi;
use std::os::raw::c_int;

/// Most tables in each other that are written as an answer, by a recursive function. Redis stops where Lua's
/// stack ends.
const MAX_TABLE_DEPTH: usize = 200;

/// Writes the value on the top of the stack as an answer, and leaves it there.
pub(super) unsafe fn write(state: State, answer: &mut dyn Answer, depth: usize) {
    if answer.is_full() {
        return;
    }
    // SAFETY: the stack is checked before each level.
    unsafe {
        match ffi::lua_type(state, -1) {
            ffi::LUA_TSTRING => answer.bulk(text_at(state, -1)),
            ffi::LUA_TNUMBER => answer.integer(truncated(ffi::lua_tonumber(state, -1))),
            ffi::LUA_TBOOLEAN => match (ffi::lua_toboolean(state, -1) != 0, IS_RESP3.get()) {
                (value, true) => answer.boolean(value),
                (true, false) => answer.integer(1),
                (false, false) => answer.null(),
            },
            ffi::LUA_TTABLE => {
                if depth >= MAX_TABLE_DEPTH || ffi::lua_checkstack(state, 8) == 0 {
                    answer.error(b"ERR reached lua stack limit");
                } else {
                    write_table(state, answer, depth);
                }
            }
            _ => answer.null(),
        }
    }
}

/// Pushes a field of the table on the top of the stack if it has the given type. Returns whether it has.
unsafe fn push_field(state: State, field: &[u8], kind: c_int) -> bool {
    // SAFETY: one slot is used.
    unsafe {
        push_text(state, field);
        ffi::lua_rawget(state, -2);
        let is_there = ffi::lua_type(state, -1) == kind;
        if !is_there {
            ffi::lua_pop(state, 1);
        }
        is_there
    }
}

/// Writes the table on the top of the stack: one of the tagged forms, or an array up to its first `nil`.
unsafe fn write_table(state: State, answer: &mut dyn Answer, depth: usize) {
    // SAFETY: `write` has checked the stack. Tables are not changed while they are walked.
    unsafe {
        if push_field(state, b"err", ffi::LUA_TSTRING) {
            answer.error(text_at(state, -1));
            ffi::lua_pop(state, 1);
        } else if push_field(state, b"ok", ffi::LUA_TSTRING) {
            answer.simple(text_at(state, -1));
            ffi::lua_pop(state, 1);
        } else if push_field(state, b"double", ffi::LUA_TNUMBER) {
            answer.double(ffi::lua_tonumber(state, -1));
            ffi::lua_pop(state, 1);
        } else if push_field(state, b"map", ffi::LUA_TTABLE) {
            answer.map(count(state));
            walk(state, answer, depth, true);
            ffi::lua_pop(state, 1);
        } else if push_field(state, b"set", ffi::LUA_TTABLE) {
            answer.set(count(state));
            walk(state, answer, depth, false);
            ffi::lua_pop(state, 1);
        } else if push_field(state, b"big_number", ffi::LUA_TSTRING) {
            answer.big_number(text_at(state, -1));
            ffi::lua_pop(state, 1);
        } else if push_field(state, b"verbatim_string", ffi::LUA_TTABLE) {
            if push_field(state, b"string", ffi::LUA_TSTRING) {
                ffi::lua_insert(state, -2);
                if push_field(state, b"format", ffi::LUA_TSTRING) {
                    answer.verbatim(text_at(state, -1), text_at(state, -3));
                    ffi::lua_pop(state, 3);
                    return;
                }
                ffi::lua_pop(state, 1);
            }
            ffi::lua_pop(state, 1);
            write_array(state, answer, depth);
        } else {
            write_array(state, answer, depth);
        }
    }
}

unsafe fn write_array(state: State, answer: &mut dyn Answer, depth: usize) {
    // SAFETY: one slot is used at a time.
    unsafe {
        let mut len = 0;
        loop {
            ffi::lua_rawgeti_(state, -1, len + 1);
            let is_end = ffi::lua_type(state, -1) == ffi::LUA_TNIL;
            ffi::lua_pop(state, 1);
            if is_end {
                break;
            }
            len += 1;
        }
        answer.array(len as usize);
        for index in 1..=len {
            ffi::lua_rawgeti_(state, -1, index);
            write(state, answer, depth + 1);
            ffi::lua_pop(state, 1);
        }
    }
}

/// Number of entries of the table on the top of the stack.
unsafe fn count(state: State) -> usize {
    let mut count = 0;
    // SAFETY: two slots are used.
    unsafe {
        ffi::lua_pushnil(state);
        while ffi::lua_next(state, -2) != 0 {
            ffi::lua_pop(state, 1);
            count += 1;
        }
    }
    count
}

/// Writes the keys of the table on the top of the stack, with their values if it is a map.
unsafe fn walk(state: State, answer: &mut dyn Answer, depth: usize, is_map: bool) {
    // SAFETY: three slots are used. A key is written from a copy: it must stay what it is for `lua_next`.
    unsafe {
        ffi::lua_pushnil(state);
        while ffi::lua_next(state, -2) != 0 {
            ffi::lua_pushvalue(state, -2);
            write(state, answer, depth + 1);
            ffi::lua_pop(state, 1);
            if is_map {
                write(state, answer, depth + 1);
            }
            ffi::lua_pop(state, 1);
        }
    }
}
