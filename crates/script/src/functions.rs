//! Libraries of functions: their first line, and what they register.

use crate::library::{define, one};
use crate::script::{Flags, ScriptId};
use mlua::{Function, Lua, Result, Table, Value};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Most functions of a library.
const MAX_FUNCTIONS: usize = 1_000;
/// Most bytes of a function's name, and of its description.
const MAX_NAME: usize = 1_024;
const MAX_DESCRIPTION: usize = 64 << 10;

/// Why a name is refused, in Redis's words, for libraries and functions alike.
const WRONG_NAME: &str = "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long";

/// A library of functions.
#[derive(Debug)]
pub struct Library {
    /// The SHA-1 of its text.
    pub id: ScriptId,
    /// Its name, as its first line says it.
    pub name: String,
    /// The text, with its first line.
    pub text: Box<[u8]>,
    /// The functions that it registers, in that order.
    pub functions: Vec<LibraryFunction>,
}

/// A function of a library.
#[derive(Debug)]
pub struct LibraryFunction {
    /// Its name. Clients may write it in letters of either case.
    pub name: String,
    /// What it does, if the library says it.
    pub description: Option<Box<[u8]>>,
    /// Its flags.
    pub flags: Flags,
    is_quick: AtomicBool,
}

impl LibraryFunction {
    /// Notes whether it was quick when it ran last.
    pub fn note_pace(&self, is_quick: bool) {
        self.is_quick.store(is_quick, Ordering::Relaxed);
    }

    /// Whether it was quick when it ran last; `false` if it never ran.
    pub fn is_quick(&self) -> bool {
        self.is_quick.load(Ordering::Relaxed)
    }
}

/// The first line of a library.
#[derive(Debug, PartialEq, Eq)]
pub struct LibraryHead<'a> {
    /// The name.
    pub name: String,
    /// The rest of the text, from the end of the first line on.
    pub(crate) program: &'a [u8],
}

impl<'a> LibraryHead<'a> {
    /// Reads the first line of a text.
    ///
    /// # Errors
    /// It is malformed, in Redis's words.
    pub fn of(text: &'a [u8]) -> std::result::Result<Self, String> {
        let line = text.strip_prefix(b"#!").ok_or("Missing library metadata")?;
        let end = line.iter().position(|byte| *byte == b'\n').ok_or("Invalid library metadata")?;
        let mut words = words(&line[..end]).ok_or("Invalid library metadata")?.into_iter();
        // `#! name=x` has an empty engine.
        let engine = match line.first() {
            Some(first) if first.is_ascii_whitespace() => Vec::new(),
            _ => words.next().unwrap_or_default(),
        };
        let mut name = None;
        for word in words {
            match word.split_at_checked(5).filter(|(field, _)| field.eq_ignore_ascii_case(b"name=")) {
                Some(_) if name.is_some() => {
                    return Err("Invalid metadata value, name argument was given multiple times".into());
                }
                Some((_, value)) => name = Some(value.to_vec()),
                None => {
                    return Err(format!("Invalid metadata value given: {}", String::from_utf8_lossy(&word)));
                }
            }
        }
        let name = name.ok_or("Library name was not given")?;
        let name = String::from_utf8(name).ok().filter(|name| is_name(name)).ok_or(WRONG_NAME)?;
        if !engine.eq_ignore_ascii_case(b"lua") {
            return Err(format!("Engine '{}' not found", String::from_utf8_lossy(&engine)));
        }
        Ok(Self { name, program: &line[end..] })
    }
}

fn is_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Splits a line at blanks that are not in quotes; `None` if a quote is not closed, or not before a blank.
fn words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (mut words, mut rest) = (Vec::new(), line.trim_ascii());
    while !rest.is_empty() {
        let (mut word, mut quote) = (Vec::new(), None);
        loop {
            let Some((&byte, behind)) = rest.split_first() else {
                if quote.is_some() {
                    return None;
                }
                break;
            };
            if quote.is_none() && byte.is_ascii_whitespace() {
                break;
            }
            rest = behind;
            match quote {
                None if byte == b'"' || byte == b'\'' => quote = Some(byte),
                Some(open) if open == byte => {
                    if rest.first().is_some_and(|next| !next.is_ascii_whitespace()) {
                        return None;
                    }
                    quote = None;
                }
                Some(_) if byte == b'\\' => {
                    let (&escaped, behind) = rest.split_first()?;
                    rest = behind;
                    word.push(escaped);
                }
                None if byte == 0 => return None,
                _ => word.push(byte),
            }
        }
        words.push(word);
        rest = rest.trim_ascii_start();
    }
    Some(words)
}

