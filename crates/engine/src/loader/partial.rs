//! A value that comes in parts, as far as it has come.

use crate::apply_error::ApplyError;
use crate::keyspace::form::{Head, Part};
use crate::record::Cursor;
use crate::value::{Collection, Hash, InParts, List, Object, Pool, Set, SortedSet, Type};
use std::collections::BTreeMap;

/// A value of which something has come.
pub(super) struct Partial {
    kind: Type,
    gathered: Gathered,
    /// Elements that have come, and, once it is known, how many there are.
    loaded: u64,
    count: Option<u64>,
    place: Option<Place>,
}

/// Where a value belongs.
pub(super) struct Place {
    pub(super) db: u8,
    pub(super) key: Box<[u8]>,
    pub(super) deadline: Option<u64>,
}

/// What has come of a value.
enum Gathered {
    /// Elements that need no order.
    Unordered(Object),
    /// Parts by their places.
    Ordered(BTreeMap<u64, Piece>),
}

/// What is in a part of a value whose parts have an order.
pub(super) enum Piece {
    /// Elements of a list that stand one behind the other.
    List(List),
    /// A piece of a pool's image.
    Pool(Box<[u8]>),
}

impl Piece {
    /// Reads what is in a part; `None` if the bytes are nothing of its type.
    pub(super) fn decode(part: &Part, bytes: &mut Cursor<'_>) -> Option<Self> {
        match part.kind {
            Type::List => {
                let mut run = List::default();
                decode_elements(&mut run, part, bytes)?;
                Some(Self::List(run))
            }
            Type::Pool if part.count == 1 => bytes.bytes().map(|piece| Self::Pool(piece.into())),
            _ => None,
        }
    }
}

impl Partial {
    /// Nothing of a value of this type; `None` if such values do not come in parts.
    pub(super) fn new(kind: Type) -> Option<Self> {
        let gathered = match kind {
            Type::String | Type::Counter | Type::Limit => return None,
            Type::List | Type::Pool => Gathered::Ordered(BTreeMap::new()),
            Type::Hash => Gathered::Unordered(Hash::default().into_object()),
            Type::Set => Gathered::Unordered(Set::default().into_object()),
            Type::SortedSet => Gathered::Unordered(SortedSet::default().into_object()),
        };
        Some(Self { kind, gathered, loaded: 0, count: None, place: None })
    }

    /// Reads a part of a value that is not wanted.
    pub(super) fn pass_over(part: &Part, bytes: &mut Cursor<'_>) -> Option<()> {
        let mut passed_over = Self::new(part.kind)?;
        match passed_over.gathered {
            Gathered::Unordered(_) => passed_over.load(part, bytes),
            Gathered::Ordered(_) => Piece::decode(part, bytes).map(drop),
        }
    }

    /// Says where the value belongs; `None` if that was said, or of a value of another type.
    pub(super) fn set_place(&mut self, db: u8, head: &Head<'_>) -> Option<()> {
        if self.place.is_some() || self.kind != head.kind {
            return None;
        }
        self.place = Some(Place { db, key: head.key.into(), deadline: head.deadline });
        self.count = Some(head.count);
        Some(())
    }

    /// Adds what was in a part that has a place; `None` if it has come before, or is of another type.
    pub(super) fn add(&mut self, part: &Part, piece: Piece) -> Option<()> {
        self.loaded += u64::from(part.count);
        match &mut self.gathered {
            Gathered::Ordered(pieces) if self.kind == part.kind => {
                pieces.insert(part.place, piece).is_none().then_some(())
            }
            _ => None,
        }
    }

    /// Reads a part's elements; `None` if the bytes are not such elements, or some have come before.
    pub(super) fn load(&mut self, part: &Part, bytes: &mut Cursor<'_>) -> Option<()> {
        self.loaded += u64::from(part.count);
        match &mut self.gathered {
            Gathered::Unordered(object) if self.kind == part.kind => {
                decode_elements(object.in_parts_mut()?, part, bytes)
            }
            _ => None,
        }
    }

    /// The value and where it belongs, if all has come; an error if that makes no value.
    pub(super) fn complete(&mut self) -> Result<Option<(Object, Place)>, ApplyError> {
        let Some(count) = self.count else { return Ok(None) };
        if self.loaded < count {
            return Ok(None);
        }
        let whole = self.loaded == count && count > 0;
        let place = self.place.take().filter(|_| whole).ok_or(ApplyError::Malformed)?;
        let object = match std::mem::replace(&mut self.gathered, Gathered::Ordered(BTreeMap::new())) {
            Gathered::Unordered(object) => object,
            Gathered::Ordered(pieces) => assemble(self.kind, pieces).ok_or(ApplyError::Malformed)?,
        };
        Ok(Some((object, place)))
    }
}

/// Puts together what has come in order; `None` if a place is empty.
fn assemble(kind: Type, pieces: BTreeMap<u64, Piece>) -> Option<Object> {
    if !pieces.keys().copied().eq(0..pieces.len() as u64) {
        return None;
    }
    if kind == Type::List {
        let mut list = List::default();
        for piece in pieces.into_values() {
            let Piece::List(run) = piece else { return None };
            list.append(run);
        }
        return Some(list.into_object());
    }
    let mut images = pieces.values().map(|piece| match piece {
        Piece::Pool(image) => &**image,
        Piece::List(_) => &[],
    });
    Some(Pool::assemble(images.next()?, images)?.into_object())
}

fn decode_elements(value: &mut dyn InParts, part: &Part, bytes: &mut Cursor<'_>) -> Option<()> {
    (0..part.count).try_for_each(|_| value.decode_element(bytes))
}
