//! GBNF grammar families.

use super::family::{Family, Make, Names, grammar};

/// All grammar families.
pub const ALL: &[Family] = &[
    grammar("grammar-repetition", 24, |n, to| format!("{} ::= {}{{{n}}}\n", to.start, to.leaf)),
    grammar("grammar-range", 24, |n, to| format!("{} ::= {}{{0,{n}}}\n", to.start, to.leaf)),
    grammar("grammar-inverted-range", 16, |n, to| {
        format!("{} ::= {}{{{n},{}}}\n", to.start, to.leaf, n.saturating_sub(1))
    }),
    grammar("grammar-nested-repetitions", 16, |n, to| {
        format!("{} ::= ((({}){{{n}}}){{{n}}}){{{n}}}\n", to.start, to.leaf)
    }),
    grammar("grammar-many-repetitions", 16, |n, to| rule(to, &format!("{}{{0,100}} ", to.leaf).repeat(n))),
    grammar("grammar-optionals", 16, |n, to| rule(to, &format!("{}? ", to.leaf).repeat(n))),
    grammar("grammar-alternatives", 18, |n, to| rule(to, &vec![to.leaf; n].join(" | "))),
    grammar("grammar-ambiguous-star", 14, |n, to| rule(to, &format!("({})*", vec![to.leaf; n].join(" | ")))),
    grammar("grammar-nested-stars", 12, |n, to| nest(n, to, "(", ")*")),
    grammar("grammar-parentheses", 20, |n, to| nest(n, to, "(", ")")),
    grammar("grammar-nested-alternatives", 14, |n, to| nest(n, to, "(\"b\" | ", " \"c\")")),
    grammar("grammar-nested-optionals", 12, nested_optionals),
    grammar("grammar-left-recursion", 18, left_recursion),
    grammar("grammar-chain-of-rules", 18, |n, to| chain(n, to, |next| next.to_string())),
    grammar("grammar-doubling-rules", 12, |n, to| chain(n, to, |next| format!("{next} {next}"))),
    grammar("grammar-doubling-choices", 12, |n, to| chain(n, to, |next| format!("{next} | {next}"))),
    grammar("grammar-optional-doubling", 12, |n, to| chain(n, to, |next| format!("({next} {next})?"))),
    grammar("grammar-late-doubling", 8, late_doubling),
    grammar("grammar-right-recursion", 12, |n, to| {
        let ends: Vec<String> = (0..n).map(|_| format!("{} {}", to.leaf, to.start)).collect();
        rule(to, &format!("{} | {}", ends.join(" | "), to.leaf))
    }),
    grammar("grammar-palindrome", 6, |n, to| {
        let ends: Vec<String> = (0..n).map(|at| format!("{} {} \"{at}\"", to.leaf, to.start)).collect();
        rule(to, &format!("{} | {}", ends.join(" | "), to.leaf))
    }),
    grammar("grammar-long-literal", 22, |n, to| rule(to, &format!("\"{}\" {}", "a".repeat(n), to.leaf))),
    grammar("grammar-escapes", 18, |n, to| rule(to, &format!("\"{}\" {}", "\\U0010FFFF".repeat(n), to.leaf))),
    grammar("grammar-character-class", 20, |n, to| rule(to, &format!("[{}] {}", "a-bc".repeat(n), to.leaf))),
    grammar("grammar-negated-class", 20, |n, to| rule(to, &format!("[^{}]* {}", "b-bc".repeat(n), to.leaf))),
    grammar("grammar-dots", 16, |n, to| rule(to, &format!("{} {}", ".* ".repeat(n), to.leaf))),
    grammar("grammar-tokens", 16, |n, to| rule(to, &format!("{} {}", "<[5]>? ".repeat(n), to.leaf))),
    grammar("grammar-long-rule-name", 20, |n, to| {
        let name = format!("{}-{}", to.start, "n".repeat(n));
        format!("{} ::= {name}\n{name} ::= {}\n", to.start, to.leaf)
    }),
    grammar("grammar-comment", 22, |n, to| format!("# {}\n{}", "c".repeat(n), rule(to, to.leaf))),
    grammar("grammar-unused-rules", 18, |n, to| {
        let unused: String = (0..n).map(|at| format!("{}-{at} ::= \"x\"\n", to.start)).collect();
        format!("{}{unused}", rule(to, to.leaf))
    }),
    grammar("grammar-undefined-rules", 16, |n, to| {
        rule(to, &(0..n).map(|at| format!("{}-{at}", to.start)).collect::<Vec<_>>().join(" | "))
    }),
    grammar("grammar-repeated-undefined-rules", 16, |n, to| {
        rule(to, &(0..n).map(|at| format!("{}-{at}*", to.start)).collect::<Vec<_>>().join(" | "))
    }),
];

/// The default leaf expression.
const LEAF: &str = "\"a\"";

/// Builds the text of a grammar; `inner` becomes its leaf if it is a grammar too.
pub fn nested(make: fn(usize, &Names<'_>) -> String, inner: Option<Make>, size: usize) -> String {
    match inner {
        Some(Make::Grammar(inner)) => {
            let outer = make(size, &Names { start: "root", leaf: "inner" });
            outer + &inner(size, &Names { start: "inner", leaf: LEAF })
        }
        _ => make(size, &Names { start: "root", leaf: LEAF }),
    }
}

fn rule(to: &Names<'_>, right: &str) -> String {
    format!("{} ::= {right}\n", to.start)
}

fn nest(depth: usize, to: &Names<'_>, opening: &str, closing: &str) -> String {
    rule(to, &format!("{}{}{}", opening.repeat(depth), to.leaf, closing.repeat(depth)))
}

/// Builds a chain of rules in which each refers to the next one; the last one is the leaf.
fn chain(length: usize, to: &Names<'_>, refer: impl Fn(&str) -> String) -> String {
    let name = |at: usize| if at == 0 { to.start.to_string() } else { format!("{}-{at}", to.start) };
    let mut text: String =
        (0..length).map(|at| format!("{} ::= {}\n", name(at), refer(&name(at + 1)))).collect();
    text.push_str(&format!("{} ::= {}\n", name(length), to.leaf));
    text
}

/// Builds a grammar that becomes ambiguous only after the first letter of an answer.
fn late_doubling(depth: usize, to: &Names<'_>) -> String {
    let later = format!("{}-later", to.start);
    let empty = Names { start: &later, leaf: "(\"\" | \"y\")" };
    let doubling = chain(depth, &empty, |next| format!("{next} {next}"));
    format!("{}{doubling}", rule(to, &format!("{} {later} \"x\"", to.leaf)))
}

/// Builds many alternatives of one token, each with a stack as deep as the parentheses around it.
fn nested_optionals(size: usize, to: &Names<'_>) -> String {
    let optionals = format!("{}-optionals", to.start);
    let inner = Names { start: &optionals, leaf: to.leaf };
    let outer = Names { start: to.start, leaf: &optionals };
    nest(size, &outer, "(\"b\" | ", " \"c\")") + &rule(&inner, &format!("{}? ", to.leaf).repeat(size))
}

fn left_recursion(length: usize, to: &Names<'_>) -> String {
    let closes = format!("{}-{length} ::= {} {}\n", to.start, to.start, to.leaf);
    let open = chain(length, to, str::to_string);
    let last = format!("{}-{length} ::= {}\n", to.start, to.leaf);
    open.replace(&last, &closes)
}
