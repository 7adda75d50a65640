//! The guide in `docs/guide`, as documentation tests: every code block of it is compiled and run.
//! Nothing else sees this module.

macro_rules! chapters {
    ($($name:ident)*) => {
        $(
            #[doc = include_str!(concat!("../../../docs/guide/src/", stringify!($name), ".md"))]
            mod $name {}
        )*
    };
}

chapters! {
    addresses
    asking
    axum
    backpressure
    blocking
    by_hand
    delayed
    groups
    guards
    hello
    metrics
    ordering
    passivation
    pitfalls
    reads
    supervision
    testing
    three_nodes
    timers
    topics
    watching
    wire
}
