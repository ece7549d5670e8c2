//! Vocabularies of what there is not enough of for everybody at once.

vocabulary! {
    /// Requests for units of something.
    resources Resource {
        /// Units were asked for, without waiting.
        Attempt attempt Operation;
        /// Units were asked for, and are waited for.
        Acquire acquire Operation;
        /// They were given.
        Grant grant Outcome => Stable;
        /// There were not enough.
        Deny deny Outcome => Degraded;
        /// They were waited for longer than is allowed.
        Timeout timeout Outcome => Degraded;
        /// They were given back.
        Release release Operation;
    }
    episodes {
        Begin: Attempt Acquire;
        Advance: Grant;
        End: Deny Timeout Release;
    }
    verdicts {
        Success: Grant;
        Fail: Deny Timeout;
    }
}

vocabulary! {
    /// What is held for a time.
    leases Lease {
        /// It was asked for.
        Acquire acquire Operation;
        /// It was not given.
        Deny deny Outcome => Degraded;
        /// It was made to last longer.
        Extend extend Outcome => Stable;
        /// Its time is over.
        Expire expire Outcome => Degraded;
        /// It was given.
        Grant grant Outcome => Stable;
        /// It was asked whether it still holds.
        Probe probe Operation;
        /// It was given back before its time.
        Release release Operation;
        /// It was asked for longer.
        Renew renew Operation;
        /// It was taken away.
        Revoke revoke Operation => Defective;
    }
    ordered false {
        /// As who gives it sees it.
        Lessor;
        /// As who holds it sees it.
        Lessee;
    }
    episodes {
        Begin: Acquire;
        Advance: Extend Grant Probe Renew;
        End: Deny Expire Release Revoke;
    }
    verdicts {
        Success: Extend Grant;
        Fail: Deny Expire;
    }
}

vocabulary! {
    /// A pool of things to be borrowed.
    pools Pool {
        /// It has become larger.
        Expand expand Operation;
        /// It has become smaller.
        Contract contract Operation;
        /// Something was borrowed.
        Borrow borrow Operation;
        /// Something came back.
        Reclaim reclaim Operation;
    }
}

vocabulary! {
    /// Two who give each other something.
    exchanges Exchange {
        /// A party has committed itself.
        Contract contract Operation;
        /// Something changes hands.
        Transfer transfer Operation;
    }
    ordered false {
        /// As who gives sees it.
        Provider;
        /// As who is given sees it.
        Receiver;
    }
}
