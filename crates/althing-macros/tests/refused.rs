//! What `#[actor]` refuses, and where its errors point. Here and not beside the other tests of the
//! attribute, because the programs are built with all that this package's tests depend on.

#[test]
fn refusals_point_at_the_mistake() {
    trybuild::TestCases::new().compile_fail("tests/refusals/*.rs");
}
