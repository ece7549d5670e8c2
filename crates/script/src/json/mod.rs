//! `cjson`: values as JSON, as lua-cjson 2.1 reads and writes them.

mod decoding;
mod encoding;

use crate::library::{Args, Failure, define, one};
use crate::state::RunState;
use mlua::{Lua, Result, Table, Value};
use std::cell::RefCell;
use std::rc::Rc;

/// How invalid numbers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Invalid {
    Refused,
    Written,
    Null,
}

/// Settings of a copy of the library.
#[derive(Debug, Clone)]
pub(crate) struct JsonSettings {
    /// Whether excessively sparse arrays are written as objects.
    converts_sparse: bool,
    sparse_ratio: i64,
    sparse_safe: i64,
    encode_depth: i64,
    decode_depth: i64,
    invalid: Invalid,
    decodes_invalid: bool,
    precision: usize,
    keeps_buffer: bool,
}

impl Default for JsonSettings {
    fn default() -> Self {
        Self {
            converts_sparse: false,
            sparse_ratio: 2,
            sparse_safe: 10,
            encode_depth: 1_000,
            decode_depth: 1_000,
            invalid: Invalid::Refused,
            decodes_invalid: true,
            precision: 14,
            keeps_buffer: true,
        }
    }
}

type Settings = Rc<RefCell<JsonSettings>>;

/// Deepest nesting that a script may allow.
const MAX_DEPTH: i64 = 1_000;

/// Creates a copy of the library, and its settings.
pub(crate) fn library(lua: &Lua, state: &Rc<RunState>) -> Result<(Table, Settings)> {
    let settings = Settings::default();
    let table = lua.create_table()?;
    table.raw_set("null", Value::NULL)?;
    table.raw_set("_NAME", "cjson")?;
    table.raw_set("_VERSION", "2.1.0")?;
    let (own, run) = (Rc::clone(&settings), Rc::clone(state));
    define(lua, &table, "encode", move |lua, args| {
        if args.len() != 1 {
            return Err(args.wrong(0, "expected 1 argument"));
        }
        let text = encoding::encode(lua, &own.borrow(), &run, args.get(0))?;
        one(Value::String(lua.create_string(text)?))
    })?;
    let own = Rc::clone(&settings);
    define(lua, &table, "decode", move |lua, args| {
        if args.len() != 1 {
            return Err(args.wrong(0, "expected 1 argument"));
        }
        let text = args.text(lua, 0)?;
        one(decoding::decode(lua, &own.borrow(), &text.as_bytes())?)
    })?;
    let run = Rc::clone(state);
    define(lua, &table, "new", move |lua, _| one(Value::Table(library(lua, &run)?.0)))?;
    add_settings(lua, &table, &settings)?;
    Ok((table, settings))
}

/// Adds the functions that change and tell the settings.
fn add_settings(lua: &Lua, table: &Table, settings: &Settings) -> Result<()> {
    fn limited(lua: &Lua, args: &Args, at: usize, most: i64, now: i64) -> std::result::Result<i64, Failure> {
        if args.get(at).is_nil() {
            return Ok(now);
        }
        let value = args.integer(lua, at)?;
        if (0..=most).contains(&value) {
            Ok(value)
        } else {
            Err(args.wrong(at, &format!("expected integer between 1 and {most}")))
        }
    }
    let own = Rc::clone(settings);
    define(lua, table, "encode_sparse_array", move |lua, args| {
        let mut own = own.borrow_mut();
        if let Value::Boolean(converts) = args.get(0) {
            own.converts_sparse = *converts;
        }
        own.sparse_ratio = limited(lua, args, 1, i32::MAX.into(), own.sparse_ratio)?;
        own.sparse_safe = limited(lua, args, 2, i32::MAX.into(), own.sparse_safe)?;
        let (ratio, safe) = (Value::Integer(own.sparse_ratio), Value::Integer(own.sparse_safe));
        Ok([Value::Boolean(own.converts_sparse), ratio, safe].into_iter().collect())
    })?;
    let own = Rc::clone(settings);
    define(lua, table, "encode_max_depth", move |lua, args| {
        let mut own = own.borrow_mut();
        own.encode_depth = limited(lua, args, 0, MAX_DEPTH, own.encode_depth)?;
        one(Value::Integer(own.encode_depth))
    })?;
    let own = Rc::clone(settings);
    define(lua, table, "decode_max_depth", move |lua, args| {
        let mut own = own.borrow_mut();
        own.decode_depth = limited(lua, args, 0, MAX_DEPTH, own.decode_depth)?;
        one(Value::Integer(own.decode_depth))
    })?;
    let own = Rc::clone(settings);
    define(lua, table, "encode_number_precision", move |lua, args| {
        let mut own = own.borrow_mut();
        own.precision = limited(lua, args, 0, 14, own.precision as i64)?.max(1) as usize;
        one(Value::Integer(own.precision as i64))
    })?;
    let own = Rc::clone(settings);
    define(lua, table, "encode_keep_buffer", move |_, args| {
        let mut own = own.borrow_mut();
        if let Value::Boolean(keeps) = args.get(0) {
            own.keeps_buffer = *keeps;
        }
        one(Value::Boolean(own.keeps_buffer))
    })?;
    let own = Rc::clone(settings);
    define(lua, table, "encode_invalid_numbers", move |lua, args| {
        let mut own = own.borrow_mut();
        match args.get(0) {
            Value::Nil => {}
            Value::Boolean(writes) => own.invalid = if *writes { Invalid::Written } else { Invalid::Refused },
            Value::String(word) if word.as_bytes() == *b"null" => own.invalid = Invalid::Null,
            _ => return Err(args.wrong(0, "invalid option")),
        }
        one(match own.invalid {
            Invalid::Refused => Value::Boolean(false),
            Invalid::Written => Value::Boolean(true),
            Invalid::Null => Value::String(lua.create_string("null")?),
        })
    })?;
    let own = Rc::clone(settings);
    define(lua, table, "decode_invalid_numbers", move |_, args| {
        let mut own = own.borrow_mut();
        if let Value::Boolean(decodes) = args.get(0) {
            own.decodes_invalid = *decodes;
        }
        one(Value::Boolean(own.decodes_invalid))
    })
}
