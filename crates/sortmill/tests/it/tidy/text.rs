//! Source text in, names and places out: enough of Rust and TOML for the rules of `tidy`, without a parser.
//!
//! [`code`] blanks comments and literals, keeping every line where it was, and [`paths`] spells out each path
//! in what is left, `use` trees included:
//!
//! ```text
//! use std::{fs, sync::{Arc, Mutex}};   ->   std::fs  std::sync::Arc  std::sync::Mutex
//! ```

/// `text` with comments, strings and character literals blanked, every line where it was.
pub(super) fn code(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = match chars[at] {
            '/' if chars.get(at + 1) == Some(&'/') => end_of_line(&chars, at),
            '/' if chars.get(at + 1) == Some(&'*') => end_of_block_comment(&chars, at),
            '"' => end_of_quoted(&chars, at),
            '\'' if is_char_literal(&chars, at) => end_of_quoted(&chars, at),
            'r' if !follows_a_name(&chars, at) => end_of_raw_string(&chars, at).unwrap_or(at),
            _ => at,
        };
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            out.extend(
                chars[at..end]
                    .iter()
                    .map(|&c| if c == '\n' { '\n' } else { ' ' }),
            );
            at = end;
        }
    }
    out
}

fn end_of_line(chars: &[char], at: usize) -> usize {
    chars[at..]
        .iter()
        .position(|&c| c == '\n')
        .map_or(chars.len(), |length| at + length)
}

fn end_of_block_comment(chars: &[char], mut at: usize) -> usize {
    let mut depth = 0;
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

fn end_of_quoted(chars: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while at < chars.len() && chars[at] != chars[start] {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

/// `'a'` and `'\n'` are literals, `'a` is a lifetime.
fn is_char_literal(chars: &[char], at: usize) -> bool {
    chars.get(at + 1) == Some(&'\\') || chars.get(at + 2) == Some(&'\'')
}

/// Whether the `r` at `at` ends a longer name, as in `for`; `br` and `cr` begin raw strings too.
fn follows_a_name(chars: &[char], at: usize) -> bool {
    let before = &chars[..at];
    let name_length = before
        .iter()
        .rev()
        .take_while(|&&c| is_name_char(c))
        .count();
    match &before[at - name_length..] {
        [] | ['b' | 'c'] => false,
        [..] => true,
    }
}

fn end_of_raw_string(chars: &[char], start: usize) -> Option<usize> {
    let hash_count = chars[start + 1..].iter().take_while(|&&c| c == '#').count();
    let open = start + 1 + hash_count;
    if chars.get(open) != Some(&'"') {
        return None;
    }
    let close: Vec<char> = std::iter::once('"')
        .chain(std::iter::repeat_n('#', hash_count))
        .collect();
    let length = chars[open + 1..]
        .windows(close.len())
        .position(|window| window == close);
    Some(length.map_or(chars.len(), |length| open + 1 + length + close.len()))
}

/// `code` with every item under `#[cfg(test)]` blanked.
pub(super) fn without_tests(code: &str) -> String {
    let mut out = code.to_owned();
    for (start, end) in attributes(code) {
        let attribute = &code[start..end];
        let is_under_test = words(attribute).iter().any(|(_, word)| word == "test");
        if calls(attribute, "cfg") && is_under_test && !attribute.contains("not(test") {
            let inner = attribute.starts_with("#!");
            let end = if inner {
                code.len()
            } else {
                end_of_item(code, end)
            };
            let blank: String = code[start..end]
                .chars()
                .map(|c| if c == '\n' { '\n' } else { ' ' })
                .collect();
            // A blank is one byte: a longer character would shift every attribute behind it.
            assert_eq!(
                blank.len(),
                end - start,
                "code is ASCII outside comments and literals"
            );
            out.replace_range(start..end, &blank);
        }
    }
    out
}

/// Where the item that begins at `start` ends: at its `;`, or at the brace that closes its body.
fn end_of_item(code: &str, start: usize) -> usize {
    let mut braces = 0;
    let mut brackets = 0;
    for (at, c) in code[start..].char_indices() {
        match c {
            '{' => braces += 1,
            '}' => braces -= 1,
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets -= 1,
            _ => {}
        }
        if braces == 0 && brackets == 0 && (c == '}' || c == ';') {
            return start + at + 1;
        }
    }
    code.len()
}

/// From where to where each attribute goes, from its `#` to behind its `]`.
pub(super) fn attributes(code: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (start, _) in code.match_indices('#') {
        let rest = &code[start..];
        if !rest.starts_with("#[") && !rest.starts_with("#![") {
            continue;
        }
        let mut depth = 0;
        for (at, c) in rest.char_indices() {
            depth += i32::from(c == '[') - i32::from(c == ']');
            if depth == 0 && c == ']' {
                found.push((start, start + at + 1));
                break;
            }
        }
    }
    found
}

/// Whether `name(` stands in `code`, as a word of its own.
pub(super) fn calls(code: &str, name: &str) -> bool {
    code.match_indices(name).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + name.len()..].trim_start();
        !before.is_some_and(is_name_char) && after.starts_with('(')
    })
}

