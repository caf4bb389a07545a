//! The synthetic upstream and its fork, created once with real git and shared by all tests.
//!
//! The fork has one commit per patch on top of the tag. Tests must not write to either: `copy` creates a separate fork
//! for a test.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::{files, git};

/// The tag that the pin names.
pub const TAG: &str = "v1.0";

const CMAKE_LISTS: &str = "cmake_minimum_required(VERSION 3.14)
project(hello C)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
add_library(words STATIC src/add.c src/count.c src/greet.c src/join.c src/length.c src/name.c src/ring.c
    src/twins.c src/upper.c)
target_include_directories(words PUBLIC include)
add_executable(hello programs/hello.c)
target_link_libraries(hello words)
add_executable(hello2 programs/hello2.c)
target_link_libraries(hello2 words)
add_executable(llama-server programs/server.c)
";

/// A minimal server for the smoke test: it answers every request with the same complete answer.
const SERVER: &str = r#"#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char ANSWER[] =
    "{\"content\": \"grows\", \"choices\": [{\"message\": {\"content\": \"green\"}}], \"build_info\": \"hello\"}";

static void read_request(int client) {
    char text[65536];
    size_t used = 0;
    for (;;) {
        ssize_t count = read(client, text + used, sizeof(text) - 1 - used);
        if (count <= 0) {
            return;
        }
        used += (size_t) count;
        text[used] = 0;
        const char * end = strstr(text, "\r\n\r\n");
        const char * length = strstr(text, "Content-Length:");
        size_t body = length ? (size_t) atoi(length + 15) : 0;
        if (end && used >= (size_t) (end - text) + 4 + body) {
            return;
        }
    }
}

int main(int argc, char ** argv) {
    struct sockaddr_in address = {0};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], "--port") == 0) {
            address.sin_port = htons((unsigned short) atoi(argv[i + 1]));
        }
    }
    int server = socket(AF_INET, SOCK_STREAM, 0);
    int on = 1;
    setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(server, (struct sockaddr *) &address, sizeof(address)) || listen(server, 16)) {
        return 1;
    }
    for (;;) {
        int client = accept(server, NULL, NULL);
        read_request(client);
        dprintf(client, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
            "Content-Length: %zu\r\n\r\n%s", strlen(ANSWER), ANSWER);
        close(client);
    }
}
"#;

const HEADER: &str = "#pragma once
int words_add(int left, int right);
int words_count(const char * text);
const char * words_greeting(int kind);
void words_join(char * to, const char * from);
int words_length(const char * text);
const char * words_name(void);
int words_ring(int at, int size);
int words_twin_left(int value);
int words_twin_right(int value);
char words_upper(char letter);
";

const HELLO: &str = "#include <stdio.h>
#include \"words.h\"

int main(void) {
    printf(\"%s, %s\\n\", words_greeting(0), words_name());
    return 0;
}
";

const HELLO2: &str = "#include <stdio.h>
#include \"words.h\"

int main(void) {
    printf(\"%d\\n\", words_count(words_greeting(1)));
    return 0;
}
";

const GREET: &str = "#include \"words.h\"

// What is said first.
const char * words_greeting(int kind) {
    if (kind == 0) {
        return \"hello\";
    }
    return \"good day to you\";
}
";

const COUNT: &str = "#include \"words.h\"

int words_count(const char * text) {
    int count = 0;
    int inside = 0;
    for (const char * at = text; *at; at++) {
        if (*at == ' ') {
            inside = 0;
        } else if (!inside) {
            inside = 1;
            count++;
        }
    }
    return count;
}
";

/// Two functions with the same body: a hunk for one fits in the other.
const TWINS: &str = "#include \"words.h\"

int words_twin_left(int value) {
    int result = value;
    if (result < 0) {
        result = 0;
    }
    result = result * 2;
    if (result > 100) {
        result = 100;
    }
    return result;
}

int words_twin_right(int value) {
    int result = value;
    if (result < 0) {
        result = 0;
    }
    result = result * 2;
    if (result > 100) {
        result = 100;
    }
    return result;
}
";

const SMALL: [(&str, &str); 6] = [
    ("add", "int words_add(int left, int right) {\n    return left + right;\n}\n"),
    ("join", "void words_join(char * to, const char * from) {\n    while ((*to++ = *from++)) {}\n}\n"),
    (
        "length",
        "int words_length(const char * text) {\n    int length = 0;\n    while (text[length]) length++;\n    return length;\n}\n",
    ),
    ("name", "const char * words_name(void) {\n    return \"world\";\n}\n"),
    ("ring", "int words_ring(int at, int size) {\n    return at % size;\n}\n"),
    (
        "upper",
        "char words_upper(char letter) {\n    return letter >= 'a' && letter <= 'z' ? letter - 32 : letter;\n}\n",
    ),
];

/// The two repositories.
pub struct Upstream {
    folder: PathBuf,
}

impl Upstream {
    /// Returns the instance that all tests share.
    pub fn shared() -> &'static Upstream {
        static SHARED: OnceLock<Upstream> = OnceLock::new();
        SHARED
            .get_or_init(|| Upstream { folder: made_once("upstream", &[include_str!("upstream.rs")], make) })
    }

    /// Returns upstream's repository, with its tag.
    pub fn repository(&self) -> PathBuf {
        self.folder.join("upstream")
    }

    /// Returns the repository with one commit per patch.
    pub fn fork(&self) -> PathBuf {
        self.folder.join("fork")
    }

    /// Returns the series that was exported from the fork.
    pub fn series(&self) -> PathBuf {
        self.folder.join("series")
    }

    /// Returns the tree of the tag.
    pub fn tree(&self) -> String {
        static TREE: OnceLock<String> = OnceLock::new();
        TREE.get_or_init(|| git::tree_of(&self.repository(), TAG)).clone()
    }
}

/// Creates a folder with `make` under a name that changes with `sources`; it is written to a temporary folder and moved
/// into place, so that parallel test runs do not interfere.
pub fn made_once(name: &str, sources: &[&str], make: impl FnOnce(&Path)) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    sources.hash(&mut hasher);
    let shared = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = shared.join(format!("cli-{name}-{:016x}", hasher.finish()));
    if !folder.is_dir() {
        let scratch = tempfile::tempdir_in(shared).unwrap();
        make(scratch.path());
        // A parallel run may have created the same folder first.
        let _ = std::fs::rename(scratch.path(), &folder);
    }
    folder
}

