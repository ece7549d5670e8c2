//! Vocabularies of threads that wait for each other.

vocabulary! {
    /// What happens to a lock.
    locks Lock {
        /// It was asked for, without waiting.
        Attempt attempt Operation;
        /// It was asked for, and is waited for.
        Acquire acquire Operation;
        /// It was given.
        Grant grant Outcome => Stable;
        /// It was not given.
        Deny deny Outcome => Degraded;
        /// It was waited for longer than is allowed.
        Timeout timeout Outcome => Degraded;
        /// It was given back.
        Release release Operation;
        /// From reading to writing.
        Upgrade upgrade Operation;
        /// From writing to reading.
        Downgrade downgrade Operation;
        /// Others want it at the same time.
        Contest contest Outcome => Degraded;
        /// Its holder is gone and has not given it back.
        Abandon abandon Outcome => Defective;
    }
    episodes {
        Begin: Attempt Acquire;
        Advance: Grant Upgrade Downgrade Contest;
        End: Deny Timeout Release Abandon;
    }
    verdicts {
        Success: Grant;
        Fail: Deny Timeout Abandon;
        Unknown: Contest;
    }
}

vocabulary! {
    /// What happens to a barrier that threads meet at.
    latches Latch {
        /// Somebody waits at it.
        Await awaits Operation;
        /// Somebody has come.
        Arrive arrive Operation;
        /// All have come, and go on.
        Release release Outcome => Stable;
        /// Somebody waited longer than is allowed.
        Timeout timeout Outcome => Degraded;
        /// It can be used again.
        Reset reset Operation;
        /// Somebody ended who was to come.
        Abandon abandon Outcome => Defective;
    }
    episodes {
        Begin: Await;
        Advance: Arrive Reset;
        End: Release Timeout Abandon;
    }
    verdicts {
        Success: Release;
        Fail: Timeout Abandon;
    }
}

vocabulary! {
    /// Attempts to change what others change too.
    atomics Atomic {
        /// A change was tried.
        Attempt attempt Operation;
        /// It was made.
        Success success Outcome => Stable;
        /// Another one came before it.
        Fail fail Outcome => Degraded;
        /// It is tried again at once.
        Spin spin Operation;
        /// Others are let go first.
        Yield yields Operation;
        /// It is tried again after a while.
        Backoff backoff Operation;
        /// It is waited for asleep.
        Park park Operation => Degraded;
        /// It was tried often enough, and given up.
        Exhaust exhaust Outcome => Defective;
    }
    episodes {
        Begin: Attempt;
        Advance: Fail Spin Yield Backoff Park;
        End: Success Exhaust;
    }
    verdicts {
        Success: Success;
        Fail: Exhaust;
        Unknown: Fail;
    }
}
