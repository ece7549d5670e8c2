//! Nested components of one type: names, subjects, scopes.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::{self, Write};
use std::iter::FusedIterator;

/// A component with a text of its own, enclosed by another one of its type unless it is the
/// outermost.
///
/// Implementors provide two methods; the rest are derived from them.
///
/// ```
/// use std::borrow::Cow;
/// use tidemark_circuit::Extent;
///
/// struct Folder {
///     name: &'static str,
///     parent: Option<Box<Folder>>,
/// }
///
/// impl Extent for Folder {
///     fn part(&self) -> Cow<'_, str> {
///         Cow::Borrowed(self.name)
///     }
///     fn enclosure(&self) -> Option<&Self> {
///         self.parent.as_deref()
///     }
/// }
///
/// let home = Folder { name: "home", parent: None };
/// let music = Folder { name: "music", parent: Some(Box::new(home)) };
/// assert_eq!(music.path(), "home/music");
/// assert_eq!(music.depth(), 2);
/// assert_eq!(music.extremity().name, "home");
/// ```
pub trait Extent: Sized {
    /// Separator between two parts of a [`path`](Self::path).
    const SEPARATOR: char = '/';

    /// Returns the text of this extent alone.
    fn part(&self) -> Cow<'_, str>;

    /// Returns the direct enclosure; none for the outermost.
    fn enclosure(&self) -> Option<&Self>;

    /// Returns the number of extents from this one to the outermost, both included.
    ///
    /// ```
    /// use tidemark_circuit::{Extent, name};
    ///
    /// assert_eq!(Extent::depth(&name!("a.b.c")), 3);
    /// ```
    fn depth(&self) -> usize {
        self.iter().count()
    }

    /// Returns the outermost enclosure, or this extent if it has none.
    ///
    /// ```
    /// use tidemark_circuit::{Extent, name};
    ///
    /// assert_eq!(*name!("a.b.c").extremity(), name!("a"));
    /// ```
    fn extremity(&self) -> &Self {
        self.iter().last().unwrap_or(self)
    }

    /// Iterates over this extent and its enclosures, ending with the outermost.
    ///
    /// ```
    /// use tidemark_circuit::{Extent, name};
    ///
    /// let parts: Vec<_> = name!("a.b.c").iter().map(|name| name.part()).collect();
    /// assert_eq!(parts, ["c", "b", "a"]);
    /// ```
    fn iter(&self) -> Enclosures<'_, Self> {
        Enclosures { next: Some(self) }
    }

    /// Folds from this extent to the outermost: `first` takes this one, `next` each enclosure.
    ///
    /// ```
    /// use tidemark_circuit::{Extent, name};
    ///
    /// let bytes = name!("a.bc").fold(|name| name.part().len(), |sum, name| sum + name.part().len());
    /// assert_eq!(bytes, 3);
    /// ```
    fn fold<A>(&self, first: impl FnOnce(&Self) -> A, next: impl FnMut(A, &Self) -> A) -> A {
        let mut all = self.iter();
        all.next();
        all.fold(first(self), next)
    }

    /// Folds from the outermost to this extent: `first` takes the outermost, `next` each inner one.
    ///
    /// ```
    /// use tidemark_circuit::{Extent, name};
    ///
    /// let text = name!("a.b.c").fold_to(|name| name.part().to_owned(), |text, name| text + name.part());
    /// assert_eq!(text, "abc");
    /// ```
    fn fold_to<A>(&self, first: impl FnOnce(&Self) -> A, next: impl FnMut(A, &Self) -> A) -> A {
        let mut inner = outermost_last(self);
        let outermost = inner.pop().unwrap_or(self);
        inner.into_iter().rev().fold(first(outermost), next)
    }

    /// Joins the parts from the outermost to this one with the [separator](Self::SEPARATOR) of the
    /// type.
    ///
    /// ```
    /// use tidemark_circuit::{Extent, Subject, name};
    ///
    /// assert_eq!(Extent::path(&name!("a.b.c")), "a.b.c");
    /// assert_eq!(Subject::cortex().path(), "cortex:cortex");
    /// ```
    fn path(&self) -> Cow<'_, str> {
        Cow::Owned(self.path_with(Self::SEPARATOR))
    }

    /// Joins the parts from the outermost to this one with the given separator.
    ///
    /// ```
    /// use tidemark_circuit::{Extent, name};
    ///
    /// assert_eq!(name!("a.b.c").path_with("::"), "a::b::c");
    /// assert_eq!(name!("a.b.c").path_with('/'), "a/b/c");
    /// ```
    fn path_with(&self, separator: impl fmt::Display) -> String {
        self.path_map(|extent| extent.part(), separator)
    }

    /// Joins what `text` makes of each extent from the outermost to this one with the given
    /// separator.
    ///
    /// ```
    /// use tidemark_circuit::{Extent, name};
    ///
    /// assert_eq!(name!("foo.bar").path_map(|name| name.part().to_uppercase(), "->"), "FOO->BAR");
    /// ```
    fn path_map<'a, T: fmt::Display>(
        &'a self,
        mut text: impl FnMut(&'a Self) -> T,
        separator: impl fmt::Display,
    ) -> String {
        let mut inner = outermost_last(self);
        let mut path = text(inner.pop().unwrap_or(self)).to_string();
        for extent in inner.into_iter().rev() {
            // Writing into a string does not fail.
            let _ = write!(path, "{separator}{}", text(extent));
        }
        path
    }

    /// Returns whether `enclosure` is a direct or indirect enclosure of this one. No extent is
    /// within itself.
    ///
    /// ```
    /// use tidemark_circuit::{Extent, name};
    ///
    /// assert!(name!("a.b.c").within(&name!("a")));
    /// assert!(!name!("a").within(&name!("a")));
    /// ```
    fn within(&self, enclosure: &Self) -> bool
    where
        Self: PartialEq,
    {
        self.iter().skip(1).any(|extent| extent == enclosure)
    }

    /// Compares the texts of the parts, starting with the outermost. An enclosure is less than what
    /// it encloses.
    ///
    /// ```
    /// use std::cmp::Ordering;
    /// use tidemark_circuit::{Extent, name};
    ///
    /// assert_eq!(name!("a").compare_parts(&name!("a.b")), Ordering::Less);
    /// assert_eq!(name!("b").compare_parts(&name!("a.b")), Ordering::Greater);
    /// ```
    fn compare_parts(&self, other: &Self) -> Ordering {
        let (left, right) = (outermost_last(self), outermost_last(other));
        let parts = left.iter().rev().map(|extent| extent.part());
        parts.cmp(right.iter().rev().map(|extent| extent.part()))
    }
}

fn outermost_last<E: Extent>(extent: &E) -> Vec<&E> {
    extent.iter().collect()
}

/// Iterator over an extent and its enclosures, innermost first. Made by [`Extent::iter`].
#[derive(Debug)]
pub struct Enclosures<'a, E> {
    next: Option<&'a E>,
}

impl<E> Clone for Enclosures<'_, E> {
    fn clone(&self) -> Self {
        Self { next: self.next }
    }
}

impl<'a, E: Extent> Iterator for Enclosures<'a, E> {
    type Item = &'a E;

    fn next(&mut self) -> Option<&'a E> {
        let extent = self.next?;
        self.next = extent.enclosure();
        Some(extent)
    }
}

impl<E: Extent> FusedIterator for Enclosures<'_, E> {}
