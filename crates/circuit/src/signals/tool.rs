//! Vocabularies of the usual instruments.

vocabulary! {
    /// What only grows.
    counters Counter {
        /// One more.
        Increment increment Operation;
        /// It was larger than it can be, and began anew.
        Overflow overflow Outcome;
        /// It was set to zero.
        Reset reset Operation;
    }
}

vocabulary! {
    /// What grows and shrinks.
    gauges Gauge {
        /// One more.
        Increment increment Operation;
        /// One less.
        Decrement decrement Operation;
        /// It was larger than it can be.
        Overflow overflow Outcome;
        /// It was smaller than it can be.
        Underflow underflow Outcome;
        /// It was set to where it began.
        Reset reset Operation;
    }
}

vocabulary! {
    /// Communication, as one end sees it.
    probes Probe {
        /// A connection was made.
        Connect connect Operation;
        /// A connection was closed.
        Disconnect disconnect Operation;
        /// Data was sent or received.
        Transfer transfer Operation;
        /// Data was handled.
        Process process Operation;
        /// It went well.
        Succeed succeed Outcome => Stable;
        /// It did not.
        Fail fail Outcome => Degraded;
    }
    ordered false {
        /// From here to there.
        Outbound;
        /// From there to here.
        Inbound;
    }
    episodes {
        Begin: Connect;
        Advance: Transfer Process Succeed Fail;
        End: Disconnect;
    }
    verdicts {
        Success: Succeed;
        Fail: Fail;
    }
}

vocabulary! {
    /// A value, compared.
    sensors Sensor {
        /// It is less.
        Below below Outcome;
        /// It is about the same.
        Nominal nominal Outcome;
        /// It is more.
        Above above Outcome;
    }
    ordered false {
        /// Than it usually is.
        Baseline;
        /// Than it may be.
        Threshold;
        /// Than it should be.
        Target;
    }
}

vocabulary! {
    /// How much a message matters.
    logs Log {
        /// Something serious has failed.
        Severe severe Outcome => Defective;
        /// Something may become a problem.
        Warning warning Outcome => Degraded;
        /// Something happened that is normal.
        Info info Outcome => Stable;
        /// Something for who looks for a fault.
        Debug debug Outcome;
    }
}

vocabulary! {
    /// Work that was judged by a criterion.
    evals Eval {
        /// It meets the criterion.
        Pass pass Outcome => Stable;
        /// It does not.
        Fail fail Outcome => Degraded;
        /// It was judged, and it cannot be said.
        Unknown unknown Outcome;
        /// It was not judged, on purpose.
        Skip skip Outcome;
        /// Who was to judge it failed.
        Error error Outcome;
    }
    ordered false {
        /// Whether it is right.
        Correctness;
        /// Whether everything is there.
        Completeness;
        /// Whether there is evidence for it.
        Groundedness;
        /// Whether it is of use.
        Helpfulness;
        /// Whether it does as it was told.
        Adherence;
        /// Whether tools were used well.
        Tooling;
        /// Whether work was passed on well.
        Routing;
        /// Whether it is safe.
        Safety;
    }
    verdicts {
        Success: Pass;
        Fail: Fail;
        Unknown: Unknown Error;
    }
}
