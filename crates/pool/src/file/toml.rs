//! TOML parser; reports to a shape.

use super::error::{Fault, Problem, message};
use super::format::FileFormat;
use super::place::ParserPosition;
use super::shape::{Scalar, Shape};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Parses a text, and reports it to a shape. The parser limits the depth of the text, the shape the
/// depth of this recursion.
pub(super) fn read(text: &str, shape: &mut Shape) -> Result<(), Fault> {
    let table = DeTable::parse(text).map_err(|error| syntax(&error))?;
    map(table.get_ref(), place(&table), shape)
}

fn map(table: &DeTable<'_>, opened: ParserPosition, shape: &mut Shape) -> Result<(), Fault> {
    shape.open_map(opened)?;
    for (key, entry) in table {
        shape.key(key.get_ref(), place(key))?;
        value(entry, shape)?;
    }
    shape.close()
}

fn value(value: &Spanned<DeValue<'_>>, shape: &mut Shape) -> Result<(), Fault> {
    let at = place(value);
    match value.get_ref() {
        DeValue::Table(table) => map(table, at, shape),
        DeValue::Array(values) => {
            shape.open_list(at)?;
            values.iter().try_for_each(|element| self::value(element, shape))?;
            shape.close()
        }
        DeValue::String(text) => shape.scalar(Scalar::Text(text), at),
        DeValue::Integer(number) if number.radix() == 10 => shape.scalar(Scalar::Number(number.as_str()), at),
        DeValue::Integer(number) => shape.scalar(Scalar::Number(&number.to_string()), at),
        DeValue::Float(number) => shape.scalar(Scalar::Number(number.as_str()), at),
        DeValue::Boolean(_) => shape.scalar(Scalar::Boolean, at),
        DeValue::Datetime(moment) => shape.scalar(Scalar::Moment(&moment.to_string()), at),
    }
}

fn place<T>(spanned: &Spanned<T>) -> ParserPosition {
    ParserPosition::byte(spanned.span().start)
}

fn syntax(error: &toml::de::Error) -> Fault {
    let problem = Problem::Syntax { format: FileFormat::Toml, message: message(error.message()) };
    match error.span() {
        Some(span) => Fault::at(ParserPosition::byte(span.start), problem),
        None => Fault::nowhere(problem),
    }
}
