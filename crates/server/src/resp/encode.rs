//! Encodes RESP: requests, and values for test servers.

use super::Value;

/// Appends one request, an array of bulk strings, to `out`.
///
/// Copies the arguments; allocates only when `out` grows.
pub fn encode_request<Argument: AsRef<[u8]>>(out: &mut Vec<u8>, arguments: &[Argument]) {
    header(out, b'*', arguments.len());
    for argument in arguments {
        blob(out, b'$', argument.as_ref());
    }
}

/// Appends `value` in RESP3.
///
/// A simple string or error with a line break is encoded in its bulk form, which can hold it.
pub fn encode_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Simple(text) if is_one_line(text) => line(out, b'+', text),
        Value::Simple(text) | Value::Bulk(text) => blob(out, b'$', text),
        Value::Error(text) if is_one_line(text) => line(out, b'-', text),
        Value::Error(text) => blob(out, b'!', text),
        Value::Integer(number) => line(out, b':', number.to_string().as_bytes()),
        Value::Null => line(out, b'_', b""),
        Value::Boolean(true) => line(out, b'#', b"t"),
        Value::Boolean(false) => line(out, b'#', b"f"),
        Value::Double(number) => line(out, b',', double_text(*number).as_bytes()),
        Value::BigNumber(digits) => line(out, b'(', digits),
        Value::Verbatim { format, text } => blob(out, b'=', &[&format[..], b":", text].concat()),
        Value::Array(elements) => aggregate(out, b'*', elements),
        Value::Set(elements) => aggregate(out, b'~', elements),
        Value::Push(elements) => aggregate(out, b'>', elements),
        Value::Map(pairs) => encode_pairs(out, b'%', pairs),
        Value::Attributed { attributes, value } => {
            encode_pairs(out, b'|', attributes);
            encode_value(out, value);
        }
    }
}

fn aggregate(out: &mut Vec<u8>, kind: u8, elements: &[Value]) {
    header(out, kind, elements.len());
    for element in elements {
        encode_value(out, element);
    }
}

fn encode_pairs(out: &mut Vec<u8>, kind: u8, pairs: &[(Value, Value)]) {
    header(out, kind, pairs.len());
    for (name, value) in pairs {
        encode_value(out, name);
        encode_value(out, value);
    }
}

fn blob(out: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    header(out, kind, bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn header(out: &mut Vec<u8>, kind: u8, length: usize) {
    out.push(kind);
    out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn line(out: &mut Vec<u8>, kind: u8, text: &[u8]) {
    debug_assert!(is_one_line(text), "a line must not contain its own terminator");
    out.push(kind);
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

fn is_one_line(text: &[u8]) -> bool {
    !text.iter().any(|byte| matches!(byte, b'\r' | b'\n'))
}

fn double_text(number: f64) -> String {
    if number.is_nan() {
        "nan".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { "inf" } else { "-inf" }.to_owned()
    } else {
        number.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::{Value, encode_request, encode_value};

    #[test]
    fn a_request_is_an_array_of_bulk_strings() {
        let mut out = Vec::new();
        encode_request(&mut out, &[&b"SET"[..], b"k\r\n", b""]);
        assert_eq!(out, b"*3\r\n$3\r\nSET\r\n$3\r\nk\r\n\r\n$0\r\n\r\n");
    }

    #[test]
    fn text_with_a_line_break_travels_as_a_bulk() {
        let mut out = Vec::new();
        encode_value(&mut out, &Value::Simple(b"a\nb".to_vec()));
        encode_value(&mut out, &Value::Error(b"ERR a\rb".to_vec()));
        assert_eq!(out, b"$3\r\na\nb\r\n!7\r\nERR a\rb\r\n");
    }

    #[test]
    fn doubles_have_the_protocols_names_for_what_is_not_finite() {
        let mut out = Vec::new();
        for number in [1.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            encode_value(&mut out, &Value::Double(number));
        }
        assert_eq!(out, b",1.5\r\n,inf\r\n,-inf\r\n,nan\r\n");
    }
}
