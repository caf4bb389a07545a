//! The proof of a move finds every fault in its result, with its class.

use espalier_series::{FindingClass, Mode, ProofFinding};

use crate::proof_support::{CODE, Files, clean, edit, function, open, prove};

/// A fault in the result of a move: the states that have it, the change, and the class and the file of the finding.
struct Mutation {
    name: &'static str,
    states: (usize, usize),
    change: fn(&mut Files),
    class: FindingClass,
    path: &'static str,
}

const ALL: (usize, usize) = (1, 4);

const fn mutation(
    name: &'static str,
    change: fn(&mut Files),
    class: FindingClass,
    path: &'static str,
) -> Mutation {
    Mutation { name, states: ALL, change, class, path }
}

const MUTATIONS: [Mutation; 20] = [
    mutation(
        "an upstream line in a patched file is lost",
        |files| edit(files, CODE, "    gamma_5();\n", ""),
        FindingClass::LostUpstreamLine,
        CODE,
    ),
    mutation(
        "an upstream line in the context of a hunk is lost",
        |files| edit(files, CODE, "    alpha_4();\n", ""),
        FindingClass::LostUpstreamLine,
        CODE,
    ),
    mutation(
        "a hunk of the patch is there twice",
        |files| {
            let hunk = "    own_one();\n    own_two();\n";
            edit(files, CODE, hunk, &hunk.repeat(2));
        },
        FindingClass::Doubled,
        CODE,
    ),
    mutation(
        "a line of the patch is lost",
        |files| edit(files, CODE, "    own_two();\n", ""),
        FindingClass::LostOwnLine,
        CODE,
    ),
    mutation(
        "a mode is changed",
        |files| files.get_mut(CODE).unwrap().0 = Mode::Executable,
        FindingClass::ModeOrName,
        CODE,
    ),
    Mutation {
        name: "a whole upstream file is lost",
        states: (2, 4),
        change: |files| drop(files.remove("src/untouched.c")),
        class: FindingClass::NewDeletion,
        path: "src/untouched.c",
    },
    mutation(
        "a deletion by upstream is undone",
        |files| edit(files, CODE, "    gamma_1();\n", "    gamma_1();\n    gamma_2();\n"),
        FindingClass::Restored,
        CODE,
    ),
    mutation(
        "a line is moved to another function",
        |files| {
            edit(files, CODE, "    own_one();\n", "");
            edit(files, CODE, "    gamma_6();\n", "    gamma_6();\n    own_one();\n");
        },
        FindingClass::Misplaced,
        CODE,
    ),
    mutation(
        "white space is changed",
        |files| edit(files, CODE, "    own_one();\n", "  own_one();\n"),
        FindingClass::LostOwnLine,
        CODE,
    ),
    mutation(
        "a line end is changed",
        |files| edit(files, CODE, "    own_two();\n", "    own_two();\r\n"),
        FindingClass::LostOwnLine,
        CODE,
    ),
    mutation(
        "the last line feed is lost",
        |files| assert_eq!(files.get_mut(CODE).unwrap().1.pop(), Some(b'\n')),
        FindingClass::LostUpstreamLine,
        CODE,
    ),
    Mutation {
        name: "a rename is lost",
        states: (2, 4),
        change: |files| {
            let file = files.remove("src/renamed.c").unwrap();
            files.insert("src/old.c".to_owned(), file);
        },
        class: FindingClass::ModeOrName,
        path: "src/old.c",
    },
    Mutation {
        name: "a symbolic link is changed",
        states: (2, 4),
        change: |files| files.get_mut("docs/link").unwrap().1 = b"elsewhere".to_vec(),
        class: FindingClass::Binary,
        path: "docs/link",
    },
    mutation(
        "an upstream line is there twice",
        |files| edit(files, CODE, "    beta_6();\n", "    beta_6();\n    beta_6();\n"),
        FindingClass::Doubled,
        CODE,
    ),
    mutation(
        "a hunk is in a function that looks alike",
        |files| {
            edit(files, CODE, "    twin = twin * 2;\n", "    TWIN\n");
            edit(files, CODE, "    twin = twin * 3;\n", "    twin = twin * 2;\n");
            edit(files, CODE, "    TWIN\n", "    twin = twin * 3;\n");
        },
        FindingClass::Misplaced,
        CODE,
    ),
    Mutation {
        name: "a new file of the patch is changed",
        states: (2, 4),
        change: |files| edit(files, "src/own.c", "int own_b;", "int own_c;"),
        class: FindingClass::LostOwnLine,
        path: "src/own.c",
    },
    mutation(
        "a new function of upstream is deleted",
        |files| edit(files, CODE, &function("delta"), ""),
        FindingClass::NewDeletion,
        CODE,
    ),
    Mutation {
        name: "a binary file is changed",
        states: (3, 4),
        change: |files| files.get_mut("data/logo.bin").unwrap().1[7] = 1,
        class: FindingClass::Binary,
        path: "data/logo.bin",
    },
    Mutation {
        name: "a patch is emptied",
        states: (3, 4),
        change: |files| {
            files.get_mut("data/logo.bin").unwrap().1[5] = 7;
            edit(files, CODE, "    own_three();\n", "");
        },
        class: FindingClass::LostPatch,
        path: "0003-change-the-logo.patch",
    },
    Mutation {
        name: "a patch is changed, and a later one makes up for it",
        states: (1, 2),
        change: |files| edit(files, CODE, "    own_two();\n", ""),
        class: FindingClass::LostOwnLine,
        path: CODE,
    },
];

#[test]
fn every_fault_is_found_with_its_class() {
    let (old, new) = clean();
    let mut missed = Vec::new();
    for Mutation { name, states, change, class, path } in MUTATIONS {
        let proof = prove(&old, &new.clone().with(states.0, states.1, change));
        let is_it = |finding: &&ProofFinding| finding.class == class && finding.path == path;
        if !open(&proof).iter().any(is_it) {
            missed.push(format!("{name}: not {class:?} of {path}: {:#?}", open(&proof)));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n\n"));
}