/// What the library that is being loaded has registered; `None` if none is.
pub(crate) type Registering = Rc<RefCell<Option<Vec<(LibraryFunction, Function)>>>>;

/// Adds to the table of the sandbox's host what `redis.register_function` needs.
pub(crate) fn add(lua: &Lua, host: &Table, registering: &Registering) -> Result<()> {
    let own = Rc::clone(registering);
    define(lua, host, "is_registering", move |_, _| one(Value::Boolean(own.borrow().is_some())))?;
    let own = Rc::clone(registering);
    // `(name, callback, description, flags)`: why it is refused, or nothing.
    define(lua, host, "register", move |lua, args| {
        let Value::Function(callback) = args.get(1) else { return Err(args.wrong(1, "function expected")) };
        let name = args.text(lua, 0)?.to_string_lossy();
        let description: Option<Box<[u8]>> = match args.get(2) {
            Value::Nil => None,
            _ => Some(args.text(lua, 2)?.as_bytes().to_vec().into()),
        };
        let mut flags = Flags::default();
        let named = args.text(lua, 3)?;
        let named = named.as_bytes();
        let mut names = named.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        let are_known = names.all(|name| flags.set(name));
        let mut registering = own.borrow_mut();
        let refusal = match registering.as_mut() {
            _ if !is_name(&name) => Some(WRONG_NAME),
            _ if !are_known => Some("unknown flag given"),
            _ if description.as_ref().is_some_and(|text| text.len() > MAX_DESCRIPTION) => {
                Some("description argument given to redis.register_function is longer than 65536 bytes")
            }
            None => Some("redis.register_function can only be called on FUNCTION LOAD command"),
            Some(others) if others.iter().any(|(other, _)| other.name == *name) => {
                Some("Function already exists in the library")
            }
            Some(others) if others.len() >= MAX_FUNCTIONS => Some("a library has at most 1000 functions"),
            Some(others) => {
                let is_quick = AtomicBool::new(false);
                others.push((LibraryFunction { name, description, flags, is_quick }, callback.clone()));
                None
            }
        };
        one(refusal.map_or(Ok(Value::Nil), |text| lua.create_string(text).map(Value::String))?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_names_the_library() {
        let name = |text: &str| LibraryHead::of(text.as_bytes()).map(|head| head.name);
        for text in ["#!lua name=x\n", "#!LUA NAME=x\nreturn", "#!lua name=\"x\"\n", "#!lua  name='x'  \n"] {
            assert_eq!(name(text), Ok("x".into()), "{text}");
        }
        for (text, reason) in [
            ("return 1", "Missing library metadata"),
            ("#!lua name=x", "Invalid library metadata"),
            ("#!lua name=\"x\n", "Invalid library metadata"),
            ("#!lua name=\"x\"y\n", "Invalid library metadata"),
            ("#!lua\n", "Library name was not given"),
            ("#!lua name=x name=y\n", "Invalid metadata value, name argument was given multiple times"),
            ("#!lua name=x a=b\n", "Invalid metadata value given: a=b"),
            ("#!lua name=a-b\n", WRONG_NAME),
            ("#!lua name=\n", WRONG_NAME),
            ("#! name=x\n", "Engine '' not found"),
            ("#!js name=x\n", "Engine 'js' not found"),
        ] {
            assert_eq!(name(text), Err(reason.into()), "{text}");
        }
        let head = LibraryHead::of(b"#!lua name=x\nreturn").expect("a first line");
        assert_eq!(head.program, b"\nreturn", "lines keep their numbers");
    }
}
