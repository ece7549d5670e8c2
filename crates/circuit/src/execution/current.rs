//! Identity of an execution context: what runs this code.

use std::fmt;
use std::thread;

use crate::Name;
use crate::Subject;
use crate::identity::subject::Kind;
use crate::name;

/// An execution context: an operating system thread, or a circuit.
///
/// It is the same for the lifetime of its context, and may be kept for longer. A current equals
/// only itself. Cloning one counts a reference.
///
/// ```
/// use std::thread;
/// use tidemark_circuit::{Current, Kind};
///
/// let here = Current::of_thread();
/// assert_eq!(here, Current::of_thread());
/// assert_eq!(here.subject().kind(), Kind::Current);
///
/// let there = thread::spawn(Current::of_thread).join().unwrap();
/// assert_ne!(here, there);
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Current(Subject);

impl Current {
    /// Makes a context of this name, enclosed by this subject.
    pub(crate) fn new(name: Name, enclosure: Option<Subject>) -> Self {
        Self(Subject::new(Kind::Current, name, enclosure))
    }

    /// Returns the context of the calling thread, made on the first call. It has the thread's name
    /// if that is a valid [`Name`], otherwise `thread`.
    ///
    /// While the thread ends and its thread-locals are already destroyed, each call makes a new
    /// context.
    pub fn of_thread() -> Self {
        thread_local! {
            static CURRENT: Current = Current::made_for_thread();
        }
        CURRENT.try_with(Clone::clone).unwrap_or_else(|_| Self::made_for_thread())
    }

    /// Returns the context with this subject, if the subject is one of a context.
    pub(crate) fn of_subject(subject: Subject) -> Option<Self> {
        (subject.kind() == Kind::Current).then_some(Self(subject))
    }

    /// Identity of the context.
    pub fn subject(&self) -> &Subject {
        &self.0
    }

    fn made_for_thread() -> Self {
        let name = thread::current().name().and_then(|name| Name::new(name).ok());
        Self::new(name.unwrap_or_else(|| name!("thread")), Some(Subject::cortex().clone()))
    }
}

impl fmt::Display for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::mpsc;

    use super::*;

    fn current_of(name: &str) -> Current {
        thread::Builder::new().name(name.to_owned()).spawn(Current::of_thread).unwrap().join().unwrap()
    }

    #[test]
    fn a_thread_gives_its_name_if_it_is_one() {
        assert_eq!(current_of("worker.7").to_string(), "cortex:cortex/current:worker.7");
        assert_eq!(current_of("who... me?").subject().name(), name!("thread"));
        assert_eq!(thread::spawn(Current::of_thread).join().unwrap().subject().name(), name!("thread"));
    }

    #[test]
    fn a_thread_has_a_current_even_while_it_ends() {
        struct AtEnd(mpsc::Sender<Current>);

        impl Drop for AtEnd {
            fn drop(&mut self) {
                self.0.send(Current::of_thread()).unwrap();
            }
        }

        thread_local! {
            static BEFORE: RefCell<Option<AtEnd>> = const { RefCell::new(None) };
            static AFTER: RefCell<Option<AtEnd>> = const { RefCell::new(None) };
        }

        let (send, receive) = mpsc::channel();
        thread::spawn(move || {
            // Thread-locals may be destroyed in either order: for one of the two the current is
            // already gone.
            BEFORE.set(Some(AtEnd(send.clone())));
            Current::of_thread();
            AFTER.set(Some(AtEnd(send)));
        });
        let kinds: Vec<Kind> = receive.iter().map(|current| current.subject().kind()).collect();
        assert_eq!(kinds, [Kind::Current, Kind::Current]);
    }

    #[test]
    fn a_context_lies_where_its_maker_says() {
        let circuit = Subject::new(Kind::Circuit, name!("engine"), Some(Subject::cortex().clone()));
        let current = Current::new(name!("engine"), Some(circuit.clone()));
        assert_eq!(current.subject().enclosure(), Some(&circuit));
        assert_eq!(current.subject().depth(), 3);
        assert_eq!(current, current.clone());
        assert_ne!(current, Current::new(name!("engine"), Some(circuit)));
    }
}
