//! Creation of names: looked up in the table of the process, or interned.

use std::any;
use std::str::FromStr;

use crate::ArgumentError;
use crate::identity::interner::Interner;
use crate::identity::name::{Name, flaw};

static INTERNER: Interner = Interner::new(Name::COUNT_MAX, Name::TEXT_BYTES_MAX);

impl Name {
    /// Returns the name of this path.
    ///
    /// Fails if a part is empty, if the path is longer than
    /// [`PATH_BYTES_MAX`](Self::PATH_BYTES_MAX) or deeper than [`DEPTH_MAX`](Self::DEPTH_MAX), or
    /// if a limit on all names is reached. An existing name costs one hash of the path and no lock.
    /// A new one takes a lock, and is never freed, nor are its ancestors.
    #[inline]
    pub fn new(path: &str) -> Result<Self, ArgumentError> {
        match INTERNER.find(path) {
            Some(name) => Ok(name),
            None => Self::make(path),
        }
    }

    /// Returns the name of these parts joined. Each may itself be a path.
    ///
    /// Fails as [`new`](Self::new) does, and if there are no parts. Makes no names if it fails.
    ///
    /// ```
    /// # use tidemark_circuit::{ArgumentError, Name};
    /// assert_eq!(Name::from_parts(["root", "child.grandchild"])?, Name::new("root.child.grandchild")?);
    /// let numbered = Name::from_parts((1..=3).map(|number| format!("level{number}")))?;
    /// assert_eq!(numbered.path(), "level1.level2.level3");
    /// # Ok::<(), ArgumentError>(())
    /// ```
    pub fn from_parts<I>(parts: I) -> Result<Self, ArgumentError>
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        Self::walk(None, parts)
    }

    /// Returns the name of a type: its path with dots. Generic arguments are unchanged.
    ///
    /// It is meant for display, like [`std::any::type_name`], and costs an allocation: cache it if
    /// it is used often.
    ///
    /// ```
    /// # use tidemark_circuit::Name;
    /// assert_eq!(Name::of::<String>().path(), "alloc.string.String");
    /// assert_eq!(Name::of::<Option<String>>().part(), "Option<alloc::string::String>");
    /// assert_eq!(Name::of::<[i32; 2]>().path(), "[i32; 2]");
    /// ```
    ///
    /// # Panics
    ///
    /// If it is a new name and a limit is reached, or if the type's name is longer than a name can
    /// be.
    pub fn of<T: ?Sized>() -> Self {
        match Self::new(&dotted(any::type_name::<T>())) {
            Ok(name) => name,
            Err(error) => panic!("the name of a type: {error}"),
        }
    }

    /// Returns the number of names that would have to be made for this valid path.
    pub(crate) fn count_missing(path: &str) -> u32 {
        INTERNER.count_missing(path)
    }

    /// Returns the name of this path below this name.
    ///
    /// Fails as [`new`](Self::new) does. An existing name costs one hash of the suffix.
    #[inline]
    pub fn extend(self, suffix: &str) -> Result<Self, ArgumentError> {
        match self.find_below(suffix) {
            Some(name) => Ok(name),
            None => Self::make(&format!("{self}.{suffix}")),
        }
    }

    /// Returns the name of these parts joined, below this name: this name itself if there are none.
    ///
    /// ```
    /// # use tidemark_circuit::{ArgumentError, Name};
    /// let base = Name::new("base")?;
    /// assert_eq!(base.extend_parts(["level1", "level2.level3"])?.path(), "base.level1.level2.level3");
    /// assert_eq!(base.extend_parts::<[&str; 0]>([])?, base);
    /// # Ok::<(), ArgumentError>(())
    /// ```
    pub fn extend_parts<I>(self, parts: I) -> Result<Self, ArgumentError>
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        Self::walk(Some(self), parts)
    }

    /// Returns the name of the path of `other` below this name.
    ///
    /// ```
    /// # use tidemark_circuit::{ArgumentError, Name};
    /// let joined = Name::new("root")?.join(Name::new("child.grandchild")?)?;
    /// assert_eq!(joined.path(), "root.child.grandchild");
    /// # Ok::<(), ArgumentError>(())
    /// ```
    pub fn join(self, other: Self) -> Result<Self, ArgumentError> {
        self.extend(other.path())
    }

    #[cold]
    fn make(path: &str) -> Result<Self, ArgumentError> {
        /// Longer paths are not repeated in error messages.
        const SHOWN_BYTES_MAX: usize = 200;
        match flaw(path) {
            None => INTERNER.add(path),
            Some(flaw) if path.len() <= SHOWN_BYTES_MAX => {
                Err(ArgumentError::new("name", format!("{path:?} {flaw}")))
            }
            Some(flaw) => Err(ArgumentError::new("name", format!("a path of {} bytes {flaw}", path.len()))),
        }
    }

    #[inline]
    fn find_below(self, suffix: &str) -> Option<Self> {
        // A part has no dot, so a dotted suffix is never found by the first lookup.
        match INTERNER.find_below(self, suffix) {
            None if suffix.contains('.') => {
                suffix.split('.').try_fold(self, |parent, part| INTERNER.find_below(parent, part))
            }
            found => found,
        }
    }

    /// Follows the parts as long as they are existing names, and joins the rest into one text. So
    /// nothing is interned before all of it is validated.
    fn walk<I>(mut known: Option<Self>, parts: I) -> Result<Self, ArgumentError>
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        let mut unknown: Option<String> = None;
        for part in parts {
            let part = part.as_ref();
            let Some(text) = &mut unknown else {
                let next = match known {
                    None => INTERNER.find(part),
                    Some(name) => name.find_below(part),
                };
                match (next, known) {
                    (Some(next), _) => known = Some(next),
                    (None, None) => unknown = Some(part.to_owned()),
                    (None, Some(name)) => unknown = Some(format!("{name}.{part}")),
                }
                continue;
            };
            text.push('.');
            text.push_str(part);
            if text.len() > Self::PATH_BYTES_MAX {
                break;
            }
        }
        match (unknown, known) {
            (Some(text), _) => Self::new(&text),
            (None, Some(name)) => Ok(name),
            (None, None) => Err(ArgumentError::new("name", "there are no parts: a name has one at least")),
        }
    }
}

