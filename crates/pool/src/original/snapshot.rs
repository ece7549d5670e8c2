//! `snapshot.json`: the catalogue with its stock, and the number of the last draw. The original
//! overwrites it in place, so it is always the newest, and never checks the hash that it writes.
//!
//! ```text
//! {"last_request_id":7,"catalog":[{"item_id":"gold","quantity":93,"probability":20}],"sha256":"…"}
//! ```
//!
//! The hash is SHA-256, in hexadecimal, of the catalogue's JSON with the items sorted by id.

use super::item::OriginalItem;
use crate::ITEMS_MAX;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Result of checking the hash of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnapshotHash {
    /// The hash is correct.
    Matches,
    /// There is no hash; older versions write none.
    Absent,
    /// The hash is wrong: the file was changed, or is damaged.
    Differs {
        /// Hash in the file.
        stated: Box<str>,
        /// Hash of the catalogue in the file.
        computed: Box<str>,
    },
}

/// Contents of `snapshot.json`.
///
/// ```
/// use tidemark_pool::original::{Snapshot, SnapshotHash};
///
/// let json = r#"{"last_request_id":7,"catalog":[{"item_id":"gold","quantity":93,"probability":20}]}"#;
/// let snapshot = Snapshot::parse(json.as_bytes()).unwrap();
/// assert_eq!((snapshot.last_request, snapshot.items[0].quantity), (7, 93));
/// assert_eq!(snapshot.hash, SnapshotHash::Absent);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Number of the last draw before the snapshot; 0 if there was none.
    pub last_request: u64,
    /// The catalogue with the stock left.
    pub items: Vec<OriginalItem>,
    /// Result of checking the hash.
    pub hash: SnapshotHash,
}

/// Error of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The file is cut off, empty, or not a snapshot.
    #[error("the snapshot is not JSON of the expected shape ({reason}): recover from the whole log instead")]
    Json {
        /// Message of the parser.
        reason: Box<str>,
    },
    /// There are more items than [`ITEMS_MAX`].
    #[error("the snapshot has {items} items, at most {ITEMS_MAX} are possible")]
    TooManyItems {
        /// Number of items.
        items: usize,
    },
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    last_request_id: u64,
    catalog: Option<Vec<FileItem>>,
    #[serde(default)]
    sha256: String,
}

#[derive(Deserialize)]
struct FileItem {
    item_id: Box<str>,
    quantity: i64,
    probability: i64,
}

impl Snapshot {
    /// Parses a snapshot. O(n log n), to sort the ids.
    ///
    /// # Errors
    /// If the bytes are not a snapshot. A wrong hash is not an error: see [`hash`](Self::hash).
    pub fn parse(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let file: File = serde_json::from_slice(bytes)
            .map_err(|error| SnapshotError::Json { reason: error.to_string().into() })?;
        let items: Vec<OriginalItem> = file
            .catalog
            .unwrap_or_default()
            .into_iter()
            .map(|item| OriginalItem { id: item.item_id, quantity: item.quantity, weight: item.probability })
            .collect();
        if items.len() > ITEMS_MAX {
            return Err(SnapshotError::TooManyItems { items: items.len() });
        }
        let hash = check(&file.sha256, &items);
        Ok(Self { last_request: file.last_request_id, items, hash })
    }
}

fn check(stated: &str, items: &[OriginalItem]) -> SnapshotHash {
    if stated.is_empty() {
        return SnapshotHash::Absent;
    }
    let computed = hash_of(items);
    // In Go, the JSON of an empty list is `[]` or `null`, depending on how it was created.
    let nothing = items.is_empty() && stated == digits(&Sha256::digest("null"));
    if *stated == *computed || nothing {
        return SnapshotHash::Matches;
    }
    SnapshotHash::Differs { stated: stated.into(), computed }
}

fn hash_of(items: &[OriginalItem]) -> Box<str> {
    let mut order: Vec<&OriginalItem> = items.iter().collect();
    order.sort_by(|left, right| left.id.cmp(&right.id));
    let mut hasher = Sha256::new();
    let mut text = String::from("[");
    for (position, item) in order.into_iter().enumerate() {
        text.push_str(if position == 0 { "{\"item_id\":" } else { ",{\"item_id\":" });
        push_string(&mut text, &item.id);
        let _ = write!(text, ",\"quantity\":{},\"probability\":{}}}", item.quantity, item.weight);
        hasher.update(&text);
        text.clear();
    }
    text.push(']');
    hasher.update(&text);
    digits(&hasher.finalize()).into()
}

fn digits(hash: &[u8]) -> String {
    hash.iter().fold(String::with_capacity(2 * hash.len()), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

/// Writes a string as Go's `json.Marshal` does: it also escapes `<`, `>`, `&` and Unicode's two
/// line separators.
fn push_string(text: &mut String, string: &str) {
    text.push('"');
    for character in string.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                let _ = write!(text, "\\u{:04x}", u32::from(character));
            }
            _ => text.push(character),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain() -> Vec<OriginalItem> {
        vec![OriginalItem::new("silver", 10, 30), OriginalItem::new("gold", 100, 20)]
    }

    /// Go computed both hashes, of the same items.
    #[test]
    fn the_hash_is_that_of_go() {
        let expected = "60da509100454b9d7c98cc73fc76f3711cf995c1f107cc94642a287b2d72e452";
        assert_eq!(*hash_of(&plain()), *expected);
        let mut strange = plain();
        strange.push(OriginalItem::new("a<b>&\u{2028}\u{2029}\u{1}\t\u{8}\u{c}\r\n\u{7f}\"\\é", -1, -7));
        let expected = "257c15aba051c3458501ec3d7dee60e366a8cf5db778ee8753272438534779c2";
        assert_eq!(*hash_of(&strange), *expected);
    }

    #[test]
    fn a_changed_quantity_is_noticed() {
        let text = |quantity: u32| {
            format!(
                r#"{{"last_request_id":3,"catalog":[{{"item_id":"silver","quantity":10,"probability":30}},
                {{"item_id":"gold","quantity":{quantity},"probability":20}}],"sha256":"{}"}}"#,
                "60da509100454b9d7c98cc73fc76f3711cf995c1f107cc94642a287b2d72e452"
            )
        };
        let parse = |quantity| Snapshot::parse(text(quantity).as_bytes()).expect("a snapshot");
        assert_eq!(parse(100).hash, SnapshotHash::Matches);
        assert_eq!(parse(100).items, plain());
        assert!(matches!(parse(99_999).hash, SnapshotHash::Differs { .. }));
    }

    #[test]
    fn half_a_snapshot_is_refused() {
        for text in ["", "{", "[]", r#"{"catalog":[{"item_id":"a"}]}"#, r#"{"last_request_id":-1}"#] {
            let error = Snapshot::parse(text.as_bytes()).expect_err(text);
            assert!(matches!(error, SnapshotError::Json { .. }), "{text}");
        }
    }
}
