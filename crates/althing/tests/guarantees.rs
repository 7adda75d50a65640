//! The pages in `docs/guarantees` are true in one respect that a program can see: every test that
//! they name is there.
//!
//! In the last column of their tables, code that looks like a test's or a file's name is looked up
//! in the tree. What the tests prove is for people to judge.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Where tests are; generated and foreign code lies in none of them.
const PLACES: [&str; 4] = ["crates", "examples", "tests", "web/src"];

/// What can be named.
#[derive(Default)]
struct Tree {
    root: PathBuf,
    /// Functions of Rust, cases of TypeScript.
    tests: HashSet<String>,
    /// Files without their endings, and directories.
    modules: HashSet<String>,
}

impl Tree {
    fn read() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut tree = Self { root: root.clone(), ..Self::default() };
        for place in PLACES {
            tree.visit(&root.join(place));
        }
        tree
    }

    fn visit(&mut self, directory: &Path) {
        for entry in std::fs::read_dir(directory).expect("the tree can be read") {
            let path = entry.expect("the tree can be read").path();
            let name =
                path.file_name().and_then(|name| name.to_str()).expect("names are plain text");
            self.modules
                .insert(name.split('.').next().expect("a split has a first part").to_owned());
            if path.is_dir() {
                if !["node_modules", "target", "dist"].contains(&name) {
                    self.visit(&path);
                }
            } else if name.ends_with(".rs") || name.ends_with(".ts") {
                self.read_file(&std::fs::read_to_string(&path).expect("the tree can be read"));
            }
        }
    }

    fn read_file(&mut self, text: &str) {
        for line in text.lines().map(str::trim_start) {
            let function =
                line.split_once("fn ").and_then(|(_, rest)| rest.split(['(', '<']).next());
            let case = line.strip_prefix("it('").and_then(|rest| rest.split('\'').next());
            self.tests.extend(function.into_iter().chain(case).map(str::to_owned));
        }
    }

    /// Whether `name` is a test, the tests of a file (`file::*`, `file::tests`), or a path.
    fn has(&self, name: &str) -> bool {
        let mut parts = name.rsplit("::").flat_map(|part| part.rsplit(": "));
        let last = parts.next().expect("a split has a last part");
        let is_module = |part: &str| match part.contains('/') {
            true => self.path_exists(part),
            false => self.modules.contains(part),
        };
        let is_there = match last {
            "*" | "tests" => true,
            path if path.contains('/') => self.path_exists(path),
            test => self.tests.contains(test),
        };
        is_there && parts.next().is_none_or(is_module)
    }

    fn path_exists(&self, path: &str) -> bool {
        ["", "crates/folkmoot"].iter().any(|base| self.root.join(base).join(path).exists())
    }
}

/// What the last columns of a page's tables show as code and is the name of something to look up.
fn named(page: &str) -> Vec<&str> {
    let rows = page.lines().filter_map(|line| line.strip_prefix('|')?.strip_suffix('|'));
    let columns = rows.filter_map(|row| row.rsplit('|').next());
    let codes = columns.flat_map(|column| column.split('`').skip(1).step_by(2));
    codes.filter(|code| code.contains([':', '_', '/'])).collect()
}

fn check(page: &str, named_min: usize) {
    let tree = Tree::read();
    let text = std::fs::read_to_string(tree.root.join("docs/guarantees").join(page))
        .expect("the tree can be read");
    let named = named(&text);
    assert!(named.len() >= named_min, "{page} names {} tests only", named.len());
    let missing: Vec<_> = named.into_iter().filter(|name| !tree.has(name)).collect();
    assert!(missing.is_empty(), "{page} names what is not there: {missing:#?}");
}

#[test]
fn every_test_that_althings_guarantees_name_is_there() {
    check("althing.md", 80);
}

#[test]
fn every_test_that_folkmoots_guarantees_name_is_there() {
    check("folkmoot.md", 80);
}

#[test]
fn every_test_that_the_relays_guarantees_name_is_there() {
    check("relay.md", 12);
}
