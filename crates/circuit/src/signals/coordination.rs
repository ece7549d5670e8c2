//! Vocabularies of those who act together.

vocabulary! {
    /// Promises, and what becomes of them.
    agents Agent {
        /// A promise can be had.
        Offer offer Operation;
        /// A promise was made.
        Promise promise Operation;
        /// A promise was accepted.
        Accept accept Operation;
        /// A promise was kept.
        Fulfill fulfill Outcome => Stable;
        /// A promise was taken back.
        Retract retract Operation;
        /// A promise was broken.
        Breach breach Outcome => Degraded;
        /// It was asked what promises can be had.
        Inquire inquire Operation;
        /// A promise is being watched.
        Observe observe Operation;
        /// A promise is being relied on.
        Depend depend Operation;
        /// A promise was found to hold.
        Validate validate Operation;
    }
    ordered false {
        /// As who promises sees it.
        Promiser;
        /// As who is promised sees it.
        Promisee;
    }
    episodes {
        Begin: Offer;
        Advance: Promise Accept Inquire Observe Depend Validate;
        End: Fulfill Retract Breach;
    }
    verdicts {
        Success: Fulfill;
        Fail: Breach;
    }
}

vocabulary! {
    /// What is said between those who work together.
    actors Actor {
        /// A question.
        Ask ask Operation;
        /// A claim.
        Affirm affirm Operation;
        /// A reason.
        Explain explain Operation;
        /// A fact.
        Report report Operation;
        /// A request between equals.
        Request request Operation;
        /// An order.
        Command command Operation;
        /// It was heard and understood.
        Acknowledge acknowledge Operation;
        /// A disagreement.
        Deny deny Operation;
        /// What was meant.
        Clarify clarify Operation;
        /// A commitment.
        Promise promise Operation;
        /// What was promised is here.
        Deliver deliver Operation;
    }
}

vocabulary! {
    /// Who belongs to a group, and who leads it.
    members Member {
        /// A member came.
        Join join Operation;
        /// A member went.
        Leave leave Operation;
        /// A member may have failed.
        Suspect suspect Outcome => Degraded;
        /// A suspected member is alive.
        Refute refute Outcome => Stable;
        /// A failed member was removed.
        Evict evict Outcome;
        /// A member became the leader.
        Elect elect Outcome => Stable;
        /// The leader stepped down.
        Resign resign Operation;
    }
    ordered false {
        /// As the member itself says.
        Own;
        /// As another member says.
        Peer;
    }
}