/// Each path in `code`, in full, with its line: those of `use` trees, and those of two names and more elsewhere.
pub(super) fn paths(code: &str) -> Vec<(usize, String)> {
    let tokens = tokens(code);
    let text = |at: usize| tokens.get(at).map_or("", |(_, token)| token.as_str());
    let is_name = |at: usize| text(at).starts_with(is_name_char);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if text(at) == "use" && text(at + 1) != "<" {
            at = use_tree(&tokens, at + 1, "", &mut found);
        } else if is_name(at) {
            let (line, mut path) = tokens[at].clone();
            while text(at + 1) == "::" && is_name(at + 2) {
                path = format!("{path}::{}", text(at + 2));
                at += 2;
            }
            if path.contains("::") {
                found.push((line, path));
            }
            at += 1;
        } else {
            at += 1;
        }
    }
    found
}

/// Spells out the `use` tree at `at` under `prefix`; returns where it ends.
fn use_tree(
    tokens: &[(usize, String)],
    mut at: usize,
    prefix: &str,
    found: &mut Vec<(usize, String)>,
) -> usize {
    let mut path = prefix.to_owned();
    while let Some((line, token)) = tokens.get(at) {
        match token.as_str() {
            "::" => at += 1,
            // What follows `as` is a new name, not a part of the path.
            "as" => at += 2,
            "{" => {
                at += 1;
                while at < tokens.len() && tokens[at].1 != "}" {
                    at = use_tree(tokens, at, &path, found);
                    at += usize::from(tokens.get(at).is_some_and(|(_, token)| token == ","));
                }
                return at + 1;
            }
            "," | "}" | ";" => break,
            // `self` inside braces is the module itself.
            "self" if !path.is_empty() => {
                found.push((*line, path.clone()));
                at += 1;
            }
            name => {
                path = if path.is_empty() {
                    name.to_owned()
                } else {
                    format!("{path}::{name}")
                };
                at += 1;
                if tokens.get(at).is_none_or(|(_, next)| next != "::") {
                    found.push((*line, path.clone()));
                }
            }
        }
    }
    at
}

/// Names, `::` and single marks, each with its line. Raw names lose their `r#`.
fn tokens(code: &str) -> Vec<(usize, String)> {
    let chars: Vec<char> = code.chars().collect();
    let mut found = Vec::new();
    let mut line = 1;
    let mut at = 0;
    while at < chars.len() {
        let length = match chars[at] {
            'r' if chars.get(at + 1) == Some(&'#') => {
                at += 2;
                continue;
            }
            c if is_name_char(c) => chars[at..].iter().take_while(|&&c| is_name_char(c)).count(),
            ':' if chars.get(at + 1) == Some(&':') => 2,
            _ => 1,
        };
        let token: String = chars[at..at + length].iter().collect();
        line += usize::from(token == "\n");
        if !token.trim().is_empty() {
            found.push((line, token));
        }
        at += length;
    }
    found
}

