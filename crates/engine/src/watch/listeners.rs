//! Listeners that are notified of one query's emissions: most queries have one.

/// The listeners of a query, or since when there is none.
#[derive(Debug)]
pub(super) enum Listeners {
    /// Microseconds since 1970.
    NoneSince(u64),
    One(Listener),
    #[expect(clippy::box_collection, reason = "a query with one listener is not to pay for several")]
    Several(Box<Vec<Listener>>),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Listener {
    number: usize,
    /// It has been notified, and has not looked since.
    is_notified: bool,
}

const _: () = assert!(size_of::<Listeners>() == 16, "as large as one listener");

impl Listeners {
    /// Adds a listener, unless it is present.
    pub(super) fn join(&mut self, number: usize) {
        if self.as_slice().iter().any(|other| other.number == number) {
            return;
        }
        let listener = Listener { number, is_notified: false };
        match self {
            Self::NoneSince(_) => *self = Self::One(listener),
            Self::One(first) => *self = Self::Several(Box::new(vec![*first, listener])),
            Self::Several(listeners) => listeners.push(listener),
        }
    }

    /// Removes a listener, at `now_us`.
    pub(super) fn leave(&mut self, number: usize, now_us: u64) {
        if let Self::Several(listeners) = self {
            listeners.retain(|other| other.number != number);
            if let [left] = listeners[..] {
                *self = Self::One(left);
            }
        } else if matches!(self, Self::One(listener) if listener.number == number) {
            *self = Self::NoneSince(now_us);
        }
    }

    /// Records that a listener looks: the next emission notifies it again.
    pub(super) fn look(&mut self, number: usize) {
        if let Some(listener) = self.as_mut_slice().iter_mut().find(|other| other.number == number) {
            listener.is_notified = false;
        }
    }

    /// Notifies the listeners that have looked since their last notification.
    pub(super) fn notify(&mut self, mut notify: impl FnMut(usize)) {
        for listener in self.as_mut_slice() {
            if !std::mem::replace(&mut listener.is_notified, true) {
                notify(listener.number);
            }
        }
    }

    /// Returns since when there is no listener, if there is none.
    pub(super) fn none_since_us(&self) -> Option<u64> {
        if let Self::NoneSince(at) = self { Some(*at) } else { None }
    }

    /// Restarts the time without a listener, if there is none.
    pub(super) fn begin_anew(&mut self, now_us: u64) {
        if let Self::NoneSince(at) = self {
            *at = now_us;
        }
    }

    fn as_slice(&self) -> &[Listener] {
        match self {
            Self::NoneSince(_) => &[],
            Self::One(listener) => std::slice::from_ref(listener),
            Self::Several(listeners) => listeners,
        }
    }

    fn as_mut_slice(&mut self) -> &mut [Listener] {
        match self {
            Self::NoneSince(_) => &mut [],
            Self::One(listener) => std::slice::from_mut(listener),
            Self::Several(listeners) => listeners,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notified(listeners: &mut Listeners) -> Vec<usize> {
        let mut notified = Vec::new();
        listeners.notify(|number| notified.push(number));
        notified
    }

    #[test]
    fn a_listener_that_has_not_read_is_not_notified_again() {
        let mut listeners = Listeners::NoneSince(7);
        assert_eq!(notified(&mut listeners), [0; 0]);
        listeners.join(3);
        listeners.join(3);
        assert_eq!(notified(&mut listeners), [3]);
        listeners.join(5);
        assert_eq!(notified(&mut listeners), [5]);
        listeners.look(3);
        assert_eq!(notified(&mut listeners), [3]);
        listeners.look(5);
        listeners.leave(3, 8);
        assert_eq!(notified(&mut listeners), [5]);
    }

    #[test]
    fn the_last_to_leave_says_since_when_there_is_none() {
        let mut listeners = Listeners::NoneSince(7);
        listeners.begin_anew(8);
        assert_eq!(listeners.none_since_us(), Some(8));
        [1, 2, 3].into_iter().for_each(|number| listeners.join(number));
        [1, 3, 9].into_iter().for_each(|number| listeners.leave(number, 10));
        listeners.begin_anew(11);
        assert_eq!(listeners.none_since_us(), None);
        listeners.leave(2, 12);
        assert_eq!(listeners.none_since_us(), Some(12));
        listeners.leave(2, 13);
        assert_eq!(listeners.none_since_us(), Some(12), "it has left already");
    }
}
