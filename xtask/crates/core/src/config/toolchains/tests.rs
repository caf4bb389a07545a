use super::{Own, Toolchain, Toolchains};
use crate::config::snippet::SourceText;

fn parse(text: &str) -> Result<Toolchains, String> {
    Toolchains::parse(SourceText { name: "ci/toolchains.toml", text }).map_err(|error| error.to_string())
}

fn digest(of: u8) -> String {
    format!("{of:02x}").repeat(32)
}

fn wheels(more: &str) -> String {
    format!(
        "[toolchains.gpu]\nabout = \"x\"\nhosts = [\"linux-x86_64\"]\n\
         wheels = [{{ name = \"compiler\", version = \"1.2\", bytes = 1500000, sha256 = \"{}\" }}]\n{more}",
        digest(1)
    )
}

fn only(text: &str) -> Toolchain {
    let mut read = parse(text).unwrap();
    read.toolchains.pop_first().unwrap().1
}

#[test]
fn the_steps_are_in_the_order_in_which_they_need_each_other() {
    let toolchain = only(&wheels(
        "programs = [\"bin/cc\"]\nlinks = { \"lib/a.so\" = \"a.so.1\" }\nremove = [\"src\"]\n\
         moves = { include = \"src/include\" }\nfiles = { \"bin/cc\" = \"#!/bin/sh\" }\n\
         builds = [{ source = \"src\", target = \"all\", take = { \"lib/a.so.1\" = \"a.so\" } }]\n",
    ));
    let steps: Vec<String> = toolchain.steps().iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(steps.join("\n"), @"
    download and unpack with pip (1.5 MB): compiler 1.2
    write bin/cc
    compile all of src
    move to include; remove src; link lib/a.so
    check bin/cc, move it into place
    ");
    assert_eq!(toolchain.download_bytes(), 1_500_000);
}

#[test]
fn only_what_is_in_the_folder_changes_its_digest() {
    let plain = only(&wheels(""));
    let about = only(&wheels("").replace("about = \"x\"", "about = \"y\""));
    assert_eq!(plain.contents(), about.contents());
    for changed in
        ["remove = [\"a\"]", "files = { a = \"b\" }", "links = { a = \"b\" }", "moves = { a = \"b\" }"]
    {
        assert_ne!(plain.contents(), only(&wheels(changed)).contents(), "{changed}");
    }
    let other = only(&wheels("").replace(&digest(1), &digest(2)));
    assert_ne!(plain.contents(), other.contents());
}

#[test]
fn the_folder_takes_the_place_of_its_mark() {
    let toolchain = only(&wheels(
        "cmake = { A = \"{toolchain}/bin\", B = \"ON\" }\nrunner = [\"{toolchain}/q\", \"-L\"]",
    ));
    let entries = Toolchain::in_folder(&toolchain.cmake, "/t");
    assert_eq!(
        entries.into_iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>(),
        ["A=/t/bin", "B=ON"]
    );
    assert_eq!(toolchain.runner_in("/t"), ["/t/q", "-L"]);
}

#[test]
fn an_own_compiler_has_a_version_between_the_bounds() {
    let own = |least: Option<&str>, below: Option<&str>| Own {
        program: "nvcc".to_string().try_into().unwrap(),
        at_least: least.map(str::to_string),
        below: below.map(str::to_string),
    };
    let output = "Cuda compilation tools, release 12.9, V12.9.86";
    assert!(own(Some("12.0"), Some("13.0")).does(output) && own(None, None).does("no number"));
    assert!(!own(Some("13.0"), None).does(output) && !own(Some("11.0"), Some("12.9")).does(output));
    assert!(!own(Some("1.0"), None).does("no number"));
}

#[test]
fn installed_package_managers_are_listed_first() {
    let toolchain = only(&wheels("install = { apt-get = \"apt-get install a\", brew = \"brew install a\" }"));
    assert_eq!(toolchain.install_hints(|manager| manager == "brew"), ["brew install a"]);
    assert_eq!(toolchain.install_hints(|_| false).len(), 2);
    let prose = wheels("install = { apt-get = \"apt-get install a, out of a repository\" }");
    let error = Toolchains::parse(SourceText { name: "ci/toolchains.toml", text: &prose }).unwrap_err();
    assert!(error.to_string().contains("cannot be pasted into a shell"), "{error}");
    only(&wheels("install = { apt-get = \"apt-get install a    # out of a repository\" }"));
}

#[test]
fn toolchains_that_cannot_be_set_up_are_refused() {
    let cases = [
        (wheels("runs-on = \"none\""), "no toolchain has this name"),
        (wheels("").replace("hosts = [\"linux-x86_64\"]\n", ""), "packages need `hosts`"),
        ("[toolchains.a]\nabout = \"x\"\n".to_string(), "expected packages, or `own`"),
        (wheels("debs-from = { suite = \"trixie\", component = \"main\" }"), "and there are none"),
        (wheels("debs-from = { suite = \"a b\", component = \"main\" }"), "a letter or digit first"),
        (wheels("").replace("bytes", "arch = \"amd64\", bytes"), "only `debs` do"),
        (wheels("").replace("\"compiler\"", "\"--index-url\""), "a letter or digit first"),
        (wheels("programs = [\"../cc\"]"), "a path inside"),
        (wheels("links = { a = \"/etc\" }"), "a path inside"),
        (wheels("").replace(&digest(1), "abc"), "64 lower-case hexadecimal digits"),
        (wheels("url = \"x\""), "unknown field `url`"),
    ];
    for (text, expected) in cases {
        let message = parse(&text).unwrap_err();
        assert!(message.contains(expected), "{message}");
    }
}
