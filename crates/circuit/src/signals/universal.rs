//! Universal vocabularies, to which the others are lifted.

vocabulary! {
    /// The condition of a subject, as judged from its observations.
    statuses Status {
        /// It is becoming stable, after a start or a recovery.
        Converging converging Outcome => Converging;
        /// It works as expected.
        Stable stable Outcome => Stable;
        /// It is becoming unstable.
        Diverging diverging Outcome => Diverging;
        /// It changes between conditions without a pattern.
        Erratic erratic Outcome => Erratic;
        /// It works partly, or worse than expected.
        Degraded degraded Outcome => Degraded;
        /// Most of its operations fail.
        Defective defective Outcome => Defective;
        /// It does not work.
        Down down Outcome => Down;
    }
    ordered true {
        /// Little evidence.
        Tentative;
        /// Good evidence.
        Measured;
        /// Strong evidence.
        Confirmed;
    }
}

vocabulary! {
    /// How urgent a condition is.
    situations Situation {
        /// No action is needed.
        Normal normal Outcome;
        /// It should be investigated.
        Warning warning Outcome;
        /// Immediate action is needed.
        Critical critical Outcome;
    }
    ordered true {
        /// The condition does not change.
        Constant;
        /// The condition changes moderately.
        Variable;
        /// The condition changes fast and strongly.
        Volatile;
    }
}

vocabulary! {
    /// The parts of an operation that takes time.
    operations Operation {
        /// It began.
        Begin begin Operation;
        /// It advanced.
        Advance advance Operation;
        /// It ended.
        End end Operation;
    }
    episodes {
        Begin: Begin;
        Advance: Advance;
        End: End;
    }
}

vocabulary! {
    /// The result of an operation.
    outcomes Outcome {
        /// It succeeded.
        Success success Outcome;
        /// It failed.
        Fail fail Outcome;
        /// Its result is unknown.
        Unknown unknown Outcome;
    }
    verdicts {
        Success: Success;
        Fail: Fail;
        Unknown: Unknown;
    }
}

vocabulary! {
    /// How close a system is to its constraints.
    systems System {
        /// Within its limits.
        Normal normal Outcome;
        /// At the boundary.
        Limit limit Outcome;
        /// Beyond the boundary.
        Alarm alarm Outcome;
        /// A constraint was violated.
        Fault fault Outcome;
    }
    ordered false {
        /// Capacity.
        Space;
        /// Throughput.
        Flow;
        /// Connectivity.
        Link;
        /// Latency.
        Time;
    }
}

vocabulary! {
    /// The trend of a series.
    trends Trend {
        /// Only the usual variation.
        Stable stable Outcome;
        /// A lasting change in one direction.
        Drift drift Outcome;
        /// A single extreme value.
        Spike spike Outcome;
        /// An oscillation.
        Cycle cycle Outcome;
        /// No pattern.
        Chaos chaos Outcome;
    }
}
