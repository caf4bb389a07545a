//! Failures of the gate's third part: fake test programs, a fake server and a small pytest, and one fault after the
//! other. Each fails the gate for its own reason.

use super::support::suites::{
    gate_suites, gate_suites_of, suites, suites_of_programs, suites_on_generation, with_scripts,
    write_program, write_server,
};
use super::support::{Output, Project, files};

/// Runs the gate on a project whose variant's test programs run other commands.
fn broken(programs: &[(&str, &str)]) -> Output {
    let project = suites_of_programs();
    for (program, commands) in programs {
        write_program(&project, "paged", program, commands);
    }
    gate_suites(&project)
}

#[track_caller]
fn red(output: Output, reasons: &[&str]) {
    output.code(1).says(reasons);
}

#[test]
fn suites_that_end_alike_pass() {
    let output = gate_suites(&suites()).success();
    for line in [
        "programs: 4 outcomes compared (4 passed), 0 differ as listed, 0 by luck",
        ", 2 passed on ours and were not run on stock",
        "server tests: 1 outcomes compared (1 passed), 0 differ as listed, 0 by luck",
        "server tests, paged: 1 outcomes compared (1 passed), 1 differ as listed, 0 by luck",
    ] {
        assert!(output.stdout.contains(line), "{line}: {output}");
    }
    assert_eq!(output.stdout.matches(", 2 passed on ours and were not run on stock").count(), 3, "{output}");
}

#[test]
fn cases_that_are_recorded_of_stock_are_not_run_there_again() {
    let project = suites_of_programs();
    let record = "ci/suites/cases.json";
    gate_suites(&project).success();
    assert!(!project.path(record).exists());
    let output = with_scripts(&project, &["gate", "--only", "suites", "--record-cases"]).success();
    assert!(output.stdout.contains("programs: 4 outcomes compared (4 passed)"), "{output}");
    let recorded = project.read(record);
    assert!(recorded.contains("\"test-backend-ops attention\": {\n      \"count\": 3,"), "{recorded}");
    // Neither compiled nor run: it would fail.
    write_program(&project, "stock", "test-backend-ops", "exit 1");
    let output = gate_suites(&project).success();
    let line = "programs: 0 outcomes compared (0 passed), 0 differ as listed, 0 by luck, 0 own cases passed, \
                6 passed on ours and were not run on stock";
    assert!(output.stdout.contains(line), "{output}");
    assert!(!output.stderr.contains("stock-cpu-native with upstream's tests"), "{output}");
    // A case fails, or is not there: stock is run, and its cases are compared.
    for (commands, says) in [
        ("say n=2 0 'ERR = 0.5'\nsay n=3 1", "failed (ERR = 0.5)"),
        ("say n=3 1", "passed on stock, absent on ours"),
    ] {
        write_program(&project, "stock", "test-backend-ops", "say n=2 1\nsay n=3 1");
        write_program(&project, "paged", "test-backend-ops", commands);
        red(gate_suites(&project), &["programs: test-backend-ops attention: ATTENTION(n=2)", says]);
    }
    // Nothing is recorded of a run that does not hold.
    write_program(&project, "paged", "test-backend-ops", "say n=2 0 'ERR = 0.5'\nsay n=3 1");
    with_scripts(&project, &["gate", "--only", "suites", "--record-cases"]).code(1);
    assert_eq!(project.read(record), recorded);
    project.write(record, "{}}");
    gate_suites(&project).code(2).says(&[
        "invalid `ci/suites/cases.json`",
        "next: remove the file, then: cargo xtask gate --only suites --record-cases",
    ]);
}

#[test]
fn recording_cases_is_for_the_suites_alone() {
    suites_of_programs().run(&["gate", "--record-cases"]).code(2).says(&[
        "`--record-cases` only works with `--only suites`",
        "next: cargo xtask gate --only suites --record-cases",
    ]);
}

