//! Functions of libraries: their arguments, and their errors as Lua writes them.

use crate::trampoline::{OK, RAISE_AT, raising};
use mlua::{Function, IntoLuaMulti, Lua, LuaString, MultiValue, Result, Table, Value};

/// Why a function of a library fails.
pub(crate) enum Failure {
    /// An error of the function, raised with the position of its caller.
    Text(String),
    /// An error of the interpreter, as for want of memory.
    Lua(mlua::Error),
}

impl From<mlua::Error> for Failure {
    fn from(error: mlua::Error) -> Self {
        Self::Lua(error)
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Failure {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

/// What a function of a library returns.
pub(crate) type Returned = std::result::Result<MultiValue, Failure>;

/// Creates a function that raises its failures.
pub(crate) fn function(
    lua: &Lua,
    name: &'static str,
    work: impl Fn(&Lua, &Args) -> Returned + 'static,
) -> Result<Function> {
    let guarded = move |lua: &Lua, values: MultiValue| -> Result<MultiValue> {
        let (code, mut values) = match work(lua, &Args { name, values: values.into_iter().collect() }) {
            Ok(values) => (OK, values),
            Err(Failure::Text(text)) => (RAISE_AT, text.into_lua_multi(lua)?),
            Err(Failure::Lua(error)) => return Err(error),
        };
        values.push_front(Value::Integer(code.into()));
        Ok(values)
    };
    raising(lua, lua.create_function(guarded)?)
}

/// Adds a function to a table.
pub(crate) fn define(
    lua: &Lua,
    table: &Table,
    name: &'static str,
    work: impl Fn(&Lua, &Args) -> Returned + 'static,
) -> Result<()> {
    table.raw_set(name, function(lua, name, work)?)
}

/// One value as the result of a function.
pub(crate) fn one(value: Value) -> Returned {
    Ok(MultiValue::from_iter([value]))
}

/// The arguments of a call.
pub(crate) struct Args {
    name: &'static str,
    values: Vec<Value>,
}

impl Args {
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// The argument at a position, from 0 on; `nil` if there is none.
    pub(crate) fn get(&self, at: usize) -> &Value {
        self.values.get(at).unwrap_or(&Value::Nil)
    }

    pub(crate) fn all(&self) -> &[Value] {
        &self.values
    }

    /// The failure that the argument does not fit.
    pub(crate) fn wrong(&self, at: usize, reason: &str) -> Failure {
        Failure::Text(format!("bad argument #{} to '{}' ({reason})", at + 1, self.name))
    }

    fn expected(&self, at: usize, what: &str) -> Failure {
        let got = self.values.get(at).map_or("no value", type_name);
        self.wrong(at, &format!("{what} expected, got {got}"))
    }

    /// A string, or a number as one.
    pub(crate) fn text(&self, lua: &Lua, at: usize) -> std::result::Result<LuaString, Failure> {
        match self.get(at) {
            Value::String(text) => Ok(text.clone()),
            number @ (Value::Integer(_) | Value::Number(_)) => {
                Ok(lua.coerce_string(number.clone())?.ok_or_else(|| self.expected(at, "string"))?)
            }
            _ => Err(self.expected(at, "string")),
        }
    }

    /// A number, or a string that is one.
    pub(crate) fn number(&self, lua: &Lua, at: usize) -> std::result::Result<f64, Failure> {
        match self.get(at) {
            Value::Integer(integer) => Ok(*integer as f64),
            Value::Number(number) => Ok(*number),
            text @ Value::String(_) => {
                Ok(lua.coerce_number(text.clone())?.ok_or_else(|| self.expected(at, "number"))?)
            }
            _ => Err(self.expected(at, "number")),
        }
    }

    /// An integer; a fraction is cut off.
    pub(crate) fn integer(&self, lua: &Lua, at: usize) -> std::result::Result<i64, Failure> {
        self.number(lua, at).map(|number| number as i64)
    }

    /// As [`Args::integer`], or `default` if there is no argument.
    pub(crate) fn integer_or(&self, lua: &Lua, at: usize, default: i64) -> std::result::Result<i64, Failure> {
        if self.get(at).is_nil() { Ok(default) } else { self.integer(lua, at) }
    }
}

/// The name of a value's type in Lua.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Nil => "nil",
        Value::Boolean(_) => "boolean",
        Value::Integer(_) | Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Table(_) => "table",
        Value::Function(_) => "function",
        Value::Thread(_) => "thread",
        _ => "userdata",
    }
}
