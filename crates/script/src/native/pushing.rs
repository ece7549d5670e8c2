//! Answers of commands as Lua values.

use super::{State, push_answered_error, push_text, set_text};
use mlua::ffi;
use std::os::raw::c_int;

/// Most answers in each other; no command comes near.
const MAX_ANSWER_DEPTH: usize = 64;

fn integer(line: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match line {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_i64, |value, digit| {
        let digit = i64::from(digit.wrapping_sub(b'0'));
        let next = value.checked_mul(10).filter(|_| digit < 10)?;
        if is_negative { next.checked_sub(digit) } else { next.checked_add(digit) }
    })
}

/// Pushes the answer at the beginning of `rest`, and moves that behind it. Returns `false`, with nothing
/// pushed, at what is no answer; no command writes such.
pub(super) unsafe fn push_answer(state: State, rest: &mut &[u8], depth: usize) -> bool {
    let Some(end) = memchr::memchr(b'\r', rest) else { return false };
    if depth > MAX_ANSWER_DEPTH || rest.len() < end + 2 || end == 0 {
        return false;
    }
    let (kind, line) = (rest[0], &rest[1..end]);
    *rest = &rest[end + 2..];
    // SAFETY: the stack is checked before each level, which uses fewer slots than that.
    unsafe {
        ffi::luaL_checkstack(state, 8, c"answer".as_ptr());
        match kind {
            b':' => ffi::lua_pushnumber(state, integer(line).unwrap_or(0) as f64),
            b'+' => push_tagged(state, b"ok", line),
            b'-' => push_answered_error(state, line),
            b'$' | b'=' => {
                let Some(len) = integer(line).and_then(|len| usize::try_from(len).ok()) else {
                    ffi::lua_pushboolean(state, 0);
                    return true;
                };
                if rest.len() < len + 2 {
                    return false;
                }
                let (text, behind) = (&rest[..len], &rest[len + 2..]);
                *rest = behind;
                if kind == b'$' {
                    push_text(state, text);
                } else {
                    ffi::lua_createtable(state, 0, 1);
                    push_text(state, b"verbatim_string");
                    ffi::lua_createtable(state, 0, 2);
                    set_text(state, b"format", text.get(..3).unwrap_or(b"txt"));
                    set_text(state, b"string", text.get(4..).unwrap_or_default());
                    ffi::lua_rawset(state, -3);
                }
            }
            b'*' | b'>' => {
                let Some(count) = integer(line).and_then(|count| c_int::try_from(count).ok()) else {
                    ffi::lua_pushboolean(state, 0);
                    return true;
                };
                if count < 0 {
                    ffi::lua_pushboolean(state, 0);
                    return true;
                }
                ffi::lua_createtable(state, count.min(1 << 20), 0);
                for index in 1..=count {
                    if !push_answer(state, rest, depth + 1) {
                        ffi::lua_pop(state, 1);
                        return false;
                    }
                    ffi::lua_rawseti_(state, -2, index);
                }
            }
            b'%' | b'~' => {
                ffi::lua_createtable(state, 0, 1);
                push_text(state, if kind == b'%' { b"map" } else { b"set" });
                ffi::lua_createtable(state, 0, 0);
                for _ in 0..integer(line).unwrap_or(0) {
                    if !push_answer(state, rest, depth + 1) {
                        ffi::lua_pop(state, 3);
                        return false;
                    }
                    if kind == b'~' {
                        ffi::lua_pushboolean(state, 1);
                    } else if !push_answer(state, rest, depth + 1) {
                        ffi::lua_pop(state, 4);
                        return false;
                    }
                    if ffi::lua_type(state, -2) == ffi::LUA_TNIL {
                        ffi::lua_pop(state, 2);
                    } else {
                        ffi::lua_rawset(state, -3);
                    }
                }
                ffi::lua_rawset(state, -3);
            }
            b'_' => ffi::lua_pushnil(state),
            b'#' => ffi::lua_pushboolean(state, c_int::from(line == b"t")),
            b',' => {
                ffi::lua_createtable(state, 0, 1);
                push_text(state, b"double");
                ffi::lua_pushnumber(state, float(line));
                ffi::lua_rawset(state, -3);
            }
            b'(' => push_tagged(state, b"big_number", line),
            _ => return false,
        }
    }
    true
}

fn float(line: &[u8]) -> f64 {
    std::str::from_utf8(line).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
}

unsafe fn push_tagged(state: State, field: &[u8], text: &[u8]) {
    // SAFETY: three slots are used.
    unsafe {
        ffi::lua_createtable(state, 0, 1);
        set_text(state, field, text);
    }
}
