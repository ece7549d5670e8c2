//! Functions of Lua's C interface that raise errors as Lua's own functions do.
//!
//! A function of `mlua` raises its errors as objects of `mlua`. Scripts expect tables and strings, with the
//! position of the caller. So each function that may fail returns how it ended, and a small C function
//! around it raises the error:
//!
//! ```text
//! script ─► trampoline ─► function: (ended, value …)
//!              └─ OK: value …      RAISE: error(value)      RAISE_AT: error(position .. value)
//! ```

#![allow(unsafe_code, reason = "errors are raised through the C interface")]

use mlua::ffi;
use mlua::{Function, Lua, Result};
use std::os::raw::c_int;

/// The values are the result.
pub(crate) const OK: i32 = 0;
/// The value is the error.
pub(crate) const RAISE: i32 = 1;
/// The value is a text; the error is that, behind the position of the caller.
pub(crate) const RAISE_AT: i32 = 2;

/// Wraps a function that returns one of the constants above, and values.
pub(crate) fn raising(lua: &Lua, function: Function) -> Result<Function> {
    // SAFETY: the function is on the stack, and becomes the only upvalue of the closure, which stays.
    unsafe { lua.exec_raw(function, |state| ffi::lua_pushcclosure(state, trampoline, 1)) }
}

/// Wraps a function of Lua: what it returns and raises is the same.
pub(crate) fn in_c(lua: &Lua, function: Function) -> Result<Function> {
    // SAFETY: as for `raising`.
    unsafe { lua.exec_raw(function, |state| ffi::lua_pushcclosure(state, calling, 1)) }
}

/// Calls its upvalue with its arguments.
unsafe extern "C-unwind" fn calling(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: one slot is used, and Lua gives at least 20. The frame has plain values only.
    unsafe {
        let arguments = ffi::lua_gettop(state);
        ffi::lua_pushvalue(state, ffi::lua_upvalueindex(1));
        ffi::lua_insert(state, 1);
        ffi::lua_call(state, arguments, ffi::LUA_MULTRET);
        ffi::lua_gettop(state)
    }
}

/// Calls its upvalue with its arguments, and raises the error that this returns.
///
/// No value with a destructor is on this frame, which Lua leaves by unwinding or a long jump.
unsafe extern "C-unwind" fn trampoline(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: Lua gives a C function its arguments and at least 20 free slots: two are used at a time.
    unsafe {
        let arguments = ffi::lua_gettop(state);
        ffi::lua_pushvalue(state, ffi::lua_upvalueindex(1));
        ffi::lua_insert(state, 1);
        ffi::lua_call(state, arguments, ffi::LUA_MULTRET);
        match ffi::lua_tointeger(state, 1) as i32 {
            OK => return ffi::lua_gettop(state) - 1,
            RAISE => ffi::lua_settop(state, 2),
            _ => {
                ffi::lua_settop(state, 2);
                ffi::luaL_where(state, 1);
                ffi::lua_insert(state, 2);
                ffi::lua_concat(state, 2);
            }
        }
        ffi::lua_error(state)
    }
}