/// Returns the [`Name`] of a literal. It is looked up once and then read from a static.
///
/// An invalid literal does not compile.
///
/// ```
/// use tidemark_circuit::{Name, name};
///
/// assert_eq!(name!("orders.eu"), Name::new("orders.eu").unwrap());
/// ```
///
/// ```compile_fail
/// tidemark_circuit::name!("orders..eu");
/// ```
///
/// # Panics
///
/// If it is a new name and there are [too many](Name::COUNT_MAX) already.
#[macro_export]
macro_rules! name {
    ($path:literal) => {{
        static NAME: ::std::sync::OnceLock<$crate::Name> = ::std::sync::OnceLock::new();
        const { assert!($crate::Name::is_valid($path), "a name is non-empty parts with one dot between them") };
        *NAME.get_or_init(|| $crate::Name::new($path).expect("a valid literal is a name"))
    }};
}

impl FromStr for Name {
    type Err = ArgumentError;

    fn from_str(path: &str) -> Result<Self, ArgumentError> {
        Self::new(path)
    }
}

impl TryFrom<&str> for Name {
    type Error = ArgumentError;

    fn try_from(path: &str) -> Result<Self, ArgumentError> {
        Self::new(path)
    }
}

/// Replaces `::` by dots in a type's own path. Text in brackets is unchanged, and so are types
/// without a path, such as slices.
fn dotted(type_name: &str) -> String {
    let is_path = type_name.starts_with(|first: char| first.is_alphabetic() || first == '_')
        && !type_name.split(['<', '(', '[', '{']).next().is_some_and(|head| head.contains(' '))
        && !type_name.starts_with("fn(");
    let mut path = String::with_capacity(type_name.len());
    let mut nested = 0_usize;
    let mut rest = type_name.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            '<' | '(' | '[' | '{' => nested += 1,
            '>' if path.ends_with('-') => {}
            '>' | ')' | ']' | '}' => nested = nested.saturating_sub(1),
            ':' if is_path && nested == 0 && rest.next_if_eq(&':').is_some() => {
                path.push('.');
                continue;
            }
            _ => {}
        }
        // A dot in the type name, as in `...` of a variadic function, would end a part.
        path.push(if next == '.' { '…' } else { next });
    }
    path
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::identity::extent::Extent;

    fn name(path: &str) -> Name {
        Name::new(path).unwrap()
    }

    #[test]
    fn a_path_has_a_longest_length_and_a_largest_depth() {
        let longest = "x".repeat(Name::PATH_BYTES_MAX);
        assert_eq!(name(&longest).part(), longest);
        let error = Name::new(&format!("{longest}x")).unwrap_err();
        assert!(error.to_string().contains("at most 65535"), "{error}");
        assert!(name(&longest).extend("y").is_err());

        let deepest = vec!["d"; Name::DEPTH_MAX].join(".");
        assert_eq!(name(&deepest).depth(), Name::DEPTH_MAX);
        let error = name(&deepest).extend("d").unwrap_err();
        assert!(error.to_string().contains("at most 1024"), "{error}");
    }

    #[test]
    fn an_endless_iterator_of_parts_is_refused() {
        assert!(Name::from_parts(std::iter::repeat("endless")).is_err());
        assert!(Name::from_parts(std::iter::repeat("")).is_err());
    }

    #[test]
    fn a_refused_path_makes_no_name() {
        assert!(Name::from_parts(["refused", "path", "", "x"]).is_err());
        assert!(Name::from_parts(["refused.path.", "x"]).is_err());
        assert_eq!(INTERNER.find("refused"), None);
        assert_eq!(INTERNER.find("refused.path"), None);
    }

    #[test]
    fn an_error_shows_what_was_refused() {
        let error = Name::new("a\n..b").unwrap_err();
        assert!(error.to_string().starts_with(r#"name: "a\n..b" has an empty part"#), "{error}");
    }

    #[test]
    fn types_that_are_no_paths_are_one_part() {
        assert_eq!(dotted("&alloc::string::String"), "&alloc::string::String");
        assert_eq!(dotted("(i32, alloc::string::String)"), "(i32, alloc::string::String)");
        assert_eq!(dotted("dyn core::fmt::Debug"), "dyn core::fmt::Debug");
        assert_eq!(dotted("fn(a::B) -> c::D"), "fn(a::B) -> c::D");
        assert_eq!(dotted("unsafe extern \"C\" fn(i32, ...)"), "unsafe extern \"C\" fn(i32, ………)");
        assert_eq!(dotted("a::b::C<d::E, fn(f::G) -> h::I>::j"), "a.b.C<d::E, fn(f::G) -> h::I>.j");
        assert_eq!(dotted("a::b::{{closure}}"), "a.b.{{closure}}");
        assert_eq!(dotted("i32"), "i32");
        assert!(Name::is_valid(Name::of::<dyn Fn(&str) -> Vec<i32>>().path()));
        assert!(Name::is_valid(Name::of::<unsafe extern "C" fn(i32, ...)>().path()));
    }

    #[test]
    fn a_literal_is_the_name_of_its_path() {
        let literal = || name!("literal.of.a.name");
        assert_eq!(literal(), name("literal.of.a.name"));
        assert_eq!(literal(), literal());
    }

    fn parts() -> impl Strategy<Value = Vec<String>> {
        // Few letters, so that prefixes and equal names are frequent; some bytes sort before the
        // dot, some after it.
        prop::collection::vec("[-!ab/é]{1,9}", 1..6)
    }

    proptest! {
        #[test]
        fn parts_and_paths_make_the_same_name(parts in parts(), cut in 0_usize..6) {
            let path = parts.join(".");
            let whole = name(&path);
            prop_assert_eq!(whole.path(), &path);
            prop_assert_eq!(whole.depth(), parts.len());
            prop_assert_eq!(whole.part(), parts.last().unwrap());
            prop_assert_eq!(Name::from_parts(&parts).unwrap(), whole);
            prop_assert_eq!(path.parse::<Name>().unwrap(), whole);
            let ancestors: Vec<String> = whole.iter().map(|name| name.path().to_owned()).collect();
            let expected: Vec<String> = (1..=parts.len()).rev().map(|depth| parts[..depth].join(".")).collect();
            prop_assert_eq!(ancestors, expected);
            let cut = cut % parts.len();
            if cut > 0 {
                let head = Name::from_parts(&parts[..cut]).unwrap();
                prop_assert_eq!(head.extend(&parts[cut..].join(".")).unwrap(), whole);
                prop_assert_eq!(head.extend_parts(&parts[cut..]).unwrap(), whole);
                prop_assert_eq!(head.join(Name::from_parts(&parts[cut..]).unwrap()).unwrap(), whole);
            }
        }

        #[test]
        fn names_are_ordered_by_their_parts(left in parts(), right in parts()) {
            let (left_name, right_name) = (name(&left.join(".")), name(&right.join(".")));
            prop_assert_eq!(left_name.cmp(&right_name), left.cmp(&right));
            prop_assert_eq!(left_name == right_name, left == right);
            prop_assert_eq!(left_name.compare_parts(&right_name), left.cmp(&right));
            prop_assert_eq!(left_name.within(&right_name), left.len() > right.len() && left.starts_with(&right));
        }

        #[test]
        fn any_text_is_a_name_or_refused(text in ".{0,40}|[a.]{0,12}") {
            match Name::new(&text) {
                Ok(name) => prop_assert!(name.path() == text && text.split('.').all(|part| !part.is_empty())),
                Err(_) => prop_assert!(text.split('.').any(str::is_empty)),
            }
        }
    }
}
