//! `bit`: operations on the low 32 bits of numbers, as `BitOp` of `LuaJIT` has them.

use crate::library::{Args, Failure, define, one};
use mlua::{Lua, Result, Table, Value};

/// The low 32 bits of a number, rounded to an integer as `BitOp` does.
fn bits(lua: &Lua, args: &Args, at: usize) -> std::result::Result<u32, Failure> {
    let number = args.number(lua, at)?;
    // The sum has its integer part in the low bits of the mantissa.
    Ok((number + 6_755_399_441_055_744.0).to_bits() as u32)
}

fn signed(value: u32) -> Value {
    Value::Integer(i64::from(value as i32))
}

/// An operation on two words.
type Operation = fn(u32, u32) -> u32;

/// Creates the library.
pub(crate) fn library(lua: &Lua) -> Result<Table> {
    let table = lua.create_table()?;
    define(lua, &table, "tobit", |lua, args| one(signed(bits(lua, args, 0)?)))?;
    define(lua, &table, "bnot", |lua, args| one(signed(!bits(lua, args, 0)?)))?;
    define(lua, &table, "bswap", |lua, args| one(signed(bits(lua, args, 0)?.swap_bytes())))?;
    let folds: [(&str, Operation); 3] =
        [("band", |a, b| a & b), ("bor", |a, b| a | b), ("bxor", |a, b| a ^ b)];
    for (name, fold) in folds {
        define(lua, &table, name, move |lua, args| {
            let mut value = bits(lua, args, 0)?;
            for at in 1..args.len() {
                value = fold(value, bits(lua, args, at)?);
            }
            one(signed(value))
        })?;
    }
    let shifts: [(&str, Operation); 5] = [
        ("lshift", |value, by| value << by),
        ("rshift", |value, by| value >> by),
        ("arshift", |value, by| (value as i32 >> by) as u32),
        ("rol", u32::rotate_left),
        ("ror", u32::rotate_right),
    ];
    for (name, shift) in shifts {
        define(lua, &table, name, move |lua, args| {
            one(signed(shift(bits(lua, args, 0)?, bits(lua, args, 1)? & 31)))
        })?;
    }
    define(lua, &table, "tohex", |lua, args| {
        let value = bits(lua, args, 0)?;
        let digits = if args.get(1).is_nil() { 8 } else { bits(lua, args, 1)? as i32 };
        let (width, is_upper) = (digits.unsigned_abs().min(8) as usize, digits < 0);
        let text = if is_upper { format!("{value:08X}") } else { format!("{value:08x}") };
        one(Value::String(lua.create_string(&text[8 - width..])?))
    })?;
    Ok(table)
}
