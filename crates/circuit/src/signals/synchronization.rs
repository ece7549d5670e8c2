//! Vocabularies of thread synchronisation.

vocabulary! {
    /// Operations of a lock.
    locks Lock {
        /// The lock was requested, without waiting.
        Attempt attempt Operation;
        /// The lock was requested, and the requester waits.
        Acquire acquire Operation;
        /// The lock was granted.
        Grant grant Outcome => Stable;
        /// The lock was denied.
        Deny deny Outcome => Degraded;
        /// The wait exceeded its time limit.
        Timeout timeout Outcome => Degraded;
        /// The lock was released.
        Release release Operation;
        /// The lock was upgraded from reading to writing.
        Upgrade upgrade Operation;
        /// The lock was downgraded from writing to reading.
        Downgrade downgrade Operation;
        /// The lock is contended.
        Contest contest Outcome => Degraded;
        /// The holder ended without releasing the lock.
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
    /// Operations of a latch or barrier.
    latches Latch {
        /// A thread waits.
        Await awaits Operation;
        /// A thread arrived.
        Arrive arrive Operation;
        /// All threads arrived and were released.
        Release release Outcome => Stable;
        /// A wait exceeded its time limit.
        Timeout timeout Outcome => Degraded;
        /// The latch was reset.
        Reset reset Operation;
        /// An expected thread ended before it arrived.
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
    /// Contended atomic operations.
    atomics Atomic {
        /// An update was attempted.
        Attempt attempt Operation;
        /// The update succeeded.
        Success success Outcome => Stable;
        /// A concurrent update came first.
        Fail fail Outcome => Degraded;
        /// The update is retried immediately.
        Spin spin Operation;
        /// The thread yields before it retries.
        Yield yields Operation;
        /// The update is retried after a delay.
        Backoff backoff Operation;
        /// The thread parks before it retries.
        Park park Operation => Degraded;
        /// The retry limit was reached.
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
