//! The guide is whole: each of its chapters stands in its table of contents and is run as a
//! documentation test.

use std::path::Path;

#[test]
fn every_chapter_is_listed_and_tested() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let chapters = package.join("../../docs/guide/src");
    let contents = std::fs::read_to_string(chapters.join("SUMMARY.md")).unwrap();
    let tested = std::fs::read_to_string(package.join("src/guide.rs")).unwrap();
    let tested: Vec<&str> = tested.lines().map(str::trim).collect();
    // A chapter about another crate is tested there.
    let store = std::fs::read_to_string(package.join("../althing-store/src/lib.rs")).unwrap();
    for entry in std::fs::read_dir(&chapters).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(chapter) = name.strip_suffix(".md").filter(|chapter| *chapter != "SUMMARY") else {
            continue;
        };
        assert!(contents.contains(&format!("({name})")), "{name} is not in SUMMARY.md");
        let is_tested =
            tested.contains(&chapter) || store.contains(&format!("guide/src/{name}\")"));
        assert!(is_tested, "{chapter} is not in src/guide.rs");
        let text = std::fs::read_to_string(chapters.join(&name)).unwrap();
        for fence in text.lines().filter(|line| line.starts_with("```") && line.len() > 3) {
            // What a command prints is no code.
            assert!(["```rust", "```text"].contains(&fence), "a block of {name} would not be run");
        }
    }
}
