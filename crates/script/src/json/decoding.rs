//! Reads JSON. Errors name the place and what was there instead, in the words of lua-cjson.

use super::JsonSettings;
use crate::library::Failure;
use mlua::{Lua, LuaString, Table, Value};

/// Reads one value, and nothing behind it.
pub(super) fn decode(lua: &Lua, settings: &JsonSettings, text: &[u8]) -> Result<Value, Failure> {
    if matches!(text, [0, ..] | [_, 0, ..]) {
        return Err("JSON parser does not support UTF-16 or UTF-32".into());
    }
    let mut parser = Parser { lua, settings, text, at: 0 };
    let token = parser.next()?;
    let value = parser.value(token)?;
    match parser.next()? {
        (Token::End, _) => Ok(value),
        found => Err(unexpected("the end", &found)),
    }
}

enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    Text(Vec<u8>),
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Wrong(&'static str),
}

/// A token and where it begins.
type Placed = (Token, usize);

fn unexpected(expected: &str, (token, at): &Placed) -> Failure {
    let found = match token {
        Token::ObjectBegin => "T_OBJ_BEGIN",
        Token::ObjectEnd => "T_OBJ_END",
        Token::ArrayBegin => "T_ARR_BEGIN",
        Token::ArrayEnd => "T_ARR_END",
        Token::Text(_) => "T_STRING",
        Token::Number(_) => "T_NUMBER",
        Token::Boolean(_) => "T_BOOLEAN",
        Token::Null => "T_NULL",
        Token::Colon => "T_COLON",
        Token::Comma => "T_COMMA",
        Token::End => "T_END",
        Token::Wrong(what) => what,
    };
    Failure::Text(format!("Expected {expected} but found {found} at character {}", at + 1))
}

struct Parser<'a> {
    lua: &'a Lua,
    settings: &'a JsonSettings,
    text: &'a [u8],
    at: usize,
}

/// An array or an object that is not complete.
enum Open {
    /// With the index of its last element.
    Array(Table, i64),
    /// With the key whose value comes next.
    Object(Table, LuaString),
}

