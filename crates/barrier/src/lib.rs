//! An asymmetric memory barrier: free on the frequent side, a system call on the rare side.
//!
//! A producer writes an entry and then checks whether the consumer sleeps; the consumer announces
//! that it sleeps and then checks for entries. One of them must see the other, which takes a
//! barrier between the write and the check on both sides. [`light`] is for the frequent side,
//! [`heavy`] for the rare one: it makes the kernel issue a barrier on every running thread of the
//! process (`membarrier(2)`). Without that system call both are ordinary fences. They also become
//! ordinary fences if the kernel starts to refuse the call while the process runs.

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
        // SAFETY: the call reads three integers and accesses no memory of the process.
        unsafe { syscall(MEMBARRIER, command, flags, processor) == 0 }
    }

    /// Registers the process for these barriers.
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

/// Whether [`heavy`] issues the kernel's barrier, so that [`light`] needs no fence.
static ASYMMETRIC: AtomicBool = AtomicBool::new(false);

/// How long after `ASYMMETRIC` is cleared a thread may still act on the old value. By then a
/// processor has made its earlier stores visible to the others: that takes far less time, and a
/// thread that sleeps has done it too.
const AFTERMATH: Duration = Duration::from_millis(1);

/// Registers the process. Call this before any code relies on these barriers.
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

/// Barrier of the frequent side.
#[inline]
pub fn light() {
    if ASYMMETRIC.load(atomic::Ordering::Relaxed) {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

/// Barrier of the rare side.
pub fn heavy() {
    if is_registered() && !system::heavy() {
        give_up();
    }
    fence(Ordering::SeqCst);
}

/// Switches all threads to fences, and returns when all of them use fences.
#[cold]
fn give_up() {
    static GIVING_UP: Mutex<()> = Mutex::new(());
    let _alone = GIVING_UP.lock().unwrap_or_else(PoisonError::into_inner);
    if ASYMMETRIC.swap(false, atomic::Ordering::SeqCst) {
        thread::sleep(AFTERMATH);
    }
}
