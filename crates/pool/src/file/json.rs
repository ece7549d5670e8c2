//! JSON parser; reports to a shape. Numbers are passed as text, so no digit is lost.

use super::error::{Fault, Problem, message};
use super::format::FileFormat;
use super::place::ParserPosition;
use super::shape::{Scalar, Shape};
use serde_core::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

pub(super) fn read(text: &str, shape: &mut Shape) -> Result<(), Fault> {
    // This checks the syntax of the whole text, however deeply nested. After it, only escapes in
    // strings can be invalid.
    let whole: &RawValue = serde_json::from_str(text).map_err(|error| syntax(text, &error))?;
    Reader { text, shape, fault: None }.value(whole)
}

struct Reader<'t, 's> {
    text: &'t str,
    shape: &'s mut Shape,
    /// Fault that ends the parsing, while it passes through serde.
    fault: Option<Fault>,
}

impl<'t> Reader<'t, '_> {
    /// Reports a value. The shape ends the recursion before it is deep.
    fn value(&mut self, value: &'t RawValue) -> Result<(), Fault> {
        let (spelled, place) = (value.get(), self.place(value));
        match spelled.as_bytes().first() {
            Some(b'{') => {
                self.shape.open_map(place)?;
                let read = serde_json::Deserializer::from_str(spelled).deserialize_map(&mut *self);
                self.closed(read, place)
            }
            Some(b'[') => {
                self.shape.open_list(place)?;
                let read = serde_json::Deserializer::from_str(spelled).deserialize_seq(&mut *self);
                self.closed(read, place)
            }
            Some(b'"') => self.shape.scalar(Scalar::Text(&unescaped(value, place)?), place),
            Some(b't' | b'f') => self.shape.scalar(Scalar::Boolean, place),
            Some(b'n') => self.shape.scalar(Scalar::Null, place),
            _ => self.shape.scalar(Scalar::Number(spelled), place),
        }
    }

    fn key(&mut self, key: &'t RawValue) -> Result<(), Fault> {
        let place = self.place(key);
        self.shape.key(&unescaped(key, place)?, place)
    }

    fn closed(&mut self, read: serde_json::Result<()>, place: ParserPosition) -> Result<(), Fault> {
        match read {
            Ok(()) => self.shape.close(),
            Err(error) => Err(self.fault.take().unwrap_or_else(|| malformed(place, &error))),
        }
    }

    fn place(&self, piece: &RawValue) -> ParserPosition {
        let offset = (piece.get().as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        debug_assert!(offset < self.text.len(), "values are borrowed from the text");
        ParserPosition::byte(offset)
    }

    /// Stores a fault, and returns the error that ends the parser.
    fn end<E: Error>(&mut self, fault: Fault) -> E {
        self.fault = Some(fault);
        E::custom("the reading has ended")
    }
}

impl<'t> Visitor<'t> for &mut Reader<'t, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a map or a list")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            self.key(key).and_then(|()| self.value(value)).map_err(|fault| self.end(fault))?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'t>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(value) = list.next_element::<&RawValue>()? {
            self.value(value).map_err(|fault| self.end(fault))?;
        }
        Ok(())
    }
}

/// Unescapes a string. Most have no escapes and are borrowed from the text.
fn unescaped(string: &RawValue, place: ParserPosition) -> Result<Cow<'_, str>, Fault> {
    let inner = string.get().strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    match inner {
        Some(inner) if !inner.contains('\\') => Ok(Cow::Borrowed(inner)),
        _ => serde_json::from_str(string.get()).map(Cow::Owned).map_err(|error| malformed(place, &error)),
    }
}

fn syntax(text: &str, error: &serde_json::Error) -> Fault {
    let line = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
    malformed(ParserPosition::byte(line + error.column().saturating_sub(1)), error)
}

fn malformed(place: ParserPosition, error: &serde_json::Error) -> Fault {
    let said = error.to_string();
    // The position in the message is relative to the start of the nested text.
    let said = said.rsplit_once(" at line ").map_or(said.as_str(), |(said, _)| said);
    Fault::at(place, Problem::Syntax { format: FileFormat::Json, message: message(said) })
}
