//! Vocabularies of storage and transfer of data.

vocabulary! {
    /// Operations of a queue.
    queues Queue {
        /// An item was added.
        Enqueue enqueue Operation => Stable;
        /// An item was removed.
        Dequeue dequeue Operation;
        /// The queue was full.
        Overflow overflow Outcome => Degraded;
        /// The queue was empty.
        Underflow underflow Outcome;
    }
}

vocabulary! {
    /// Operations of a stack.
    stacks Stack {
        /// An item was pushed.
        Push push Operation => Stable;
        /// An item was popped.
        Pop pop Operation;
        /// The stack was full.
        Overflow overflow Outcome => Degraded;
        /// The stack was empty.
        Underflow underflow Outcome;
    }
}

vocabulary! {
    /// Operations of a cache.
    caches Cache {
        /// An entry was looked up.
        Lookup lookup Operation;
        /// The entry was found.
        Hit hit Outcome => Stable;
        /// The entry was not found.
        Miss miss Outcome => Degraded;
        /// An entry was added or replaced.
        Store store Operation;
        /// An entry was evicted to make space.
        Evict evict Outcome;
        /// An entry expired.
        Expire expire Outcome;
        /// An entry was removed explicitly.
        Remove remove Operation;
    }
}

vocabulary! {
    /// Stages of data processing.
    pipelines Pipeline {
        /// Data arrived.
        Input input Operation;
        /// Data was emitted.
        Output output Operation => Stable;
        /// Data was transformed.
        Transform transform Operation;
        /// Data was filtered out.
        Filter filter Operation;
        /// Data was aggregated.
        Aggregate aggregate Operation;
        /// Data was buffered.
        Buffer buffer Operation;
        /// The sender was slowed down.
        Backpressure backpressure Operation;
        /// A buffer was full.
        Overflow overflow Outcome => Degraded;
        /// Progress was saved.
        Checkpoint checkpoint Operation;
        /// The event-time watermark advanced.
        Watermark watermark Operation;
        /// Processing is behind.
        Lag lag Outcome => Degraded;
        /// Data was skipped.
        Skip skip Outcome;
    }
}

vocabulary! {
    /// The life cycle of a message in a broker.
    messages Message {
        /// It was published.
        Publish publish Operation;
        /// It was delivered to a consumer.
        Deliver deliver Operation;
        /// The consumer acknowledged it.
        Ack ack Outcome => Stable;
        /// The consumer rejected it, or failed.
        Nack nack Outcome => Degraded;
        /// It was delivered again.
        Redeliver redeliver Operation;
        /// It reached the delivery limit and was set aside.
        Exhaust exhaust Outcome => Defective;
        /// It expired before delivery.
        Expire expire Outcome => Degraded;
    }
    ordered false {
        /// As the producer sees it.
        Producer;
        /// As the broker sees it.
        Broker;
        /// As the consumer sees it.
        Consumer;
    }
}
