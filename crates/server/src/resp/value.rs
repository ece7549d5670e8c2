//! A RESP value as a client receives it.

/// A decoded reply or push of RESP2 or RESP3.
///
/// Strings are bytes, as the protocol guarantees no encoding. RESP2's two nulls and RESP3's one are
/// all [`Value::Null`]. Maps keep the order of the server.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `+text`
    Simple(Vec<u8>),
    /// `-CODE text` or `!length`: the first word is for programs, the rest for people.
    Error(Vec<u8>),
    /// `:number`
    Integer(i64),
    /// `$length`
    Bulk(Vec<u8>),
    /// `_`, `$-1` or `*-1`
    Null,
    /// `#t` or `#f`
    Boolean(bool),
    /// `,number`, including `inf`, `-inf` and `nan`
    Double(f64),
    /// `(digits`: an integer of any size, kept as validated text.
    BigNumber(Vec<u8>),
    /// `=length`: text with a three-byte format such as `txt` or `mkd`.
    Verbatim {
        /// The three bytes before the colon.
        format: [u8; 3],
        /// Text after the colon.
        text: Vec<u8>,
    },
    /// `*count`
    Array(Vec<Value>),
    /// `~count`
    Set(Vec<Value>),
    /// `%count`
    Map(Vec<(Value, Value)>),
    /// `>count`: out of band, never the answer to a command.
    Push(Vec<Value>),
    /// `|count` followed by the value that the attributes describe.
    Attributed {
        /// The attributes in the order of the server.
        attributes: Vec<(Value, Value)>,
        /// The value itself.
        value: Box<Value>,
    },
}

impl Value {
    /// Returns the bytes of a simple, bulk or verbatim string or big number, not of an error.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self.plain() {
            Value::Simple(bytes) | Value::Bulk(bytes) | Value::BigNumber(bytes) => Some(bytes),
            Value::Verbatim { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Returns the error's whole text, if this is an error.
    #[must_use]
    pub fn as_error(&self) -> Option<&[u8]> {
        match self.plain() {
            Value::Error(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the number, if this is an integer.
    #[must_use]
    pub fn as_integer(&self) -> Option<i64> {
        match self.plain() {
            Value::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the elements of an array, set or push.
    #[must_use]
    pub fn as_elements(&self) -> Option<&[Value]> {
        match self.plain() {
            Value::Array(elements) | Value::Set(elements) | Value::Push(elements) => Some(elements),
            _ => None,
        }
    }

    /// Returns the pairs of a map, or of the flat array that RESP2 sends instead.
    ///
    /// Allocates one `Vec` of references. An array of odd length is not a map.
    #[must_use]
    pub fn as_pairs(&self) -> Option<Vec<(&Value, &Value)>> {
        match self.plain() {
            Value::Map(pairs) => Some(pairs.iter().map(|(name, value)| (name, value)).collect()),
            Value::Array(flat) if flat.len() % 2 == 0 => {
                Some(flat.chunks_exact(2).filter_map(|pair| Some((pair.first()?, pair.last()?))).collect())
            }
            _ => None,
        }
    }

    /// Returns the value without its attributes.
    #[must_use]
    pub fn plain(&self) -> &Value {
        let mut value = self;
        while let Value::Attributed { value: inner, .. } = value {
            value = inner;
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::Value;

    fn bulk(text: &str) -> Value {
        Value::Bulk(text.as_bytes().to_vec())
    }

    #[test]
    fn a_flat_array_of_even_length_reads_like_a_map() {
        let map = Value::Map(vec![(bulk("a"), Value::Integer(1)), (bulk("b"), Value::Null)]);
        let flat = Value::Array(vec![bulk("a"), Value::Integer(1), bulk("b"), Value::Null]);
        assert_eq!(map.as_pairs(), flat.as_pairs());
        assert_eq!(flat.as_pairs().map(|pairs| pairs.len()), Some(2));
        assert_eq!(Value::Array(vec![bulk("a")]).as_pairs(), None);
    }

    #[test]
    fn attributes_do_not_hide_the_value() {
        let value = Value::Attributed {
            attributes: vec![(bulk("ttl"), Value::Integer(3))],
            value: Box::new(bulk("x")),
        };
        assert_eq!(value.as_bytes(), Some(&b"x"[..]));
        assert_eq!(value.as_error(), None);
        assert_eq!(Value::Error(b"ERR no".to_vec()).as_error(), Some(&b"ERR no"[..]));
        assert_eq!(Value::Push(vec![Value::Null]).as_elements(), Some(&[Value::Null][..]));
        assert_eq!(Value::Integer(4).as_integer(), Some(4));
    }
}
