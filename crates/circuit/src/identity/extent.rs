//! What is enclosed by something of its own kind: names, subjects, scopes.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::{self, Write};
use std::iter::FusedIterator;

/// A part of a whole: it has a text of its own, and lies in an enclosure of its own type unless it is the outermost.
///
/// Two methods make an extent; the rest follows from them.
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
    /// What stands between two parts of a [`path`](Self::path).
    const SEPARATOR: char = '/';

    /// The text of this extent alone.
    fn part(&self) -> Cow<'_, str>;

    /// What this one lies in directly; none if it is the outermost.
    fn enclosure(&self) -> Option<&Self>;

    /// How many extents there are from this one to the outermost, both counted.
    ///
    /// ```
    /// use tidemark_circuit::{Extent, name};
    ///
    /// assert_eq!(Extent::depth(&name!("a.b.c")), 3);
    /// ```
    fn depth(&self) -> usize {
        self.iter().count()
    }

    /// The outermost enclosure: this one itself if it has none.
    ///
    /// ```
    /// use tidemark_circuit::{Extent, name};
    ///
    /// assert_eq!(*name!("a.b.c").extremity(), name!("a"));
    /// ```
    fn extremity(&self) -> &Self {
        self.iter().last().unwrap_or(self)
    }

    /// This one, its enclosure, and so on to the outermost.
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

    /// Combines from this one to the outermost: `first` takes this one, `next` each enclosure.
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

    /// Combines from the outermost to this one: `first` takes the outermost, `next` each one inside of it.
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

    /// The parts from the outermost to this one, with the [separator](Self::SEPARATOR) of the type between them.
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

    /// The parts from the outermost to this one, with a separator between them.
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

    /// What `text` makes of each extent from the outermost to this one, with a separator between.
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

    /// Whether `enclosure` is one of the enclosures of this one, at any distance. Nothing lies within itself.
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

    /// The order by the texts of the parts from the outermost on; what encloses comes before what it encloses.
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

/// An extent and its enclosures, from the inside out. Made by [`Extent::iter`].
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
