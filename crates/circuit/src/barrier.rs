//! A memory barrier that costs nothing on the side that is often used, and a system call on the side that is not.
//!
//! A producer writes an entry and then looks whether the consumer sleeps; the consumer says that it sleeps and then looks for
//! entries. One of them must see the other, which takes a barrier between the write and the look on both sides. [`light`]
//! is the producer's, [`heavy`] the consumer's: it has the kernel put a barrier into every running thread of the process
//! (`membarrier(2)`). Where there is no such call, both are ordinary fences.

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"), not(miri), not(loom)))]
#[allow(
    unsafe_code,
    reason = "the standard library has no name for this system call, and the crate has no dependency"
)]
mod system {
    use std::ffi::{c_int, c_long, c_uint};
    use std::sync::OnceLock;

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

    pub(super) fn is_there() -> bool {
        static REGISTERED: OnceLock<bool> = OnceLock::new();
        *REGISTERED.get_or_init(|| membarrier(REGISTER_PRIVATE_EXPEDITED))
    }

    pub(super) fn heavy() {
        assert!(membarrier(PRIVATE_EXPEDITED), "a registered process may have a barrier");
    }
}

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(miri),
    not(loom)
)))]
mod system {
    pub(super) fn is_there() -> bool {
        false
    }

    pub(super) fn heavy() {}
}

use std::sync::atomic::compiler_fence;

use crate::sync::{Ordering, fence};

/// Whether [`light`] may be told that the other side has a heavy barrier.
pub(crate) fn is_asymmetric() -> bool {
    system::is_there()
}

/// The barrier of the side that comes here often. `asymmetric` is what [`is_asymmetric`] said.
#[inline]
pub(crate) fn light(asymmetric: bool) {
    if asymmetric {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

/// The barrier of the side that comes here seldom.
pub(crate) fn heavy() {
    if is_asymmetric() {
        system::heavy();
    }
    fence(Ordering::SeqCst);
}
