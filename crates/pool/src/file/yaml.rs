//! YAML parser; reports to a shape. Aliases are refused, so a text cannot expand.

use super::decimal::Decimal;
use super::error::{Fault, Problem, clipped, message};
use super::format::FileFormat;
use super::place::ParserPosition;
use super::shape::{Scalar, Shape};
use granit_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Tag};

pub(super) fn read(text: &str, shape: &mut Shape) -> Result<(), Fault> {
    let mut documents = 0_usize;
    for next in Parser::new_from_str(text) {
        let (event, span) = next.map_err(|error| syntax(&error))?;
        let place = place(&span.start);
        let tagged = || self::place(&span.tag_span().unwrap_or(span).start);
        match event {
            Event::DocumentStart(..) if documents > 0 => {
                return Err(Fault::at(place, Problem::SecondDocument));
            }
            Event::DocumentStart(..) => documents += 1,
            Event::Alias(_) => return Err(Fault::at(place, Problem::Alias)),
            Event::Scalar(value, style, _, tag) => {
                let text = is_text(tag.as_deref(), tagged)? || style != ScalarStyle::Plain;
                if shape.expects_key() {
                    shape.key(&value, place)?;
                } else {
                    shape.scalar(if text { Scalar::Text(&value) } else { plain(&value) }, place)?;
                }
            }
            Event::MappingStart(.., tag) => {
                untagged(tag.as_deref(), tagged)?;
                no_key(shape, place)?;
                shape.open_map(place)?;
            }
            Event::SequenceStart(.., tag) => {
                untagged(tag.as_deref(), tagged)?;
                no_key(shape, place)?;
                shape.open_list(place)?;
            }
            Event::MappingEnd | Event::SequenceEnd => shape.close()?,
            // Ends of documents and of the text, and comments if the parser reports them.
            _ => {}
        }
    }
    Ok(())
}

/// Interprets an unquoted scalar by YAML's core schema. Numbers with other bases are numbers too,
/// but cannot be used.
fn plain(text: &str) -> Scalar<'_> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Scalar::Null,
        "true" | "True" | "TRUE" | "false" | "False" | "FALSE" => Scalar::Boolean,
        ".nan" | ".NaN" | ".NAN" => Scalar::Number(text),
        _ if matches!(unsigned, ".inf" | ".Inf" | ".INF") => Scalar::Number(text),
        _ if Decimal::is_spelled(text) || with_base(text) => Scalar::Number(text),
        _ => Scalar::Text(text),
    }
}

fn with_base(text: &str) -> bool {
    let digits = |prefix, base| {
        text.strip_prefix(prefix)
            .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|digit| digit.is_digit(base)))
    };
    digits("0x", 16) || digits("0o", 8)
}

/// Returns whether a tag makes a scalar text.
fn is_text(tag: Option<&Tag>, place: impl Fn() -> ParserPosition) -> Result<bool, Fault> {
    match tag {
        Some(tag) if tag.is_yaml_core_schema_tag("str") => Ok(true),
        _ => untagged(tag, place).map(|()| false),
    }
}

fn untagged(tag: Option<&Tag>, place: impl Fn() -> ParserPosition) -> Result<(), Fault> {
    match tag {
        Some(tag) => Err(Fault::at(place(), Problem::Tag { tag: clipped(&tag.to_string()) })),
        None => Ok(()),
    }
}

/// Refuses a map or a list as a key.
fn no_key(shape: &Shape, place: ParserPosition) -> Result<(), Fault> {
    if !shape.expects_key() {
        return Ok(());
    }
    let found = "a map or a list".into();
    Err(Fault::at(place, Problem::WrongKind { what: "a key", expected: "text", found }))
}

fn place(marker: &Marker) -> ParserPosition {
    ParserPosition::line_column(marker.line(), marker.col() + 1)
}

fn syntax(error: &ScanError) -> Fault {
    let message = message(&error.info());
    Fault::at(place(error.marker()), Problem::Syntax { format: FileFormat::Yaml, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_without_quotes_are_what_the_core_schema_makes_of_them() {
        for text in ["0", "-1", "+.5", "1e3", "007", "0x1F", "0o17", "-.inf", ".NaN"] {
            assert!(matches!(plain(text), Scalar::Number(_)), "{text}");
        }
        for text in ["no", "on", "12.5%", "1_000", "100-euro", "0x", "0b1", "nan", "1.2.3", "12:30"] {
            assert!(matches!(plain(text), Scalar::Text(_)), "{text}");
        }
        assert!(matches!(plain("~"), Scalar::Null));
        assert!(matches!(plain("False"), Scalar::Boolean));
    }
}
