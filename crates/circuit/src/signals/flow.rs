//! Vocabularies of traffic and its control.

vocabulary! {
    /// Items that pass through stages.
    flows Flow {
        /// The item passed the stage.
        Success success Outcome => Stable;
        /// The item did not pass the stage.
        Fail fail Outcome => Degraded;
    }
    ordered false {
        /// The entry stage.
        Ingress;
        /// An intermediate stage.
        Transit;
        /// The exit stage.
        Egress;
    }
}

vocabulary! {
    /// Packets and their routes.
    routers Router {
        /// A packet was sent.
        Send send Operation;
        /// A packet was received.
        Receive receive Operation;
        /// A packet was forwarded to the next hop.
        Forward forward Operation => Stable;
        /// A route was chosen for a packet.
        Route route Operation;
        /// A packet was dropped.
        Drop dropped Operation => Degraded;
        /// A packet was fragmented.
        Fragment fragment Operation;
        /// A packet was reassembled.
        Reassemble reassemble Operation;
        /// A packet was corrupted.
        Corrupt corrupt Outcome => Defective;
        /// A packet arrived out of order.
        Reorder reorder Outcome;
    }
}

vocabulary! {
    /// Admission control of requests.
    valves Valve {
        /// A request was admitted.
        Pass pass Outcome => Stable;
        /// A request was denied.
        Deny deny Outcome => Degraded;
        /// The limit was raised.
        Expand expand Operation;
        /// The limit was lowered.
        Contract contract Operation;
        /// A request was dropped because of overload.
        Drop dropped Operation => Defective;
        /// The backlog is being drained.
        Drain drain Operation;
    }
}

vocabulary! {
    /// A circuit breaker, which stops calls to a failing target.
    breakers Breaker {
        /// Calls pass.
        Close close Outcome => Stable;
        /// Calls are blocked.
        Open open Outcome => Defective;
        /// A few calls may test the target.
        HalfOpen half_open Outcome;
        /// The failure threshold was reached.
        Trip trip Outcome => Degraded;
        /// A call tests the target.
        Probe probe Operation;
        /// The breaker was reset manually.
        Reset reset Operation;
    }
}

vocabulary! {
    /// Access control.
    guards Guard {
        /// Access was attempted.
        Attempt attempt Operation;
        /// More proof was requested.
        Challenge challenge Operation;
        /// Access was granted.
        Grant grant Outcome => Stable;
        /// Access was denied.
        Deny deny Outcome => Degraded;
    }
    ordered false {
        /// Authentication.
        Identity;
        /// Authorisation.
        Permission;
    }
    verdicts {
        Success: Grant;
        Fail: Deny;
    }
}