#[test]
fn the_tests_of_a_server_are_run_in_parts_and_none_is_lost() {
    let project = suites();
    for (variant, file) in ["stock", "paged"].into_iter().flat_map(|one| [(one, "a"), (one, "b"), (one, "c")])
    {
        let test = project.tree(variant).join(format!("tools/server/tests/unit/test_{file}.py"));
        let text = "from utils import must_answer\n\n\ndef test_it():\n    must_answer(\"it\", 200)\n";
        files::write(&test, text);
    }
    let output = gate_suites(&project).success();
    for line in ["server tests: 1 outcomes compared (1 passed)", "server tests, paged: 1 outcomes compared"] {
        assert!(output.stdout.contains(line), "{output}");
    }
    assert_eq!(output.stdout.matches(", 5 passed on ours and were not run on stock").count(), 2, "{output}");
    for run in ["stock-server", "paged-server", "paged-server-paged"] {
        let report = |part| project.read(&format!("target/espalier/suites/{run}/part-{part}/report.jsonl"));
        let counts = [1, 2, 3, 4].map(|part| report(part).lines().count());
        // A file is in one part, with all its tests. The others have none, and no report.
        assert_eq!(counts, [3, 1, 1, 1], "{run}");
        for part in [5, 6] {
            let path = format!("target/espalier/suites/{run}/part-{part}/report.jsonl");
            assert!(!project.path(&path).exists(), "{run}");
        }
    }
}

/// Returns the first line of a log: the command that was run.
fn command(project: &Project, log: &str) -> String {
    let text = project.read(&format!("target/espalier/logs/{log}.log"));
    text.lines().next().unwrap_or_default().to_string()
}

#[test]
fn stock_compiles_what_has_cases_with_ours_and_what_did_not_pass_on_ours_afterwards() {
    let configured = |output: &Output, variant: &str| {
        output.stderr.matches(&format!("Configuring {variant}-cpu-native with upstream's tests")).count()
    };
    let project = suites_of_programs();
    let output = gate_suites(&project).success();
    assert_eq!((configured(&output, "paged"), configured(&output, "stock")), (1, 1), "{output}");
    let ours = command(&project, "tests-paged-cpu-native");
    assert!(ours.ends_with(" test-alloc test-backend-ops test-thread-safety"), "{ours}");
    let stock = command(&project, "tests-stock-cpu-native");
    assert!(stock.ends_with(" test-backend-ops") && !stock.contains("test-alloc"), "{stock}");
    write_program(&project, "paged", "test-alloc", "exit 3");
    let output = gate_suites(&project).code(1);
    assert_eq!((configured(&output, "paged"), configured(&output, "stock")), (1, 2), "{output}");
    let stock = command(&project, "tests-stock-cpu-native");
    assert!(stock.ends_with(" test-alloc test-backend-ops"), "{stock}");
}

#[test]
fn the_tests_of_both_sides_are_compiled_at_the_same_level() {
    let project = suites_of_programs();
    gate_suites(&project).success();
    for variant in ["stock", "paged"] {
        let file = format!("target/espalier/build/{variant}-cpu-native/espalier-compared.cmake");
        assert!(project.path(&file).exists(), "{variant}");
        let configure = command(&project, &format!("configure-tests-{variant}-cpu-native"));
        let include = format!("-DCMAKE_PROJECT_INCLUDE={}", project.path(&file).display());
        assert!(configure.contains(&include), "{configure}");
    }
}

#[test]
fn without_kernels_no_server_is_paged() {
    let project = suites();
    project.edit("pins.toml", "kernels = true\n", "");
    let output = gate_suites(&project).success();
    assert!(
        output.stdout.contains("server tests: 1 outcomes") && !output.stdout.contains("paged: "),
        "{output}"
    );
}

#[test]
fn a_cache_that_says_more_than_ninja_knows_is_not_believed() {
    let project = suites_of_programs();
    let cache = "target/espalier/build/stock-cpu-native/CMakeCache.txt";
    project.write(cache, "LLAMA_BUILD_TESTS:BOOL=ON\n");
    gate_suites(&project).success().says(&["Configuring stock-cpu-native with upstream's tests"]);
}

