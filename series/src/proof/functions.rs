//! The functions around the lines of a text.

use crate::text::function::FunctionMap;
use crate::text::language::Language;

/// The head of the function that each line of a text belongs to.
pub(super) struct Functions<'a> {
    heads: Vec<Option<&'a [u8]>>,
}

impl<'a> Functions<'a> {
    pub fn new(lines: &[&'a [u8]], language: Language) -> Functions<'a> {
        let heads = FunctionMap::new(lines, language).heads_of_lines();
        let text = |head: usize| lines.get(head).map(|line| line.trim_ascii());
        Functions { heads: heads.into_iter().map(|head| head.and_then(text)).collect() }
    }

    /// Returns the head of the function that has line `at`, from 0.
    pub fn head(&self, at: usize) -> Option<&'a [u8]> {
        self.heads.get(at).copied().flatten()
    }
}

/// Returns whether `old`, the head of a function of the old base, and `new`, one of the new base, are those of the same
/// function: they are equal, or upstream has rewritten it.
pub(super) fn is_same_function(
    (old, new): (Option<&[u8]>, Option<&[u8]>),
    (old_base, new_base): (&[&[u8]], &[&[u8]]),
) -> bool {
    let (Some(old_head), Some(new_head)) = (old, new) else { return old == new };
    let has = |lines: &[&[u8]], head: &[u8]| lines.iter().any(|line| line.trim_ascii() == head);
    old_head == new_head || (!has(new_base, old_head) && !has(old_base, new_head))
}

#[cfg(test)]
mod tests {
    use super::{Functions, is_same_function};
    use crate::text::language::Language;

    #[test]
    fn a_function_is_the_same_by_its_head_or_if_upstream_rewrote_it() {
        let (old, new): (&[&[u8]], &[&[u8]]) = (&[b"int f(void) {\n"], &[b"int f(int x) {\n"]);
        let head = |text: &'static str| Some(text.as_bytes());
        let same = |one, other| is_same_function((head(one), head(other)), (old, new));
        assert!(same("int f(void) {", "int f(void) {"));
        assert!(same("int f(void) {", "int f(int x) {"));
        assert!(!same("int f(int x) {", "int g(void) {"), "the old head is still there");
        assert!(!is_same_function((None, head("int f(int x) {")), (old, new)));
        assert!(is_same_function((None, None), (old, new)));
    }

    #[test]
    fn the_head_of_a_line_is_its_function() {
        let lines: Vec<&[u8]> =
            vec![b"int f(void) {\n", b"    a();\n", b"}\n", b"int g(void) {\n", b"    b();\n"];
        let functions = Functions::new(&lines, Language::Braces);
        assert_eq!(functions.head(1), Some(&b"int f(void) {"[..]));
        assert_eq!(functions.head(2), Some(&b"int f(void) {"[..]));
        assert_eq!(functions.head(3), Some(&b"int g(void) {"[..]));
        assert_eq!(functions.head(4), Some(&b"int g(void) {"[..]));
    }
}
