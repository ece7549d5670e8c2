//! Dotted names. Their creation is in `interned`.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ptr;

use crate::identity::extent::Extent;

/// A path of non-empty parts separated by single dots, such as `orders.eu.filled`.
///
/// Each path has one name in the process, so equality and hashing cost as much as for one number. A
/// name is one pointer and `Copy`. Names are ordered by their parts; a name is less than those that
/// it encloses.
///
/// Names are never freed, so [their number](Self::COUNT_MAX) and [text](Self::TEXT_BYTES_MAX) are
/// limited.
///
/// ```
/// use tidemark_circuit::{ArgumentError, Name};
///
/// let orders = Name::new("orders.eu")?;
/// let filled = orders.extend("filled")?;
/// assert_eq!(filled, Name::from_parts(["orders", "eu", "filled"])?);
/// assert_eq!(filled.path(), "orders.eu.filled");
/// assert_eq!(filled.part(), "filled");
/// assert_eq!(filled.depth(), 3);
/// assert_eq!(filled.enclosure(), Some(orders));
/// assert!(orders < filled);
/// assert!(Name::new("orders..eu").is_err());
/// # Ok::<(), ArgumentError>(())
/// ```
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Name(pub(crate) &'static Node);

impl Name {
    /// Maximum number of names in a process. A name takes about 200 bytes and its text.
    pub const COUNT_MAX: u32 = 1 << 24;
    /// Maximum bytes of text of all names in a process, counted once per interned path.
    pub const TEXT_BYTES_MAX: u64 = 1 << 32;
    /// Maximum bytes of a path.
    pub const PATH_BYTES_MAX: usize = 65_535;
    /// Maximum number of parts of a path.
    pub const DEPTH_MAX: usize = 1024;

    /// Returns whether this is a valid path of a name.
    ///
    /// ```
    /// # use tidemark_circuit::Name;
    /// assert!(Name::is_valid("a.b"));
    /// assert!(!Name::is_valid(""));
    /// assert!(!Name::is_valid("a..b"));
    /// ```
    pub const fn is_valid(path: &str) -> bool {
        flaw(path).is_none()
    }

    /// Returns the number of this name. Names are numbered from 0, without gaps, in the order of
    /// their creation.
    #[inline]
    pub const fn id(self) -> u32 {
        self.0.id
    }

    // Methods that `Extent` has too take `&self`: with `self`, a call on a reference would resolve
    // to the trait.

    /// Returns the whole text, with dots.
    #[inline]
    pub const fn path(&self) -> &'static str {
        self.0.path
    }

    /// Returns the last part.
    #[inline]
    pub fn part(&self) -> &'static str {
        self.0.part()
    }

    /// Returns the number of parts.
    #[inline]
    pub fn depth(&self) -> usize {
        usize::from(self.0.depth)
    }

    /// Returns the name without its last part; none if it has a single part.
    #[inline]
    pub const fn enclosure(&self) -> Option<Self> {
        self.0.parent
    }
}

/// The data of one name.
pub(crate) struct Node {
    pub(crate) path: &'static str,
    pub(crate) parent: Option<Name>,
    pub(crate) id: u32,
    /// Byte offset of the last part in the path.
    pub(crate) part_start: u16,
    pub(crate) depth: u16,
}

impl Node {
    /// Returns the last part.
    #[inline]
    pub(crate) fn part(&self) -> &'static str {
        &self.path[usize::from(self.part_start)..]
    }
}

impl Extent for Name {
    const SEPARATOR: char = '.';

    fn part(&self) -> Cow<'_, str> {
        Cow::Borrowed(Name::part(self))
    }

    fn enclosure(&self) -> Option<&Self> {
        self.0.parent.as_ref()
    }

    fn depth(&self) -> usize {
        Name::depth(self)
    }

    fn path(&self) -> Cow<'_, str> {
        Cow::Borrowed(Name::path(self))
    }
}

impl PartialEq for Name {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.0, other.0)
    }
}

impl Eq for Name {}

impl Hash for Name {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u32(self.0.id);
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        if self == other { Ordering::Equal } else { compare(self.path().as_bytes(), other.path().as_bytes()) }
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        self.path()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.path())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.path(), f)
    }
}

/// The reason why a text is not a path.
#[derive(Clone, Copy)]
pub(crate) enum Flaw {
    EmptyPart,
    TooLong,
    TooDeep,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyPart => {
                f.write_str("has an empty part: a name is non-empty parts with one dot between them")
            }
            Self::TooLong => write!(f, "is too long: a name has at most {}", Name::PATH_BYTES_MAX),
            Self::TooDeep => write!(f, "has too many parts: a name has at most {}", Name::DEPTH_MAX),
        }
    }
}

/// Returns why this is not a path, or none if it is one.
pub(crate) const fn flaw(path: &str) -> Option<Flaw> {
    let path = path.as_bytes();
    if path.len() > Name::PATH_BYTES_MAX {
        return Some(Flaw::TooLong);
    }
    let mut depth = 1;
    let mut part_start = 0;
    let mut at = 0;
    while at < path.len() {
        if path[at] == b'.' {
            if at == part_start {
                return Some(Flaw::EmptyPart);
            }
            part_start = at + 1;
            depth += 1;
        }
        at += 1;
    }
    if part_start == path.len() {
        Some(Flaw::EmptyPart)
    } else if depth > Name::DEPTH_MAX {
        Some(Flaw::TooDeep)
    } else {
        None
    }
}

/// Compares two different paths by their parts: a dot ends a part, so it is less than every other
/// byte.
fn compare(left: &[u8], right: &[u8]) -> Ordering {
    let (left_blocks, right_blocks) = (left.as_chunks::<8>().0, right.as_chunks::<8>().0);
    let skip = 8 * left_blocks.iter().zip(right_blocks).take_while(|(left, right)| left == right).count();
    let (left, right) = (&left[skip..], &right[skip..]);
    match left.iter().zip(right).find(|(left, right)| left != right) {
        None => left.len().cmp(&right.len()),
        Some((b'.', _)) => Ordering::Less,
        Some((_, b'.')) => Ordering::Greater,
        Some((left, right)) => left.cmp(right),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_pointer() {
        assert_eq!(size_of::<Name>(), size_of::<usize>());
        assert_eq!(size_of::<Option<Name>>(), size_of::<usize>());
    }
}
