//! What the attribute generates and what it refuses, on token streams, without a compiler.
//!
//! Every `tests/expansions/NAME.rs` is an input, and `NAME.expanded.rs` beside it what comes out,
//! formatted. `EXPANSIONS=rewrite cargo test -p althing-macros` writes them anew; the difference is
//! then read like code.

use std::path::Path;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::spanned::Spanned;

use crate::expand::expand;

/// Splits `#[actor(…)] impl …` into what the compiler passes to the attribute.
fn expand_source(source: &str) -> TokenStream {
    let mut block: syn::ItemImpl = syn::parse_str(source).expect("an impl block");
    let attribute = block.attrs.remove(0);
    let arguments = attribute.meta.require_list().expect("a list").tokens.clone();
    expand(arguments, block.into_token_stream())
}

fn check_expansion(name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expansions");
    let source = std::fs::read_to_string(folder.join(format!("{name}.rs"))).expect("an input");
    let file = syn::parse2(expand_source(&source)).expect("items");
    let expanded = prettyplease::unparse(&file);
    let golden = folder.join(format!("{name}.expanded.rs"));
    if std::env::var("EXPANSIONS").is_ok_and(|wish| wish == "rewrite") {
        std::fs::write(&golden, &expanded).expect("a writable folder");
    }
    let expected = std::fs::read_to_string(&golden).expect("an expected expansion");
    assert_eq!(expanded, expected, "{name} expands differently");
}

#[test]
fn reads_and_writes_become_messages_handlers_and_calls() {
    check_expansion("cart");
}

#[test]
fn generics_guards_events_and_hooks_expand() {
    check_expansion("room");
}

#[test]
fn types_keep_their_meaning_inside_the_messages_module() {
    check_expansion("scopes");
}

#[test]
fn messages_that_travel_get_an_encoding() {
    check_expansion("wire");
}

#[test]
fn what_cannot_travel_is_refused() {
    let actor = |method: &str| format!("#[actor(name = \"a\", wire)] impl A {{ {method} }}");
    let cases = [
        (actor("#[wire(name = \"a b\")] async fn a(&self) {}"), "\"a b\"", "cannot contain ' '"),
        (actor("#[wire(names = 1)] async fn a(&self) {}"), "names", "takes `name"),
        (actor("#[wire(skip)] fn a(&self) {}"), "wire", "only an `async fn`"),
        (
            actor("#[wire(name = \"b\")] async fn a(&self) {} async fn b(&self) {}"),
            "b(",
            "another message is called `b`",
        ),
    ];
    for (source, at, because) in cases {
        refuses(&source, at, because);
    }
    refuses_method("#[wire(skip)] async fn a(&self) {}", "wire", "only an actor with");
}

/// The text that a derive refuses a type with.
fn derive_refusal(source: &str) -> String {
    let expanded = crate::wire::derive::derive(source.parse().expect("tokens"));
    let refusal: syn::ItemMacro = syn::parse2(expanded).expect("a refusal");
    refusal.mac.parse_body::<syn::LitStr>().expect("a text").value()
}

#[test]
fn numbers_on_the_wire_are_checked() {
    let cases = [
        ("struct A { #[wire(2)] a: u8, #[wire(1)] b: u8, c: u8 }", "the number 2 is taken"),
        ("struct A { #[wire(0)] a: u8 }", "numbered from 1"),
        ("struct A { #[wire(19_000)] a: u8 }", "for itself"),
        ("struct A { #[wire(1)] #[wire(2)] a: u8 }", "given twice"),
        ("struct A { #[wire(name = 1)] a: u8 }", "takes the number"),
        ("#[wire(3)] struct A { a: u8 }", "crate = path"),
        ("enum A { #[wire(1)] B, #[wire(1)] C }", "the number 1 is taken"),
        ("enum A { B = 3, C }", "say `#[wire(3)]`"),
        ("enum A {}", "no values"),
        ("union A { a: u8 }", "make it an enum"),
    ];
    for (source, because) in cases {
        let text = derive_refusal(source);
        assert!(text.contains(because), "{source} is refused otherwise: {text}");
    }
}

