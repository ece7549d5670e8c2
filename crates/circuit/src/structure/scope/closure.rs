//! Closures: to do something with a resource once, and then to close it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use super::Inner;
use crate::identity::subject::Id;
use crate::structure::handle::handle;
use crate::structure::resource::Resource;

/// A resource of a scope that can be used once. Made by [`crate::Scope::closure`], with an example there.
///
/// Clones are the same closure.
pub struct Closure<R> {
    inner: Arc<Once<R>>,
}

struct Once<R> {
    resource: R,
    scope: Weak<Inner>,
    consumed: AtomicBool,
}

impl<R: Resource + Clone + 'static> Closure<R> {
    pub(super) fn new(resource: R, scope: &Arc<Inner>) -> Self {
        let once = Once { resource, scope: Arc::downgrade(scope), consumed: AtomicBool::new(false) };
        Self { inner: Arc::new(once) }
    }

    /// Runs the block with the resource and closes that, also if the block panics, and returns what the block did. None, with
    /// nothing run, if the closure was consumed before or its scope is closed.
    pub fn consume<T>(&self, block: impl FnOnce(&R) -> T) -> Option<T> {
        let once = &*self.inner;
        let scope = once.scope.upgrade()?;
        if !scope.hand_over(once.resource.subject().id(), &once.consumed) {
            return None;
        }
        let _closing = Closing { resource: &once.resource, scope: &scope };
        Some(block(&once.resource))
    }
}

impl Inner {
    /// Takes the closure of this resource out of the scope. False if it was taken before, or the scope is closed.
    fn hand_over(&self, id: Id, consumed: &AtomicBool) -> bool {
        let mut state = self.lock();
        if state.closed || consumed.swap(true, Ordering::AcqRel) {
            return false;
        }
        let closure = state.take_closure(id);
        drop(state);
        // Without the lock, as this may be the last handle of the resource.
        drop(closure);
        true
    }
}

/// Closes the resource at the end, however that comes. Until then the scope would do it.
struct Closing<'a, R: Resource> {
    resource: &'a R,
    scope: &'a Inner,
}

impl<R: Resource> Drop for Closing<'_, R> {
    fn drop(&mut self) {
        self.resource.close();
        self.scope.forget(self.resource.subject().id());
    }
}

handle!(Closure<R>, |closure| closure.inner.resource.subject(), where R: Resource);
