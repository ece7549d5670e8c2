//! Vocabularies of cooperation.

vocabulary! {
    /// The life cycle of promises.
    agents Agent {
        /// A promise was offered.
        Offer offer Operation;
        /// A promise was made.
        Promise promise Operation;
        /// A promise was accepted.
        Accept accept Operation;
        /// A promise was kept.
        Fulfill fulfill Outcome => Stable;
        /// A promise was withdrawn.
        Retract retract Operation;
        /// A promise was broken.
        Breach breach Outcome => Degraded;
        /// The available promises were requested.
        Inquire inquire Operation;
        /// A promise is being observed.
        Observe observe Operation;
        /// A promise is being relied on.
        Depend depend Operation;
        /// A promise was found to hold.
        Validate validate Operation;
    }
    ordered false {
        /// As the promiser sees it.
        Promiser;
        /// As the promisee sees it.
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
    /// Speech acts between cooperating actors.
    actors Actor {
        /// A question was asked.
        Ask ask Operation;
        /// A claim was made.
        Affirm affirm Operation;
        /// A reason was given.
        Explain explain Operation;
        /// A fact was reported.
        Report report Operation;
        /// A request was made to a peer.
        Request request Operation;
        /// A command was given.
        Command command Operation;
        /// A message was understood.
        Acknowledge acknowledge Operation;
        /// A statement was rejected.
        Deny deny Operation;
        /// A statement was clarified.
        Clarify clarify Operation;
        /// A commitment was made.
        Promise promise Operation;
        /// A promised result was delivered.
        Deliver deliver Operation;
    }
}

vocabulary! {
    /// Group membership and leadership.
    members Member {
        /// A member joined.
        Join join Operation;
        /// A member left.
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
        /// As the member itself reports it.
        Own;
        /// As another member reports it.
        Peer;
    }
}