/// The first refusal's text, and the source from where it points.
fn refusal(source: &str) -> (String, String) {
    let expanded: syn::File = syn::parse2(expand_source(source)).expect("items");
    let complaint = expanded.items.iter().find_map(|item| match item {
        syn::Item::Macro(item) if item.mac.path.segments.last()?.ident == "compile_error" => {
            Some(item.mac.clone())
        }
        _ => None,
    });
    let complaint = complaint.expect("a refusal");
    let text: syn::LitStr = complaint.parse_body().expect("a text");
    let start = complaint.path.span().start();
    let line = source.lines().nth(start.line - 1).unwrap_or_default();
    (text.value(), line.chars().skip(start.column).collect())
}

#[track_caller]
fn refuses(source: &str, at: &str, because: &str) {
    let (text, pointed_at) = refusal(source);
    assert!(text.contains(because), "unexpected refusal: {text}");
    assert!(pointed_at.starts_with(at), "{text}\npoints at: {pointed_at}");
}

/// A refusal of one method in an otherwise fine block.
#[track_caller]
fn refuses_method(method: &str, at: &str, because: &str) {
    refuses(&format!("#[actor(name = \"a\")] impl Cart {{ {method} }}"), at, because);
}

#[test]
fn borrowed_fields_are_refused_with_the_owned_type() {
    let cases = [
        ("async fn a(&self, text: &str) {}", "&str", "take `String` instead of `&str`"),
        ("async fn a(&self, all: &[u8]) {}", "&[u8]", "take `Vec<u8>` instead"),
        ("async fn a(&self, one: Option<&Item>) {}", "&Item", "take `Item` instead"),
        ("async fn a(&self, text: Cow<'_, str>) {}", "'_", "messages are owned"),
        ("async fn a(&self, next: impl Fn()) {}", "impl Fn()", "instead of `impl Trait`"),
        ("async fn a(&self) -> &str { \"\" }", "&str", "replies are owned"),
    ];
    for (method, at, because) in cases {
        refuses_method(method, at, because);
    }
}

#[test]
fn static_references_may_be_sent() {
    let expanded =
        expand_source("#[actor(name = \"a\")] impl A { async fn a(&self, s: &'static str) {} }");
    assert!(!expanded.to_string().contains("compile_error"));
}

#[test]
fn functions_may_borrow_when_they_are_called() {
    for ty in ["fn(&mut Vec<u8>)", "Box<dyn FnOnce(&str) -> u8 + Send>"] {
        let source = format!("#[actor(name = \"a\")] impl A {{ async fn a(&self, f: {ty}) {{}} }}");
        assert!(!expand_source(&source).to_string().contains("compile_error"));
    }
}

#[test]
fn signatures_that_no_message_has_are_refused() {
    let cases = [
        ("async fn a(self) {}", "self", "take `&self` to read"),
        ("async fn a(self: Arc<Self>) {}", "self", "take `&self` to read"),
        ("async fn a<T>(&self, t: T) {}", "T", "not generic"),
        ("async unsafe fn a(&self) {}", "unsafe", "unsafe method"),
        ("async fn a(&self, (x, y): (u8, u8)) {}", "(x, y)", "write a name"),
        ("async fn a(&self, _: u8) {}", "_", "write a name"),
        ("async fn a(&self, ctx: &mut Context<Self>) {}", "&mut Context", "share their context"),
        ("async fn a(&mut self, ctx: Context<Self>) {}", "Context", "the context is lent"),
        ("async fn stop(&mut self) {}", "stop", "has a method `stop`"),
        ("async fn a_2(&self) {} async fn a2(&self) {}", "a2", "like that of `a_2`"),
        ("async fn string(&self) {}", "string", "hide the standard type"),
    ];
    for (method, at, because) in cases {
        refuses_method(method, at, because);
    }
}

#[test]
fn delayed_methods_take_a_reply_slot_and_return_nothing() {
    let cases = [
        ("async fn a(&mut self, r: ReplyTo<u8>) {}", "ReplyTo", "only a `#[delayed]` method"),
        ("#[delayed] async fn a(&mut self) {}", "a(", "takes its reply slot"),
        ("#[delayed] async fn a(&self, r: ReplyTo<u8>) {}", "&self", "takes `&mut self`"),
        ("#[delayed] async fn a(&mut self, r: ReplyTo) {}", "ReplyTo", "needs its type"),
        ("#[delayed] async fn a(&mut self, r: ReplyTo<u8>) -> u8 { 0 }", "u8", "returns nothing"),
        ("#[delayed] fn a(&mut self, r: ReplyTo<u8>) {}", "delayed", "only an `async fn`"),
    ];
    for (method, at, because) in cases {
        refuses_method(method, at, because);
    }
}

