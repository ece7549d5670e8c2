//! Bytes in JSON, which can only hold text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::ser::{Serialize, SerializeMap, Serializer};

/// Serializes bytes as a string, or as `{"base64": "…"}` if they are not UTF-8.
pub fn serialize_bytes<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    match std::str::from_utf8(bytes) {
        Ok(text) => serializer.serialize_str(text),
        Err(_) => {
            let mut object = serializer.serialize_map(Some(1))?;
            object.serialize_entry("base64", &STANDARD.encode(bytes))?;
            object.end()
        }
    }
}

/// Bytes that serialize with [`serialize_bytes`].
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_bytes(self.0, serializer)
    }
}