/// The names in `text`, each with its line.
pub(super) fn words(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let names = line
            .split(|c| !is_name_char(c))
            .filter(|name| !name.is_empty());
        found.extend(names.map(|name| (index + 1, name.to_owned())));
    }
    found
}

/// `HugePages` and `huge_pages` are `huge` and `page`: lower case, in the singular.
pub(super) fn name_parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        if c == '_' || (c.is_uppercase() && was_lower) {
            parts.push(String::new());
        }
        was_lower = c.is_lowercase();
        if c != '_' {
            parts
                .last_mut()
                .expect("never empty")
                .extend(c.to_lowercase());
        }
    }
    for part in &mut parts {
        if part.ends_with('s') && part != "utils" {
            part.pop();
        }
    }
    parts
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

pub(super) fn begins_with_any(path: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| {
        path.strip_prefix(prefix)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    })
}

pub(super) fn line_of(text: &str, at: usize) -> usize {
    1 + text[..at].matches('\n').count()
}

pub(super) fn count(text: &str, wanted: &[char]) -> i32 {
    i32::try_from(text.matches(wanted).count()).expect("a line is short")
}

/// A line of TOML with its strings blanked, and its comment if it has one.
pub(super) fn split_toml_comment(line: &str) -> (String, Option<&str>) {
    let mut value = String::new();
    let mut is_quoted = false;
    for (at, c) in line.char_indices() {
        match c {
            '#' if !is_quoted => return (value, Some(&line[at..])),
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => continue,
            _ => {}
        }
        value.push(c);
    }
    (value, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_blanks_comments_and_literals_only() {
        let check = |text: &str, expected: &str| assert_eq!(code(text), expected, "{text}");
        check("a // b\nc", "a     \nc");
        check("a /* b /* c */ d\n */ e", "a               \n    e");
        check(r#"a("b \" c", d)"#, "a(        , d)");
        check(r###"a(r#"b " c"#, d)"###, "a(          , d)");
        check(r#"a(br"b", r"\", d)"#, "a(b    ,     , d)");
        check(
            "fn f<'a>(x: &'a str, c: char) { c == '\"' || c == '\\'' }",
            "fn f<'a>(x: &'a str, c: char) { c ==     || c ==      }",
        );
        check("for r in r#type", "for r in r#type");
    }

    #[test]
    fn paths_are_spelled_out() {
        let check = |text: &str, expected: &[&str]| {
            let found: Vec<String> = paths(text).into_iter().map(|(_, path)| path).collect();
            assert_eq!(found, expected, "{text}");
        };
        check(
            "use std::{fs, sync::{Arc, Mutex as M}}; a",
            &["std::fs", "std::sync::Arc", "std::sync::Mutex"],
        );
        check("use a::{self, b::*};", &["a", "a::b::*"]);
        check(
            "use r#gen::x; Vec::<u8>::new(b::c::<d::e>)",
            &["gen::x", "b::c", "d::e"],
        );
        check("fn f() -> impl Iterator<Item = u8> + use<'_> {}", &[]);
    }

    #[test]
    fn items_under_cfg_test_are_blanked() {
        let text = "#[cfg(test)]\n#[x]\nfn f(a: [u8; 2]) { {} }\nb;\n#[cfg(all(test, not(unix)))] use c::{d};\ne\n";
        let left = without_tests(text);
        assert_eq!(
            left.split_whitespace().collect::<Vec<_>>(),
            ["b;", ";", "e"]
        );
        assert_eq!(left.lines().count(), text.lines().count());
        assert_eq!(without_tests("#![cfg(test)]\na").trim(), "");
    }
}
