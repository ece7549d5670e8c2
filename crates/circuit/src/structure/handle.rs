//! The implementation shared by all handles.

/// Implements the traits of a handle whose target is in an `Arc` in its field `inner`. Clones are
/// handles of the same target. Handles are equal if they have the same target, hash by its subject,
/// and print as their type and subject.
///
/// The arguments are the type, its fields besides `inner`, and an expression for the subject.
/// Unlike with derives, the type's parameters need no bounds. The bounds after `where` apply to
/// `Hash` and `Debug`, for subjects that need them.
///
/// ```text
/// handle!(Bank<E>, |bank| &bank.inner.subject);
/// handle!(Subscription<E> { machine }, |subscription| &subscription.inner.subject);
/// handle!(Closure<R>, |closure| closure.inner.resource.subject(), where R: Resource);
/// ```
macro_rules! handle {
    (
        $Handle:ident $(<$parameter:ident>)? $({ $($field:ident),+ })?,
        |$handle:ident| $subject:expr
        $(, where $($bounds:tt)+)?
    ) => {
        impl $(<$parameter>)? Clone for $Handle $(<$parameter>)? {
            fn clone(&self) -> Self {
                Self { inner: ::std::sync::Arc::clone(&self.inner) $($(, $field: self.$field.clone())+)? }
            }
        }

        /// Returns whether both are handles of the same target.
        impl $(<$parameter>)? PartialEq for $Handle $(<$parameter>)? {
            fn eq(&self, other: &Self) -> bool {
                ::std::sync::Arc::ptr_eq(&self.inner, &other.inner)
            }
        }

        impl $(<$parameter>)? Eq for $Handle $(<$parameter>)? {}

        impl $(<$parameter>)? ::std::hash::Hash for $Handle $(<$parameter>)? $(where $($bounds)+)? {
            fn hash<Hash: ::std::hash::Hasher>(&self, state: &mut Hash) {
                let $handle = self;
                ::std::hash::Hash::hash($subject, state);
            }
        }

        impl $(<$parameter>)? ::std::fmt::Debug for $Handle $(<$parameter>)? $(where $($bounds)+)? {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                let $handle = self;
                f.debug_tuple(stringify!($Handle)).field($subject).finish()
            }
        }
    };
}

pub(crate) use handle;
