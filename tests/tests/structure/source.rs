//! The project's Rust files as lines of code: what a scan for names looks at.

use std::fs;
use std::path::Path;

use crate::root;

/// One Rust file of the workspace.
pub(crate) struct Source {
    /// Its path from the root, with `/`.
    pub(crate) path: String,
    /// Its text.
    pub(crate) text: String,
}

impl Source {
    /// Whether it lies in the folder, or is the module, that `place` names, such as `core/src/wire`.
    pub(crate) fn is_in(&self, place: &str) -> bool {
        self.path.strip_prefix(place).is_some_and(|rest| rest.starts_with('/') || rest == ".rs")
    }

    /// Its code with the number of each line, from 1: without comments, and without tests.
    pub(crate) fn code(&self) -> Vec<(usize, &str)> {
        let is_test =
            self.path.ends_with("/tests.rs") || self.path.contains("/src/") && self.path.contains("/tests/");
        if is_test {
            return Vec::new();
        }
        let lines: Vec<&str> = self.text.lines().collect();
        // An inline module of tests is the last item of its file.
        let tests = lines.windows(2).position(|pair| pair[0] == "#[cfg(test)]" && pair[1] == "mod tests {");
        let code = &lines[..tests.unwrap_or(lines.len())];
        (1..)
            .zip(code.iter().map(|line| without_comment(line)))
            .filter(|(_, line)| !line.is_empty())
            .collect()
    }

    /// A finding in this file.
    pub(crate) fn at(&self, line: usize, what: &str) -> String {
        format!("{}:{line}: {what}", self.path)
    }
}

/// Every Rust file of the workspace in the order of the paths.
pub(crate) fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    collect(root(), &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(found.iter().any(|source| source.path == "core/src/lib.rs"), "looked in the wrong place");
    found
}

fn collect(folder: &Path, found: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                collect(&path, found);
            }
        } else if name.ends_with(".rs") {
            let parts = path.strip_prefix(root()).unwrap().iter().map(|part| part.to_string_lossy());
            let path_from_root = parts.collect::<Vec<_>>().join("/");
            found.push(Source { path: path_from_root, text: fs::read_to_string(&path).unwrap() });
        }
    }
}

/// The line up to its comment; the `//` of a URI begins none.
fn without_comment(line: &str) -> &str {
    let comment = line.match_indices("//").map(|(at, _)| at).find(|at| !line[..*at].ends_with(':'));
    line[..comment.unwrap_or(line.len())].trim_end()
}

/// Whether `name` stands in `line` by itself and not as a part of a longer name.
pub(crate) fn has_name(line: &str, name: &str) -> bool {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(name).any(|(at, _)| {
        let joins_before = name.starts_with(part_of_name) && line[..at].ends_with(part_of_name);
        let joins_after = name.ends_with(part_of_name) && line[at + name.len()..].starts_with(part_of_name);
        !joins_before && !joins_after
    })
}

#[test]
fn comments_and_tests_are_not_code() {
    let text = "//! Doc.\nlet a = 1; // why\nlet b = \"amqp://host\";\n#[cfg(test)]\nmod tests {\n    let c = 2;\n}\n";
    let source = Source { path: "core/src/x.rs".to_owned(), text: text.to_owned() };
    assert_eq!(source.code(), [(2, "let a = 1;"), (3, "let b = \"amqp://host\";")]);
    let tests = Source { path: "core/src/x/tests.rs".to_owned(), text: text.to_owned() };
    assert_eq!(tests.code(), []);
}

#[test]
fn a_name_is_found_alone_and_not_inside_of_another() {
    assert!(has_name("use std::thread;", "std::thread"));
    assert!(has_name("let map: HashMap<u8, u8>;", "HashMap"));
    assert!(!has_name("let map: MyHashMap;", "HashMap"));
    assert!(!has_name("let threads = std::threads();", "std::thread"));
    assert!(has_name("x.await?", ".await"));
}

#[test]
fn a_module_is_a_file_or_a_folder() {
    let source = |path: &str| Source { path: path.to_owned(), text: String::new() };
    assert!(source("core/src/wire.rs").is_in("core/src/wire"));
    assert!(source("core/src/wire/head.rs").is_in("core/src/wire"));
    assert!(!source("core/src/wireless.rs").is_in("core/src/wire"));
}
