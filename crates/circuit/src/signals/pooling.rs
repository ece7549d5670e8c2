//! Vocabularies of shared, limited resources.

vocabulary! {
    /// Requests for units of a resource.
    resources Resource {
        /// Units were requested, without waiting.
        Attempt attempt Operation;
        /// Units were requested, and the requester waits.
        Acquire acquire Operation;
        /// Units were granted.
        Grant grant Outcome => Stable;
        /// Units were denied, because too few are available.
        Deny deny Outcome => Degraded;
        /// The wait exceeded its time limit.
        Timeout timeout Outcome => Degraded;
        /// Units were released.
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
    /// Resources held for a limited time.
    leases Lease {
        /// A lease was requested.
        Acquire acquire Operation;
        /// The lease was denied.
        Deny deny Outcome => Degraded;
        /// The lease was extended.
        Extend extend Outcome => Stable;
        /// The lease expired.
        Expire expire Outcome => Degraded;
        /// The lease was granted.
        Grant grant Outcome => Stable;
        /// The lease was checked for validity.
        Probe probe Operation;
        /// The lease was released early.
        Release release Operation;
        /// An extension was requested.
        Renew renew Operation;
        /// The lease was revoked.
        Revoke revoke Operation => Defective;
    }
    ordered false {
        /// As the lessor sees it.
        Lessor;
        /// As the lessee sees it.
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
    /// A pool of reusable resources.
    pools Pool {
        /// The pool was enlarged.
        Expand expand Operation;
        /// The pool was reduced.
        Contract contract Operation;
        /// A resource was borrowed.
        Borrow borrow Operation;
        /// A resource was returned.
        Reclaim reclaim Operation;
    }
}

vocabulary! {
    /// An exchange between two parties.
    exchanges Exchange {
        /// A party committed itself.
        Contract contract Operation;
        /// The goods were transferred.
        Transfer transfer Operation;
    }
    ordered false {
        /// As the provider sees it.
        Provider;
        /// As the receiver sees it.
        Receiver;
    }
}
