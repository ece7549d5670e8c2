//! Closures: single uses of a resource that close it afterwards.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use super::ScopeInner;
use crate::identity::subject::Id;
use crate::structure::handle::handle;
use crate::structure::resource::Resource;

/// A resource of a scope that can be used once. Made by [`crate::Scope::closure`], which has an
/// example.
///
/// Clones are handles of the same closure.
pub struct Closure<R> {
    inner: Arc<Once<R>>,
}

struct Once<R> {
    resource: R,
    scope: Weak<ScopeInner>,
    consumed: AtomicBool,
}

impl<R: Resource + Clone + 'static> Closure<R> {
    pub(super) fn new(resource: R, scope: &Arc<ScopeInner>) -> Self {
        let once = Once { resource, scope: Arc::downgrade(scope), consumed: AtomicBool::new(false) };
        Self { inner: Arc::new(once) }
    }

    /// Calls the block with the resource, closes the resource, even if the block panics, and
    /// returns the result of the block. Returns none without calling the block if the closure was
    /// consumed before or its scope is closed.
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

impl ScopeInner {
    /// Removes the closure of this resource from the scope. Returns false if it was consumed before
    /// or the scope is closed.
    fn hand_over(&self, id: Id, consumed: &AtomicBool) -> bool {
        let mut state = self.lock();
        if state.closed || consumed.swap(true, Ordering::AcqRel) {
            return false;
        }
        let closure = state.take_closure(id);
        drop(state);
        // Without the lock, as this may drop the last handle of the resource.
        drop(closure);
        true
    }
}

/// Closes the resource when it is dropped, even on a panic. Until then the resource stays in the
/// scope.
struct Closing<'a, R: Resource> {
    resource: &'a R,
    scope: &'a ScopeInner,
}

impl<R: Resource> Drop for Closing<'_, R> {
    fn drop(&mut self) {
        self.resource.close();
        self.scope.forget(self.resource.subject().id());
    }
}

handle!(Closure<R>, |closure| closure.inner.resource.subject(), where R: Resource);