#[test]
fn a_feature_is_on_in_ours_and_off_in_stock() {
    let asks = |variant: &str, commands: &str, enable: &str| {
        let project = suites_of_programs();
        project.edit(
            "ci/suites/suites.toml",
            "target = \"test-alloc\"\n",
            &format!("target = \"test-alloc\"\n{enable}"),
        );
        write_program(&project, variant, "test-alloc", commands);
        gate_suites(&project)
    };
    let (is_on, is_off) = ("[ \"$ESPALIER_ENABLE\" = fast ]", "[ -z \"$ESPALIER_ENABLE\" ]");
    asks("paged", is_on, "enable = \"fast\"\n").success();
    // What passes on ours does not run on stock, unless it has cases.
    asks("stock", "exit 1", "enable = \"fast\"\n").success();
    let output = asks("stock", is_off, "enable = \"fast\"\ncases = true\n").code(1);
    assert!(output.stderr.contains("programs: test-alloc: reported no case on stock"), "{output}");
    assert!(!output.stderr.contains("test-alloc: failed"), "{output}");
    red(asks("paged", is_on, ""), &["programs: test-alloc: passed on stock, failed (exit"]);
}

#[test]
fn a_program_that_fails_crashes_or_says_less_is_seen() {
    let fails = [("test-alloc", "exit 3"), ("test-backend-ops", "say n=2 0 'ERR = 0.5'\nsay n=3 1")];
    let case = "programs: test-backend-ops attention: ATTENTION(n=2): passed on stock, ";
    let reasons =
        ["programs: test-alloc: passed on stock, failed (exit", &format!("{case}failed (ERR = 0.5)")];
    red(broken(&fails), &reasons);
    let less = [("test-alloc", "kill -SEGV $$"), ("test-backend-ops", "say n=3 1")];
    let reasons = ["programs: test-alloc: passed on stock, crashed (", &format!("{case}absent on ours")];
    red(broken(&less), &reasons);
}

#[test]
fn a_run_whose_arguments_name_no_case_any_more_is_seen() {
    let project = suites_of_programs();
    for variant in ["stock", "paged"] {
        write_program(&project, variant, "test-backend-ops", "exit 0");
        let path = format!("target/espalier/build/{variant}-cpu-native/bin/test-backend-ops");
        project.edit(&path, "say n=1 1\n", "");
    }
    red(gate_suites(&project), &["programs: test-backend-ops attention: reported no case on stock"]);
}

#[test]
fn one_failure_is_luck_and_a_repeated_one_is_not() {
    let output = broken(&[("test-alloc", "once failed && exit 1; exit 0")]).success();
    assert!(
        output.stdout.contains("programs: 5 outcomes compared (5 passed), 0 differ as listed, 1 by luck")
    );
    let again = "once first && exit 1; once second || exit 1; exit 0";
    red(broken(&[("test-alloc", again)]), &["programs: test-alloc: passed on stock, failed (exit"]);
    let many = "once failed && passed=0 || passed=1\nfor n in 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 \
                22; do say n=$n $passed 'ERR'; done";
    let project = suites_of_programs();
    write_program(&project, "stock", "test-backend-ops", &many.replace("once failed", "false"));
    write_program(&project, "paged", "test-backend-ops", many);
    red(gate_suites(&project), &["21 differences"]);
}

/// Runs the gate on a project whose variant's server gives another answer.
fn served(project: &Project, from: &str, to: &str) -> Output {
    project.edit("target/espalier/dist/paged-cpu-native/bin/llama-server", from, to);
    gate_suites(project)
}

#[test]
fn a_server_that_ends_a_test_otherwise_is_seen() {
    let faults = "completion1) echo 500;; key) echo 200;; key1) echo 401";
    let output = served(&suites(), "key*) echo 401", faults);
    let line = r#"assert found == status, f"assert {found} == {status}""#;
    let key = format!(
        "unit/test_basic.py::test_incorrect_api_key: passed on stock, failed (utils.py: {line}: assert 200 == 401)"
    );
    let completion = format!(
        "unit/test_basic.py::test_completion: passed on stock, failed (utils.py: {line}: assert 500 == 200)"
    );
    for other in [format!("server tests: {completion}"), format!("server tests, paged: {key}")] {
        assert!(!output.stderr.contains(&other), "{output}");
    }
    let reasons =
        ["2 differences", &format!("server tests: {key}"), &format!("server tests, paged: {completion}")];
    red(output, &reasons);
}