fn make(folder: &Path) {
    let (upstream, fork) = (folder.join("upstream"), folder.join("fork"));
    git::init(&upstream);
    write_files(&upstream);
    git::commit(&upstream, "Say hello");
    git::git(&upstream, &["tag", TAG]);
    git::git(folder, &["clone", "--quiet", "upstream", "fork"]);
    write_patches(&fork);
    git::export_series(&fork, TAG, &folder.join("series"));
}

fn write_files(folder: &Path) {
    let write = |name: &str, text: &str| files::write(&folder.join(name), text);
    write("CMakeLists.txt", CMAKE_LISTS);
    write("README.md", "# Hello\n\nIt says hello.\n");
    write("include/words.h", HEADER);
    write("programs/hello.c", HELLO);
    write("programs/hello2.c", HELLO2);
    write("programs/server.c", SERVER);
    write("src/greet.c", GREET);
    write("src/count.c", COUNT);
    write("src/twins.c", TWINS);
    for (name, text) in SMALL {
        write(&format!("src/{name}.c"), &format!("#include \"words.h\"\n\n{text}"));
    }
    write("docs/no-final-newline.txt", "one\ntwo\nthree");
    write("docs/windows.txt", "one\r\ntwo\r\nthree\r\n");
    write(
        "docs/old/story.txt",
        &(1..30).map(|line| format!("line {line} of the story\n")).collect::<String>(),
    );
    std::os::unix::fs::symlink("../README.md", folder.join("docs/link")).unwrap();
    files::write_script(&folder.join("scripts/greet.sh"), "echo hello");
    files::write(&folder.join("data/logo.bin"), [&[0u8, 1, 2, 255, 254][..], &[7; 300]].concat());
}

/// Writes three patches: two independent ones, and one that needs the first.
fn write_patches(fork: &Path) {
    files::edit(&fork.join("src/greet.c"), "\"hello\"", "\"hello there\"");
    git::commit(fork, "Greet more warmly");
    files::edit(&fork.join("src/count.c"), "int count = 0;", "int count = 0; // words, not letters");
    git::commit(fork, "Say what is counted");
    files::edit(&fork.join("src/greet.c"), "\"hello there\"", "\"hello there, dear\"");
    git::commit(fork, "Greet dearly");
}

/// Creates a fork for one test, in `folder`.
pub fn copy(folder: &Path) -> PathBuf {
    let copy = folder.join("fork");
    files::copy_folder(&Upstream::shared().fork(), &copy);
    copy
}

/// Creates an upstream beside `project` with commits after the tag, each given as a message, a file, a text and its
/// replacement. Returns its path.
pub fn moved(project: &super::Project, moves: &[(&str, &str, &str, &str)]) -> PathBuf {
    let repository = project.beside("moved");
    files::copy_folder(&Upstream::shared().repository(), &repository);
    for (message, file, from, to) in moves {
        files::edit(&repository.join(file), from, to);
        git::commit(&repository, message);
    }
    repository
}
