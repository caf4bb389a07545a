//! Output under adverse conditions: a closed pipe, a full disk, and control characters in other programs' text.

use std::fs::File;
use std::process::Stdio;

use super::support::Project;
use super::support::upstream::moved;

fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

#[test]
fn an_answer_that_cannot_be_written_is_reported() {
    let project = Project::new();
    for command in [&["lint"][..], &["status"], &["--json", "status"]] {
        let mut run = project.command(command);
        run.stdout(full());
        project.finish(run).code(3).says(&["could not write to `standard output`", "free some disk space"]);
    }
}

#[test]
fn talk_that_cannot_be_written_stops_nothing() {
    let project = Project::new();
    let upstream = moved(&project, &[("Say hi", "src/greet.c", "return \"hello\";", "return \"hi\";")]);
    let from = upstream.to_str().unwrap();
    let commands = [
        (&["apply"][..], 0),
        (&["bisect", "--tip", "main", "--from", from], 1),
        (&["rebase", "--to", "main", "--from", from], 4),
        (&["apply", "--variant", "none"], 2),
    ];
    for (command, code) in commands {
        let mut run = project.command(command);
        run.stderr(full());
        project.finish(run).code(code);
    }
}

/// The exit code that a shell reports for a program piped into `head`.
#[test]
fn a_reader_that_had_enough_ends_it_quietly() {
    let project = Project::new();
    project.run(&["apply"]).success();
    let mut run = project.command(&["--json", "lock"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    run.stdout(writer);
    let output = project.finish(run).code(141);
    assert_eq!(output.stderr, "");
}

const TRAP: &str = "\u{1b}[2J\u{202e}x\u{200b}\u{9b}";

fn assert_tame(text: &str) {
    let bad = text.chars().find(|letter| {
        (letter.is_control() && !"\n\t".contains(*letter))
            || TRAP[1..].contains(*letter) && !letter.is_ascii()
    });
    assert_eq!(bad, None, "{text}");
}

#[test]
fn names_of_others_do_not_steer_a_terminal() {
    let project = Project::new();
    project.edit("pins.toml", "upstream = \"hello\"", "upstream = \"\\u001b[2J\\u202ehello\\u009b\"");
    project.write(&format!("patches/paged/{TRAP}"), "no patch\n");
    project.write(&format!("patches/paged/{TRAP}.patch"), "no patch\n");
    project.write(&format!("overlay/extra/{TRAP}"), "no patch\n");
    for command in [&["lint"][..], &["apply"], &["status"], &["fetch"], &["--json", "fetch"], &["lock"]] {
        let output = project.run(command);
        assert_tame(&output.stdout);
        assert_tame(&output.stderr);
    }
    std::fs::remove_file(project.path(&format!("patches/paged/{TRAP}.patch"))).unwrap();
    let output = project.run(&["apply"]).code(2);
    assert_tame(&output.stderr);
}

#[test]
fn subjects_of_others_are_shown_and_not_obeyed() {
    let project = Project::new();
    let subject = format!("closes #1 `@octocat` [a](javascript:x) | {TRAP}");
    let upstream = moved(&project, &[(&subject, "src/greet.c", "return \"hello\";", "return \"hi\";")]);
    let from = upstream.to_str().unwrap();
    for format in [&["--markdown"][..], &["--json"], &[]] {
        let output = project.run(&[&["bisect", "--tip", "main", "--from", from], format].concat());
        assert_tame(&output.stdout);
    }
    let page = project.run(&["bisect", "--tip", "main", "--from", from, "--markdown"]).stdout;
    assert!(page.contains("`` closes #1 `@octocat` [a](javascript:x) \\| \\u{1b}[2J\\u{202e}x"), "{page}");
}
