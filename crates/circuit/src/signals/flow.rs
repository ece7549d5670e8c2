//! Vocabularies of what lets things pass.

vocabulary! {
    /// What passes through stages.
    flows Flow {
        /// It has passed the stage.
        Success success Outcome => Stable;
        /// It has not.
        Fail fail Outcome => Degraded;
    }
    ordered false {
        /// Where it comes in.
        Ingress;
        /// On the way.
        Transit;
        /// Where it goes out.
        Egress;
    }
}

vocabulary! {
    /// Packets and where they go.
    routers Router {
        /// A packet was sent.
        Send send Operation;
        /// A packet came in.
        Receive receive Operation;
        /// A packet went on to the next hop.
        Forward forward Operation => Stable;
        /// It was decided where a packet goes.
        Route route Operation;
        /// A packet was thrown away.
        Drop dropped Operation => Degraded;
        /// A packet was cut into pieces.
        Fragment fragment Operation;
        /// Pieces were put together.
        Reassemble reassemble Operation;
        /// A packet was damaged.
        Corrupt corrupt Outcome => Defective;
        /// A packet came out of order.
        Reorder reorder Outcome;
    }
}

vocabulary! {
    /// How much is let through.
    valves Valve {
        /// A request was let through.
        Pass pass Outcome => Stable;
        /// A request was held back.
        Deny deny Outcome => Degraded;
        /// More may pass.
        Expand expand Operation;
        /// Less may pass.
        Contract contract Operation;
        /// A request was thrown away, there were too many.
        Drop dropped Operation => Defective;
        /// What has piled up is let through.
        Drain drain Operation;
    }
}

vocabulary! {
    /// A breaker that keeps calls from what fails.
    breakers Breaker {
        /// Calls pass.
        Close close Outcome => Stable;
        /// Calls are held back.
        Open open Outcome => Defective;
        /// A few calls may try.
        HalfOpen half_open Outcome;
        /// Too much has failed.
        Trip trip Outcome => Degraded;
        /// A call tries.
        Probe probe Operation;
        /// Somebody has closed it by hand.
        Reset reset Operation;
    }
}

vocabulary! {
    /// Who is let in.
    guards Guard {
        /// Somebody wants in.
        Attempt attempt Operation;
        /// More proof was asked for.
        Challenge challenge Operation;
        /// They were let in.
        Grant grant Outcome => Stable;
        /// They were not.
        Deny deny Outcome => Degraded;
    }
    ordered false {
        /// Who they are.
        Identity;
        /// What they may do.
        Permission;
    }
    verdicts {
        Success: Grant;
        Fail: Deny;
    }
}
