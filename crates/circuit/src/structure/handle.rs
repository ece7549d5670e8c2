//! What all handles have in common.

/// Handles of something that lives behind an `Arc` in their field `inner`: a clone is another handle of the same thing, two are
/// equal if they are of the same thing, which is hashed by its subject, and to people a handle is its type and its subject.
///
/// Named are the type, its fields besides `inner`, and where its subject is. Nothing is asked of the type's parameters, as deriving
/// would; `Hash` and `Debug` ask what stands behind `where`, for subjects that are not to be had otherwise.
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

        /// Whether both are handles of the same thing.
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