impl Parser<'_> {
    /// Reads the value that begins with a token. What is in each other is kept in a list: a recursive function
    /// would overflow the stack of a small thread.
    fn value(&mut self, first: Placed) -> Result<Value, Failure> {
        let (mut open, mut token) = (Vec::new(), first);
        loop {
            let mut value = match token {
                (Token::Text(text), _) => Value::String(self.lua.create_string(text)?),
                (Token::Number(number), _) => Value::Number(number),
                (Token::Boolean(value), _) => Value::Boolean(value),
                (Token::Null, _) => Value::NULL,
                (Token::ArrayBegin, _) => {
                    let table = self.begin(&open)?;
                    token = self.next()?;
                    if !matches!(token.0, Token::ArrayEnd) {
                        open.push(Open::Array(table, 0));
                        continue;
                    }
                    Value::Table(table)
                }
                (Token::ObjectBegin, _) => {
                    let table = self.begin(&open)?;
                    token = self.next()?;
                    if !matches!(token.0, Token::ObjectEnd) {
                        let key = self.key(token)?;
                        open.push(Open::Object(table, key));
                        token = self.next()?;
                        continue;
                    }
                    Value::Table(table)
                }
                other => return Err(unexpected("value", &other)),
            };
            // The value may complete what it is in, and that what it is in.
            loop {
                let Some(innermost) = open.pop() else { return Ok(value) };
                token = self.next()?;
                match innermost {
                    Open::Array(table, last) => {
                        table.raw_set(last + 1, value)?;
                        match token.0 {
                            Token::ArrayEnd => value = Value::Table(table),
                            Token::Comma => {
                                open.push(Open::Array(table, last + 1));
                                break;
                            }
                            _ => return Err(unexpected("comma or array end", &token)),
                        }
                    }
                    Open::Object(table, key) => {
                        table.raw_set(key, value)?;
                        match token.0 {
                            Token::ObjectEnd => value = Value::Table(table),
                            Token::Comma => {
                                let token = self.next()?;
                                let key = self.key(token)?;
                                open.push(Open::Object(table, key));
                                break;
                            }
                            _ => return Err(unexpected("comma or object end", &token)),
                        }
                    }
                }
            }
            token = self.next()?;
        }
    }

    /// Creates the table of an array or an object inside of others.
    fn begin(&self, open: &[Open]) -> Result<Table, Failure> {
        let depth = open.len() as i64 + 1;
        if depth > self.settings.decode_depth {
            let at = self.at;
            return Err(format!("Found too many nested data structures ({depth}) at character {at}").into());
        }
        Ok(self.lua.create_table()?)
    }

    /// Reads a key, whose token is read, and the colon behind it.
    fn key(&mut self, token: Placed) -> Result<LuaString, Failure> {
        let Token::Text(key) = token.0 else { return Err(unexpected("object key string", &token)) };
        let colon = self.next()?;
        if matches!(colon.0, Token::Colon) {
            Ok(self.lua.create_string(key)?)
        } else {
            Err(unexpected("colon", &colon))
        }
    }

    fn next(&mut self) -> Result<Placed, Failure> {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        let start = self.at;
        let Some(&first) = self.text.get(start) else { return Ok((Token::End, start)) };
        let single = match first {
            b'{' => Some(Token::ObjectBegin),
            b'}' => Some(Token::ObjectEnd),
            b'[' => Some(Token::ArrayBegin),
            b']' => Some(Token::ArrayEnd),
            b':' => Some(Token::Colon),
            b',' => Some(Token::Comma),
            _ => None,
        };
        if let Some(token) = single {
            self.at += 1;
            return Ok((token, start));
        }
        let token = match first {
            b'"' => return Ok(self.string(start)),
            b't' if self.skip(b"true") => Token::Boolean(true),
            b'f' if self.skip(b"false") => Token::Boolean(false),
            b'n' if self.skip(b"null") => Token::Null,
            b'-' | b'0'..=b'9' | b'+' | b'.' | b'i' | b'I' | b'n' | b'N' => self.number(),
            _ => Token::Wrong("invalid token"),
        };
        Ok((token, start))
    }

    fn skip(&mut self, word: &[u8]) -> bool {
        let is_there = self.text[self.at..].starts_with(word);
        self.at += if is_there { word.len() } else { 0 };
        is_there
    }

    /// A number: also in hexadecimal, infinite or none, where the settings allow that.
    fn number(&mut self) -> Token {
        let rest = &self.text[self.at..];
        let body = rest.strip_prefix(b"-").or_else(|| rest.strip_prefix(b"+")).unwrap_or(rest);
        let is_hexadecimal = matches!(body, [b'0', b'x' | b'X', ..]);
        let is_word = matches!(body.first(), Some(b'i' | b'I' | b'n' | b'N'));
        let has_zero = matches!(body, [b'0', b'0'..=b'9', ..]);
        let is_odd = rest[0] == b'+' || is_hexadecimal || is_word || has_zero || body.first() == Some(&b'.');
        if is_odd && !self.settings.decodes_invalid {
            return if is_word { Token::Wrong("invalid token") } else { Token::Wrong("invalid number") };
        }
        let sign = rest.len() - body.len();
        let is_negative = rest[0] == b'-';
        let (number, len) = if is_hexadecimal {
            let digits = body[2..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
            let value = body[2..2 + digits].iter().fold(0.0, |value, byte| {
                value * 16.0 + f64::from(char::from(*byte).to_digit(16).unwrap_or(0))
            });
            (value, if digits == 0 { 1 } else { 2 + digits })
        } else if is_word {
            let word = |name: &str| {
                body.get(..name.len()).is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()))
            };
            match () {
                () if word("infinity") => (f64::INFINITY, 8),
                () if word("inf") => (f64::INFINITY, 3),
                () if word("nan") => (f64::NAN, 3),
                () => return Token::Wrong("invalid token"),
            }
        } else {
            let len = decimal_length(body);
            let text = std::str::from_utf8(&body[..len]).unwrap_or("");
            let Ok(number) = text.trim_end_matches('.').parse::<f64>() else {
                return Token::Wrong("invalid number");
            };
            (number, len)
        };
        self.at += sign + len;
        Token::Number(if is_negative { -number } else { number })
    }

    fn string(&mut self, start: usize) -> Placed {
        let mut out = Vec::new();
        let mut at = start + 1;
        loop {
            match self.text.get(at) {
                None => return (Token::Wrong("unexpected end of string"), at),
                Some(b'"') => {
                    self.at = at + 1;
                    return (Token::Text(out), start);
                }
                Some(b'\\') => {
                    let escaped = match self.text.get(at + 1) {
                        Some(b'"') => b'"',
                        Some(b'\\') => b'\\',
                        Some(b'/') => b'/',
                        Some(b'b') => 0x08,
                        Some(b'f') => 0x0c,
                        Some(b'n') => b'\n',
                        Some(b'r') => b'\r',
                        Some(b't') => b'\t',
                        Some(b'u') => {
                            let Some(len) = unicode(&self.text[at..], &mut out) else {
                                return (Token::Wrong("invalid unicode escape code"), at);
                            };
                            at += len;
                            continue;
                        }
                        _ => return (Token::Wrong("invalid escape code"), at),
                    };
                    out.push(escaped);
                    at += 2;
                }
                Some(byte) => {
                    out.push(*byte);
                    at += 1;
                }
            }
        }
    }
}

/// Length of the decimal number at the beginning.
fn decimal_length(text: &[u8]) -> usize {
    let digits = |from: usize| text[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut len = digits(0);
    if text.get(len) == Some(&b'.') {
        len += 1 + digits(len + 1);
    }
    if matches!(text.get(len), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(len + 1), Some(b'+' | b'-')));
        let exponent = digits((len + 1 + sign).min(text.len()));
        if exponent > 0 {
            len += 1 + sign + exponent;
        }
    }
    len
}

fn hexadecimal(text: &[u8]) -> Option<u32> {
    let digits = text.get(2..6).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Appends the character of `\uXXXX`, or of a pair of them, as UTF-8. Returns the bytes that it takes.
fn unicode(text: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let code = hexadecimal(text)?;
    let (code, len) = match code {
        0xd800..0xdc00 => {
            let low = text.get(6..).filter(|low| low.starts_with(b"\\u")).and_then(hexadecimal)?;
            let low = low.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
            (0x1_0000 + ((code - 0xd800) << 10) + low, 12)
        }
        0xdc00..0xe000 => return None,
        code => (code, 6),
    };
    out.extend_from_slice(char::from_u32(code)?.encode_utf8(&mut [0; 4]).as_bytes());
    Some(len)
}