#[test]
fn events_and_hooks_have_their_own_signatures() {
    let cases = [
        ("#[event] async fn a(&mut self) {}", "event", "takes the event"),
        ("#[event] async fn a(&mut self, e: Published<u8>) {}", "e:", "no more"),
        ("#[event] #[delayed] async fn a(&mut self) {}", "event", "is one of"),
        ("#[event] #[restrict(x)] async fn a(&mut self, e: &Published<u8>) {}", "x", "no sender"),
        ("async fn started(&mut self) {}", "started", "returns `Result<(), ActorError>`"),
        ("fn started(&mut self) {}", "started", "make it an `async fn`"),
        (
            "async fn terminated(&mut self, a: A, b: B) {}",
            "b:",
            "takes the context and `other: Terminated`",
        ),
    ];
    for (method, at, because) in cases {
        refuses_method(method, at, because);
    }
}

#[test]
fn a_derive_on_a_method_is_of_its_message_alone() {
    let source = "#[actor(name = \"a\", derive(Debug))] impl A {
        #[derive(Clone, Debug)] async fn tick(&mut self) {}
        async fn tock(&mut self) {}
    }";
    let expanded = expand_source(source).to_string();
    assert!(expanded.contains("# [derive (Debug , Clone)] pub (super) struct Tick"), "{expanded}");
    assert!(expanded.contains("# [derive (Debug)] pub (super) struct Tock"), "{expanded}");
    let cases = [
        ("#[derive(Clone)] fn a(&self) {}", "derive", "only an `async fn`"),
        ("#[derive(Clone)] async fn stopping(&mut self) {}", "derive", "this is for messages"),
        (
            "#[event] #[wire(skip)] async fn a(&mut self, e: &Published<u8>) {}",
            "wire",
            "this is for",
        ),
    ];
    for (method, at, because) in cases {
        refuses_method(method, at, because);
    }
}

#[test]
fn guards_are_checked_where_they_stand() {
    let cases = [
        ("#[rate_limit(burst = 3)] async fn a(&self) {}", "rate_limit", "needs `per_second`"),
        ("#[rate_limit(per_second = 0)] async fn a(&self) {}", "0", "admit nothing"),
        ("#[rate_limit(per_minute = 1)] async fn a(&self) {}", "per_minute", "`burst`"),
        ("#[restrict(x)] #[restrict(y)] async fn a(&self) {}", "restrict(y)", "given twice"),
        ("#[restrict(x)] fn a(&self) {}", "x", "only an `async fn`"),
    ];
    for (method, at, because) in cases {
        refuses_method(method, at, because);
    }
}

#[test]
fn the_attribute_names_what_it_lacks() {
    let cases = [
        ("#[actor(version = 1)] impl A {}", "", "name on the wire"),
        ("#[actor(name = \"\")] impl A {}", "\"\"", "cannot be empty"),
        ("#[actor(name = \"a b\")] impl A {}", "\"a b\"", "cannot contain ' '"),
        ("#[actor(name = \"a\", mailbox = 3)] impl A {}", "mailbox", "no argument `mailbox`"),
        ("#[actor(name = \"a\", name = \"b\")] impl A {}", "name = \"b\"", "given twice"),
        ("#[actor(name = \"a\")] impl Debug for A {}", "Debug", "inherent"),
        ("#[actor(name = \"a\")] impl<'a> A<'a> {}", "'a", "owns its state"),
        ("#[actor(name = \"a\")] impl (A, B) {}", "(A, B)", "a struct or an enum"),
    ];
    for (source, at, because) in cases {
        refuses(source, at, because);
    }
}

#[test]
fn a_bound_that_the_message_cannot_state_is_refused() {
    let source = "#[actor(name = \"a\")] impl<S: Store<T>, T> A<S, T> { async fn put(&mut self, r: S::Row) {} }";
    refuses(source, "put", "names `T`");
}

#[test]
fn every_mistake_is_reported_at_once_and_spares_the_rest() {
    let source = "#[actor(name = \"\")] impl A { async fn a(self) {} async fn b(&self, t: &str) {} async fn c(&self) {} }";
    let expanded = expand_source(source).to_string();
    assert_eq!(expanded.matches("compile_error").count(), 3);
    for kept in ["async fn b", "Actor for A", "a_messages :: C > for A"] {
        assert!(expanded.contains(kept), "no `{kept}` in {expanded}");
    }
}
