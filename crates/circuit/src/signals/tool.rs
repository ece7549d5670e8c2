//! Vocabularies of common instruments.

vocabulary! {
    /// A value that only increases.
    counters Counter {
        /// The value was incremented.
        Increment increment Operation;
        /// The value exceeded its range and wrapped around.
        Overflow overflow Outcome;
        /// The value was reset to zero.
        Reset reset Operation;
    }
}

vocabulary! {
    /// A value that increases and decreases.
    gauges Gauge {
        /// The value was incremented.
        Increment increment Operation;
        /// The value was decremented.
        Decrement decrement Operation;
        /// The value exceeded its maximum.
        Overflow overflow Outcome;
        /// The value fell below its minimum.
        Underflow underflow Outcome;
        /// The value was reset to its initial value.
        Reset reset Operation;
    }
}

vocabulary! {
    /// Communication, as one end sees it.
    probes Probe {
        /// A connection was opened.
        Connect connect Operation;
        /// A connection was closed.
        Disconnect disconnect Operation;
        /// Data was sent or received.
        Transfer transfer Operation;
        /// Data was handled.
        Process process Operation;
        /// An operation succeeded.
        Succeed succeed Outcome => Stable;
        /// An operation failed.
        Fail fail Outcome => Degraded;
    }
    ordered false {
        /// Outgoing.
        Outbound;
        /// Incoming.
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
    /// A measurement compared with a reference.
    sensors Sensor {
        /// The value is below the reference.
        Below below Outcome;
        /// The value is near the reference.
        Nominal nominal Outcome;
        /// The value is above the reference.
        Above above Outcome;
    }
    ordered false {
        /// The usual value.
        Baseline;
        /// A limit.
        Threshold;
        /// The desired value.
        Target;
    }
}

vocabulary! {
    /// Severity of a log message.
    logs Log {
        /// A serious failure.
        Severe severe Outcome => Defective;
        /// A potential problem.
        Warning warning Outcome => Degraded;
        /// A normal event.
        Info info Outcome => Stable;
        /// Details for debugging.
        Debug debug Outcome;
    }
}

vocabulary! {
    /// Evaluation of work by a criterion.
    evals Eval {
        /// The criterion is met.
        Pass pass Outcome => Stable;
        /// The criterion is not met.
        Fail fail Outcome => Degraded;
        /// The evaluation was inconclusive.
        Unknown unknown Outcome;
        /// The evaluation was skipped on purpose.
        Skip skip Outcome;
        /// The evaluation itself failed.
        Error error Outcome;
    }
    ordered false {
        /// The result is correct.
        Correctness;
        /// The result is complete.
        Completeness;
        /// The result is supported by evidence.
        Groundedness;
        /// The result is useful.
        Helpfulness;
        /// The result follows the instructions.
        Adherence;
        /// Tools were used well.
        Tooling;
        /// Work was delegated well.
        Routing;
        /// The result is safe.
        Safety;
    }
    verdicts {
        Success: Pass;
        Fail: Fail;
        Unknown: Unknown Error;
    }
}