/// A patch adds an import to an upstream test file: the tests below it fail as on stock.
#[test]
fn lines_above_a_test_are_no_difference_and_lines_in_it_are() {
    let project = suites();
    let write = |variant: &str, text: &str| {
        files::write(&project.tree(variant).join("tools/server/tests/unit/test_own.py"), text);
    };
    write("stock", "def test_it():\n    assert 1 == 2\n");
    write("paged", "import os\n\n\ndef test_it():\n    assert 1 == 2\n");
    gate_suites(&project).success();
    write("paged", "import os\n\n\ndef test_it():\n    pass\n    assert 1 == 2\n");
    let on_stock = "server tests: unit/test_own.py::test_it: failed (test_own.py:+2 assert 1 == 2";
    let on_ours = " on stock, failed (test_own.py:+3 assert 1 == 2";
    red(gate_suites(&project), &[on_stock, on_ours]);
}

#[test]
fn a_listed_difference_has_to_be_there_and_as_listed() {
    let output = served(&suites(), "props1) echo 400;;", "");
    red(
        output,
        &[
            "server tests, paged: unit/test_basic.py::test_props (A slot may use all cells.): ends as on stock; take it from the list of differences \
           in `ci/suites/suites.toml`",
        ],
    );
    for (from, to) in
        [("ours = \"failed\"", "ours = \"skipped\""), ("assert 400 == 200", "assert 500 == 200")]
    {
        let project = suites();
        project.edit("ci/suites/suites.toml", from, to);
        red(gate_suites(&project), &["unit/test_basic.py::test_props: passed on stock, failed ("]);
    }
    // The same word, and another failure.
    let output = served(&suites(), "props1) echo 400;;", "props1) echo 503;;");
    red(output, &["test_props: passed on stock, failed (utils.py: ", "assert 503 == 200"]);
}

/// Adds a test to the tests of a variant, and says in the list that the patches of `paged` add it.
fn add_own_test(project: &Project, variant: &str, entry: &str) {
    let file = project.tree(variant).join("tools/server/tests/unit/test_basic.py");
    files::edit(
        &file,
        "def test_props",
        "def test_more():\n    must_answer(\"more\", 200)\n\n\ndef test_props",
    );
    let own =
        format!("[[server-tests.own]]\nvariant = \"paged\"\nnames = [\"test_more\"]\n{entry}\n[[paged]]");
    project.edit("ci/suites/suites.toml", "[[paged]]", &own);
}

/// The patches of a variant on a generation are those of the variant that it is like, and so are their tests.
#[test]
fn a_variant_on_a_generation_has_the_own_tests_of_the_one_that_it_is_like() {
    let project = suites_on_generation();
    add_own_test(&project, "paged-next", "");
    let output = gate_suites_of(&project, "paged-next").success();
    let line =
        "server tests: 1 outcomes compared (1 passed), 0 differ as listed, 0 by luck, 1 own cases passed";
    assert!(
        output.stdout.contains("paged-next against stock-next:") && output.stdout.contains(line),
        "{output}"
    );
    // The sources of the pin have no such test.
    red(gate_suites(&project), &["server tests: none of our cases has `test_more` in its name"]);
}

#[test]
fn an_own_test_that_fails_once_is_luck_and_one_that_fails_again_is_not() {
    let commands = |more: &str| format!("case \"$1\" in key) echo 401;; more) {more};; *) echo 200;; esac");
    let gate = |more: &str| {
        let project = suites();
        add_own_test(&project, "paged", "");
        let props = "case \"$1$LLAMA_ARG_KV_PAGED\" in props1) echo 400; exit;; esac";
        write_server(&project, "paged", &format!("{props}\n{}", commands(more)));
        gate_suites(&project)
    };
    let output = gate("once failed && echo 500 || echo 200").success();
    assert!(output.stdout.contains(", 1 by luck, 0 own cases passed"), "{output}");
    red(
        gate("once first && echo 500 || { once second && echo 200 || echo 500; }"),
        &["unit/test_basic.py::test_more: absent on stock, failed (utils.py: "],
    );
}

