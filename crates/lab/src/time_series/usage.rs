//! Resources of the process, as `getrusage` counts them.

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// What the process has used: since its start, or between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Resources {
    /// Processor time in user mode, in microseconds.
    pub(super) user_us: i64,
    /// Processor time in the kernel, in microseconds.
    pub(super) system_us: i64,
    /// Largest resident size since the start of the process, in KiB; no difference.
    pub(super) peak_kib: i64,
    pub(super) major_faults: i64,
    pub(super) minor_faults: i64,
    pub(super) voluntary_switches: i64,
    pub(super) involuntary_switches: i64,
}

impl Resources {
    pub(super) fn now() -> anyhow::Result<Self> {
        Ok(Self::of(&getrusage(UsageWho::RUSAGE_SELF)?))
    }

    fn of(usage: &Usage) -> Self {
        Resources {
            user_us: usage.user_time().num_microseconds(),
            system_us: usage.system_time().num_microseconds(),
            peak_kib: usage.max_rss(),
            major_faults: usage.major_page_faults(),
            minor_faults: usage.minor_page_faults(),
            voluntary_switches: usage.voluntary_context_switches(),
            involuntary_switches: usage.involuntary_context_switches(),
        }
    }

    /// Adds what was used between two moments.
    pub(super) fn add_between(&mut self, before: &Self, after: &Self) {
        self.user_us += after.user_us - before.user_us;
        self.system_us += after.system_us - before.system_us;
        self.peak_kib = self.peak_kib.max(after.peak_kib);
        self.major_faults += after.major_faults - before.major_faults;
        self.minor_faults += after.minor_faults - before.minor_faults;
        self.voluntary_switches += after.voluntary_switches - before.voluntary_switches;
        self.involuntary_switches += after.involuntary_switches - before.involuntary_switches;
    }
}
