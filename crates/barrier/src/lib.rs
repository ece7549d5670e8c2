//! A memory barrier that costs nothing on the side that is often used, and a system call on the side that is not.
//!
//! A producer writes an entry and then looks whether the consumer sleeps; the consumer says that it sleeps and then looks for
//! entries. One of them must see the other, which takes a barrier between the write and the look on both sides. [`light`]
//! is for the side that comes often, [`heavy`] for the other: it has the kernel put a barrier into every running thread of the process
//! (`membarrier(2)`). Where there is no such call, both are ordinary fences; and so they are from the moment on that the kernel
//! refuses it, which it may have been told to once the process had begun.

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"), not(miri), not(loom)))]
#[allow(
    unsafe_code,
    reason = "the standard library has no name for this system call, and the crate has no dependency"
)]
mod system {
    use std::ffi::{c_int, c_long, c_uint};

    #[cfg(target_arch = "x86_64")]
    const MEMBARRIER: c_long = 324;
    #[cfg(target_arch = "aarch64")]
    const MEMBARRIER: c_long = 283;
    const PRIVATE_EXPEDITED: c_int = 1 << 3;
    const REGISTER_PRIVATE_EXPEDITED: c_int = 1 << 4;

    unsafe extern "C" {
        fn syscall(number: c_long, ...) -> c_long;
    }

    fn membarrier(command: c_int) -> bool {
        let (flags, processor): (c_uint, c_int) = (0, 0);
        // SAFETY: the call reads three integers and touches no memory of ours.
        unsafe { syscall(MEMBARRIER, command, flags, processor) == 0 }
    }

    /// Asks for the right to have barriers.
    pub(super) fn register() -> bool {
        membarrier(REGISTER_PRIVATE_EXPEDITED)
    }

    pub(super) fn heavy() -> bool {
        membarrier(PRIVATE_EXPEDITED)
    }
}

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(miri),
    not(loom)
)))]
mod system {
    pub(super) fn register() -> bool {
        false
    }

    pub(super) fn heavy() -> bool {
        false
    }
}

#[cfg(loom)]
use loom::sync::atomic::fence;
#[cfg(not(loom))]
use std::sync::atomic::fence;
use std::sync::atomic::{self, AtomicBool, Ordering, compiler_fence};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// Whether the side that comes here seldom has the kernel's barrier.
static ASYMMETRIC: AtomicBool = AtomicBool::new(false);

/// How long after it has stopped to be so nobody acts on it any more: what a processor has not shown the others for so long it will
/// have shown them when a thread of it sleeps, and far sooner.
const AFTERMATH: Duration = Duration::from_millis(1);

/// To be called before anything relies on these barriers.
pub fn prepare() {
    is_registered();
}

fn is_registered() -> bool {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    *REGISTERED.get_or_init(|| {
        let is_registered = system::register();
        ASYMMETRIC.store(is_registered, atomic::Ordering::SeqCst);
        is_registered
    })
}

/// The barrier of the side that comes here often.
#[inline]
pub fn light() {
    if ASYMMETRIC.load(atomic::Ordering::Relaxed) {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

/// The barrier of the side that comes here seldom.
pub fn heavy() {
    if is_registered() && !system::heavy() {
        give_up();
    }
    fence(Ordering::SeqCst);
}

/// Has everybody use fences from here on, and returns when everybody does.
#[cold]
fn give_up() {
    static GIVING_UP: Mutex<()> = Mutex::new(());
    let _alone = GIVING_UP.lock().unwrap_or_else(PoisonError::into_inner);
    if ASYMMETRIC.swap(false, atomic::Ordering::SeqCst) {
        thread::sleep(AFTERMATH);
    }
}