#[test]
fn an_entry_for_another_pin_is_neither_used_nor_missed() {
    let project = suites_on_generation();
    add_own_test(&project, "paged-next", "pin = \"next\"\n");
    let list = "ci/suites/suites.toml";
    let alloc = "[[programs]]\ntarget = \"test-alloc\"\n";
    let new = format!("{alloc}\n[[programs]]\ntarget = \"test-new\"\npin = \"next\"\n");
    project.edit(list, alloc, &new);
    project.edit(list, "ours = \"failed\"", "ours = \"failed\"\npin = \"hello\"");
    for variant in ["stock-next", "paged-next"] {
        write_program(&project, variant, "test-new", "exit 0");
    }
    write_server(&project, "paged-next", "case \"$1\" in key) echo 401;; *) echo 200;; esac");
    let output = gate_suites(&project).success();
    assert!(output.stdout.contains("2 passed on ours and were not run on stock"), "{output}");
    assert!(
        output.stdout.contains("server tests, paged: 1 outcomes compared (1 passed), 1 differ as listed")
    );
    let output = gate_suites_of(&project, "paged-next").success();
    assert!(output.stdout.contains("3 passed on ours and were not run on stock"), "{output}");
    assert!(
        output.stdout.contains("server tests, paged: 0 outcomes compared (0 passed), 0 differ as listed")
    );
    // It is an error where its pin is used.
    project.edit(list, "pin = \"hello\"", "pin = \"next\"");
    red(
        gate_suites_of(&project, "paged-next"),
        &["test_props (A slot may use all cells.): ends as on stock"],
    );
    project.edit(list, "ours = \"failed\"\npin = \"next\"", "ours = \"failed\"\npin = \"nxt\"");
    gate_suites(&project).code(2).says(&[
        "invalid `ci/suites/suites.toml`",
        "`pins.toml` has no pin of this name",
        "next: use one of: hello, next",
    ]);
}

#[test]
fn a_suite_in_which_no_test_passes_or_runs_fails() {
    let project = suites();
    for variant in ["stock", "paged"] {
        write_server(&project, variant, "echo 500");
    }
    red(gate_suites(&project), &["server tests: no test passed on stock"]);
    let project = suites();
    project.edit("ci/suites/suites.toml", "run = [\"unit\"]", "run = [\"none\"]");
    std::fs::create_dir(project.tree("stock").join("tools/server/tests/none")).unwrap();
    std::fs::create_dir(project.tree("paged").join("tools/server/tests/none")).unwrap();
    red(gate_suites(&project), &["server tests: no test passed on stock"]);
}

#[test]
fn tests_that_cannot_be_run_do_not_pass() {
    let project = suites();
    std::fs::remove_file(project.path("target/espalier/build/paged-cpu-native/build.ninja")).unwrap();
    gate_suites(&project).code(2).says(&[
        "paged-cpu-native is not built",
        "next: cargo xtask build --variant paged --flavor cpu-native",
    ]);
    let project = suites();
    std::fs::remove_file(project.path("target/espalier/build/paged-cpu-native/bin/test-alloc")).unwrap();
    assert_ne!(gate_suites(&project).code, Some(0));
    let project = suites();
    let pytest =
        espalier_core::sys::machine::disk::folders_in(&project.path("target/espalier/tools")).pop().unwrap();
    std::fs::write(pytest.join("pytest.py"), "import sys\nprint('no such option')\nsys.exit(4)\n").unwrap();
    let output = gate_suites(&project);
    assert!(output.stderr.contains("no such option"), "{output}");
    assert_ne!(output.code, Some(0), "{output}");
}
