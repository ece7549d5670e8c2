//! Replies as text: for people, raw, or as JSON.

use std::fmt::Write;
use tidemark_server::resp::Value;

/// How replies are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// With types, quoted strings, and numbered and indented aggregates.
    People,
    /// Only the bytes, one element a line.
    Raw,
    /// One JSON document per reply.
    Json,
}

/// Returns the reply's text without a final line break.
pub(super) fn print(value: &Value, format: Format) -> Vec<u8> {
    match format {
        Format::People => {
            let mut out = String::new();
            people(&mut out, value, 0);
            out.into_bytes()
        }
        Format::Raw => {
            let mut out = Vec::new();
            raw(&mut out, value);
            out
        }
        Format::Json => {
            let mut out = String::new();
            json(&mut out, value);
            out.into_bytes()
        }
    }
}

/// Writes `value` at the current position; `indent` is the column where its following lines start.
fn people(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Simple(text) | Value::BigNumber(text) | Value::Verbatim { text, .. } => {
            out.push_str(&String::from_utf8_lossy(text));
        }
        Value::Error(text) => {
            out.push_str("(error) ");
            out.push_str(&String::from_utf8_lossy(text));
        }
        Value::Integer(number) => put(out, format_args!("(integer) {number}")),
        Value::Bulk(bytes) => quote(out, bytes),
        Value::Null => out.push_str("(nil)"),
        Value::Boolean(flag) => put(out, format_args!("({flag})")),
        Value::Double(number) => put(out, format_args!("(double) {number}")),
        Value::Array(elements) => numbered(out, elements, indent, ')', "array"),
        Value::Set(elements) => numbered(out, elements, indent, '~', "set"),
        Value::Push(elements) => numbered(out, elements, indent, '>', "push"),
        Value::Map(pairs) => numbered_pairs(out, pairs, indent),
        Value::Attributed { value, .. } => people(out, value, indent),
    }
}

fn numbered(out: &mut String, elements: &[Value], indent: usize, mark: char, kind: &str) {
    if elements.is_empty() {
        put(out, format_args!("(empty {kind})"));
    }
    let width = digits(elements.len());
    for (index, element) in elements.iter().enumerate() {
        start_item(out, index, indent, width, mark);
        people(out, element, indent + width + 2);
    }
}

fn numbered_pairs(out: &mut String, pairs: &[(Value, Value)], indent: usize) {
    if pairs.is_empty() {
        out.push_str("(empty hash)");
    }
    let width = digits(pairs.len());
    for (index, (name, value)) in pairs.iter().enumerate() {
        start_item(out, index, indent, width, '#');
        people(out, name, indent + width + 2);
        out.push_str(" => ");
        people(out, value, indent + width + 2);
    }
}

/// Starts an item of an aggregate. The first item continues its line: `1) 1) "a"`.
fn start_item(out: &mut String, index: usize, indent: usize, width: usize, mark: char) {
    if index > 0 {
        put(out, format_args!("\n{:indent$}", ""));
    }
    put(out, format_args!("{:>width$}{mark} ", index + 1));
}

fn digits(count: usize) -> usize {
    count.to_string().len()
}

/// Quotes and escapes `bytes`; the prompt reads the same bytes back.
fn quote(out: &mut String, bytes: &[u8]) {
    out.push('"');
    for byte in bytes {
        match byte {
            b'"' | b'\\' => put(out, format_args!("\\{}", char::from(*byte))),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            7 => out.push_str("\\a"),
            8 => out.push_str("\\b"),
            b' '..=b'~' => out.push(char::from(*byte)),
            other => put(out, format_args!("\\x{other:02x}")),
        }
    }
    out.push('"');
}

fn raw(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Simple(text)
        | Value::Error(text)
        | Value::Bulk(text)
        | Value::BigNumber(text)
        | Value::Verbatim { text, .. } => out.extend_from_slice(text),
        Value::Integer(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::Null => {}
        Value::Boolean(flag) => out.extend_from_slice(if *flag { b"true" } else { b"false" }),
        Value::Double(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::Array(elements) | Value::Set(elements) | Value::Push(elements) => {
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.push(b'\n');
                }
                raw(out, element);
            }
        }
        Value::Map(pairs) => {
            for (index, (name, value)) in pairs.iter().enumerate() {
                if index > 0 {
                    out.push(b'\n');
                }
                raw(out, name);
                out.push(b' ');
                raw(out, value);
            }
        }
        Value::Attributed { value, .. } => raw(out, value),
    }
}

