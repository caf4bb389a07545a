//! The token that `canary` uses for GitHub: required before anything is done, and shown nowhere.

use super::support::github::Incident;
use super::support::watched::{TOKEN, watched};
use super::support::{files, program_path};

#[test]
fn the_token_is_shown_nowhere() {
    let watched = watched();
    watched.greeting_goes();
    let log = watched.project.beside("curl.log");
    let wrapper = watched.project.beside("wrapper/curl");
    let curl = program_path::find(&program_path::of_this_machine(), "curl").expect("curl is installed");
    let record = format!("{{ echo \"$@\"; env; cat /proc/$$/cmdline; }} >> {}", log.display());
    files::write_script(&wrapper, &format!("{record}\nexec {} \"$@\"", curl.display()));
    let mut path = wrapper.parent().unwrap().as_os_str().to_os_string();
    path.push(":");
    path.push(program_path::of_this_machine());
    let bad = Incident::Answer(401, "", "{\"message\": \"Bad credentials\"}");
    for incident in [Incident::None, bad] {
        watched.server.next(&[incident]);
        let report = watched.project.beside("report.md");
        let more = ["--json", "--until", "status", "--github", "--report", report.to_str().unwrap()];
        let mut command = watched.command(&more);
        command.env("PATH", &path).env("GH_TOKEN", TOKEN);
        let output = watched.project.finish(command);
        assert!(!output.to_string().contains(TOKEN), "{output}");
        assert!(!std::fs::read_to_string(report).unwrap().contains(TOKEN));
    }
    let recorded = std::fs::read_to_string(log).unwrap();
    assert!(recorded.contains("--config -"), "{recorded}");
    assert!(!recorded.contains(TOKEN), "{recorded}");
    let lines: Vec<String> = watched.server.seen().into_iter().map(|seen| seen.line).collect();
    assert!(!lines.is_empty() && !lines.concat().contains(TOKEN));
    for file in files::list(watched.project.root()) {
        let bytes = std::fs::read(watched.project.path(&file)).unwrap_or_default();
        assert!(!bytes.windows(TOKEN.len()).any(|window| window == TOKEN.as_bytes()), "{file}");
    }
}

#[test]
fn the_build_of_upstream_does_not_get_the_token() {
    let watched = watched();
    let spy = "project(hello C)\nexecute_process(COMMAND env OUTPUT_FILE ${CMAKE_BINARY_DIR}/environment)";
    watched.upstream_does("Look around", "CMakeLists.txt", "project(hello C)", spy);
    let mut command = watched.command(&["--until", "contract"]);
    command.env("GH_TOKEN", TOKEN);
    watched.project.finish(command).success();
    let seen = watched.project.read("target/espalier/build/canary.paged-cpu-native/environment");
    assert!(seen.contains("PATH=") && !seen.contains(TOKEN), "{seen}");
}

#[test]
fn missing_github_settings_are_reported_first() {
    let watched = watched();
    let without = |name: &str| {
        let mut command = watched.command(&["--quiet", "--github"]);
        command.env_remove(name);
        watched.project.finish(command)
    };
    insta::assert_snapshot!(without("GITHUB_TOKEN"), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: there is no token for GitHub
      next: set GITHUB_TOKEN; in a workflow: `env: GITHUB_TOKEN: ${{ github.token }}`
    ");
    insta::assert_snapshot!(without("GITHUB_REPOSITORY"), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: GITHUB_REPOSITORY is not set, so there is no repository whose issues to keep
      next: export GITHUB_REPOSITORY=OWNER/NAME
    ");
    let mut command = watched.command(&["--github"]);
    command.env("GITHUB_API_URL", "http://api.example");
    insta::assert_snapshot!(watched.project.finish(command), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: GITHUB_API_URL is `http://api.example`: the token is sent over https only
    ");
    insta::assert_snapshot!(watched.run(&["--offline", "--github"]), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: `--github` cannot be used with `--offline`
      next: use only one of the two options
    ");
    assert!(!watched.project.path("target").exists());
}
