//! Runs a task on the thread of a test.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Unparks the calling thread.
pub(crate) fn unparking() -> Waker {
    Waker::from(Arc::new(Unpark(thread::current())))
}

/// The output of the future. The thread is parked while the future is pending.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = unparking();
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}