fn json(out: &mut String, value: &Value) {
    match value {
        Value::Simple(text) | Value::Bulk(text) | Value::Verbatim { text, .. } => json_text(out, text),
        Value::Error(text) => {
            out.push_str("{\"error\":");
            json_text(out, text);
            out.push('}');
        }
        Value::Integer(number) => put(out, format_args!("{number}")),
        Value::BigNumber(digits) => out.push_str(json_number(digits).as_str()),
        Value::Null => out.push_str("null"),
        Value::Boolean(flag) => put(out, format_args!("{flag}")),
        // JSON has no infinities and no NaN.
        Value::Double(number) if number.is_finite() => put(out, format_args!("{number}")),
        Value::Double(number) => json_text(out, number.to_string().as_bytes()),
        Value::Array(elements) | Value::Set(elements) | Value::Push(elements) => {
            out.push('[');
            separated(out, elements, json);
            out.push(']');
        }
        Value::Map(pairs) => {
            out.push('{');
            separated(out, pairs, |out, (name, value)| {
                // A name must be a string; any other value is named by its raw text.
                let mut text = Vec::new();
                raw(&mut text, name);
                json_text(out, &text);
                out.push(':');
                json(out, value);
            });
            out.push('}');
        }
        Value::Attributed { value, .. } => json(out, value),
    }
}

fn separated<Item>(out: &mut String, items: &[Item], mut write: impl FnMut(&mut String, &Item)) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(out, item);
    }
}

fn json_text(out: &mut String, bytes: &[u8]) {
    out.push_str(&serde_json::Value::from(String::from_utf8_lossy(bytes)).to_string());
}

/// Returns the number as JSON, which allows neither a plus sign nor leading zeros.
fn json_number(digits: &[u8]) -> String {
    let text = String::from_utf8_lossy(digits);
    let (sign, magnitude) = match text.strip_prefix('-') {
        Some(magnitude) => ("-", magnitude),
        None => ("", text.strip_prefix('+').unwrap_or(&text)),
    };
    let magnitude = magnitude.trim_start_matches('0');
    if magnitude.is_empty() { "0".to_owned() } else { format!("{sign}{magnitude}") }
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use super::{Format, print};
    use crate::cli::tokens;
    use proptest::prelude::*;
    use tidemark_server::resp::Value;

    fn bulk(text: &str) -> Value {
        Value::Bulk(text.as_bytes().to_vec())
    }

    fn text(value: &Value, format: Format) -> String {
        String::from_utf8(print(value, format)).unwrap()
    }

    fn nested() -> Value {
        let pair = Value::Array(vec![bulk("a"), Value::Integer(2)]);
        let map = Value::Map(vec![(bulk("name"), pair.clone()), (Value::Integer(7), Value::Null)]);
        Value::Array(vec![pair, map, Value::Set(vec![]), Value::Boolean(true)])
    }

    #[test]
    fn people_see_types_numbers_and_nesting() {
        let expected = "\
1) 1) \"a\"
   2) (integer) 2
2) 1# \"name\" => 1) \"a\"
      2) (integer) 2
   2# (integer) 7 => (nil)
3) (empty set)
4) (true)";
        assert_eq!(text(&nested(), Format::People), expected);
    }

    #[test]
    fn numbers_are_aligned() {
        let ten = Value::Array((0..10).map(Value::Integer).collect());
        let printed = text(&ten, Format::People);
        assert!(printed.starts_with(" 1) (integer) 0\n"), "{printed}");
        assert!(printed.ends_with("\n10) (integer) 9"), "{printed}");
    }

    #[test]
    fn every_scalar_has_its_form() {
        let cases = [
            (Value::Simple(b"OK".to_vec()), "OK", "OK", "\"OK\""),
            (Value::Error(b"ERR x".to_vec()), "(error) ERR x", "ERR x", "{\"error\":\"ERR x\"}"),
            (bulk("a\"\n"), "\"a\\\"\\n\"", "a\"\n", "\"a\\\"\\n\""),
            (Value::Double(1.5), "(double) 1.5", "1.5", "1.5"),
            (Value::Double(f64::INFINITY), "(double) inf", "inf", "\"inf\""),
            (Value::BigNumber(b"+0012".to_vec()), "+0012", "+0012", "12"),
            (Value::Null, "(nil)", "", "null"),
            (Value::Push(vec![]), "(empty push)", "", "[]"),
        ];
        for (value, people, raw, json) in cases {
            assert_eq!(text(&value, Format::People), people);
            assert_eq!(text(&value, Format::Raw), raw);
            assert_eq!(text(&value, Format::Json), json);
        }
    }

    #[test]
    fn json_and_raw_keep_the_order() {
        assert_eq!(text(&nested(), Format::Json), r#"[["a",2],{"name":["a",2],"7":null},[],true]"#);
        assert_eq!(text(&nested(), Format::Raw), "a\n2\nname a\n2\n7 \n\ntrue");
    }

    proptest! {
        #[test]
        fn a_printed_string_can_be_typed_again(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let line = print(&Value::Bulk(bytes.clone()), Format::People);
            prop_assert_eq!(tokens::split(&line).unwrap(), vec![bytes]);
        }
    }
}
