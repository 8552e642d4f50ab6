/* A disk that fails, and a hand that pulls the plug: preloaded into a program, this counts what the
 * program and the processes it forks do to the files below one folder, and at a given step kills
 * them or lets the step fail. It also notes what of the files was synced, so that a test can put
 * the folder into the state in which a loss of power might have left it.
 *
 * The environment says what happens:
 *
 *   FAULTS_FOLDER   the folder; everything else is left alone
 *   FAULTS_BOARD    a file of BOARD bytes, zeroed, that all processes count in
 *   FAULTS_LOG      a file that gets a line for each step
 *   FAULTS_AT       the step at which it happens, from 1; 0 for never
 *   FAULTS_DO       kill: the step is not done, and all processes of the group are killed
 *                   torn: half of a write is done, and all are killed
 *                   alone: the step is not done, and only the process that would have is killed
 *                   eio, enospc: the step fails
 *                   short: half of the write is done, and the program is told so
 *   FAULTS_LASTING  not empty: every step from there on
 *   FAULTS_TICK     kill the program, and not what it forked, at the so many-th tick: a step, a read
 *                   or an allocation
 *   FAULTS_FROM     the step from which ticks are counted; the first by default
 *   FAULTS_SHADOW   a folder for what is synced: INODE is a file's content, names-INODE a folder's
 *                   names, and kept-INODE another name of the file, so that its number stays its own
 *   FAULTS_DEAF     "files", "folders" or both: pretend to sync them
 *   FAULTS_READS    a folder: each read below it is slow, and waits for the end of what was forked
 *
 * Linux only: a descriptor's path is asked of /proc, which is right after a rename too.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define BOARD 4096
#define SLOW_US 2000

struct board {
    _Atomic uint64_t steps, ticks;
    _Atomic int fired;
    pid_t program;
};

enum action { PROCEED, TEAR, SHORTEN, FAIL };

static struct board *board;
static const char *folder, *reads, *shadow, *deaf;
static char what[16];
static uint64_t at, tick_at, tick_from;
static int lasting, journal = -1;
static __thread int inside;

/* --- what is real -------------------------------------------------------------------------- */

#define REAL(type, name, ...)                                                                     \
    static type (*real_##name)(__VA_ARGS__);                                                      \
    static inline void find_##name(void) {                                                        \
        if (!real_##name) real_##name = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name);             \
    }

REAL(ssize_t, read, int, void *, size_t)
REAL(ssize_t, pread64, int, void *, size_t, off64_t)
REAL(ssize_t, readv, int, const struct iovec *, int)
REAL(ssize_t, write, int, const void *, size_t)
REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t)
REAL(ssize_t, writev, int, const struct iovec *, int)
REAL(int, fsync, int)
REAL(int, fdatasync, int)
REAL(int, rename, const char *, const char *)
REAL(int, renameat, int, const char *, int, const char *)
REAL(int, unlink, const char *)
REAL(int, unlinkat, int, const char *, int)
REAL(int, mkdir, const char *, mode_t)
REAL(int, ftruncate64, int, off64_t)
REAL(int, open64, const char *, int, ...)
REAL(int, openat64, int, const char *, int, ...)

static const char *given(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static uint64_t number(const char *name) {
    const char *value = given(name);
    return value ? strtoull(value, NULL, 10) : 0;
}

__attribute__((constructor)) static void begin(void) {
    folder = given("FAULTS_FOLDER");
    const char *path = given("FAULTS_BOARD");
    if (!folder || !path) return;
    int shared = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    if (shared < 0) _exit(99);
    void *mapped = mmap(NULL, BOARD, PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0);
    syscall(SYS_close, shared);
    if (mapped == MAP_FAILED) _exit(99);
    folder = strdup(folder);
    reads = given("FAULTS_READS") ? strdup(given("FAULTS_READS")) : NULL;
    shadow = given("FAULTS_SHADOW") ? strdup(given("FAULTS_SHADOW")) : NULL;
    deaf = given("FAULTS_DEAF") ? strdup(given("FAULTS_DEAF")) : "";
    snprintf(what, sizeof what, "%s", given("FAULTS_DO") ? given("FAULTS_DO") : "kill");
    at = number("FAULTS_AT");
    tick_at = number("FAULTS_TICK");
    tick_from = number("FAULTS_FROM") ? number("FAULTS_FROM") : 1;
    lasting = given("FAULTS_LASTING") != NULL;
    board = mapped;
    board->program = getpid();
    if (given("FAULTS_LOG")) journal = 0;
}

/* --- paths --------------------------------------------------------------------------------- */

static int is_below(const char *path, const char *place) {
    size_t length = strlen(place);
    return !strncmp(path, place, length) && (!path[length] || path[length] == '/');
}

static int path_of(int descriptor, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = 0;
    return length > 0;
}

/* The path from the root; no link is followed, and tests give none. */
static void whole(int from, const char *path, char *full) {
    char base[PATH_MAX] = "";
    if (path[0] != '/') {
        if (from == AT_FDCWD) {
            if (!getcwd(base, sizeof base)) base[0] = 0;
        } else {
            path_of(from, base);
        }
    }
    if ((size_t)snprintf(full, PATH_MAX, "%s%s%s", base, base[0] ? "/" : "", path) >= PATH_MAX)
        full[0] = 0;
}

/* --- steps --------------------------------------------------------------------------------- */

static void note(uint64_t step, const char *kind, const char *path, int hit) {
    char line[PATH_MAX + 128];
    int length = snprintf(line, sizeof line, "%llu %s %s %s%s\n", (unsigned long long)step,
                          getpid() == board->program ? "program" : "fork", kind,
                          path + strlen(folder), hit ? " !" : "");
    int file = (int)syscall(SYS_openat, AT_FDCWD, getenv("FAULTS_LOG"),
                            O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) return;
    syscall(SYS_write, file, line, (size_t)length);
    syscall(SYS_close, file);
}

static void end_group(void) {
    kill(0, SIGKILL);
    for (;;) pause();
}

static void tick(void) {
    if (!board || !tick_at || board->steps < tick_from) return;
    if (atomic_fetch_add(&board->ticks, 1) + 1 == tick_at) {
        board->fired = 1;
        kill(board->program, SIGKILL);
    }
}

static enum action step(const char *kind, const char *path) {
    tick();
    uint64_t now = atomic_fetch_add(&board->steps, 1) + 1;
    int hit = at && (now == at || (lasting && now > at));
    if (journal == 0) note(now, kind, path, hit);
    if (!hit) return PROCEED;
    board->fired = 1;
    int is_write = !strcmp(kind, "write");
    if (!strcmp(what, "torn") && is_write) return TEAR;
    if (!strcmp(what, "short")) return is_write ? SHORTEN : PROCEED;
    if (!strcmp(what, "eio") || !strcmp(what, "enospc")) {
        errno = what[1] == 'i' ? EIO : ENOSPC;
        return FAIL;
    }
    if (!strcmp(what, "alone")) {
        kill(getpid(), SIGKILL);
        for (;;) pause();
    }
    end_group();
    return FAIL;
}

/* Whether what happens to this descriptor counts, and what is to be done then. */
static int counts(int descriptor, char *path) {
    if (!board || inside) return 0;
    int before = errno;
    int yes = path_of(descriptor, path) && is_below(path, folder);
    errno = before;
    return yes;
}

static int counts_path(int from, const char *path, char *full) {
    if (!board || inside || !path) return 0;
    int before = errno;
    whole(from, path, full);
    errno = before;
    return is_below(full, folder);
}

/* --- what is synced ------------------------------------------------------------------------ */

static void copy_file(int descriptor, uint64_t inode) {
    char from[64], beside[PATH_MAX], place[PATH_MAX], kept[PATH_MAX], block[1 << 16];
    snprintf(from, sizeof from, "/proc/self/fd/%d", descriptor);
    snprintf(beside, sizeof beside, "%s/beside-%d", shadow, (int)getpid());
    snprintf(place, sizeof place, "%s/%llu", shadow, (unsigned long long)inode);
    snprintf(kept, sizeof kept, "%s/kept-%llu", shadow, (unsigned long long)inode);
    linkat(AT_FDCWD, from, AT_FDCWD, kept, AT_SYMLINK_FOLLOW);
    int source = open(from, O_RDONLY | O_CLOEXEC);
    int target = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ssize_t count;
    while ((count = read(source, block, sizeof block)) > 0)
        if (write(target, block, (size_t)count) != count) _exit(99);
    close(source);
    close(target);
    rename(beside, place);
}

static void copy_names(const char *path, uint64_t inode) {
    char beside[PATH_MAX], place[PATH_MAX], kept[PATH_MAX], name[PATH_MAX + 256];
    snprintf(beside, sizeof beside, "%s/beside-%d", shadow, (int)getpid());
    snprintf(place, sizeof place, "%s/names-%llu", shadow, (unsigned long long)inode);
    DIR *open_folder = opendir(path);
    FILE *names = fopen(beside, "w");
    if (!open_folder || !names) _exit(99);
    for (struct dirent *entry; (entry = readdir(open_folder));) {
        struct stat status;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        if (lstat(name, &status)) continue;
        unsigned long long own = (unsigned long long)status.st_ino;
        if (S_ISREG(status.st_mode)) {
            snprintf(kept, sizeof kept, "%s/kept-%llu", shadow, own);
            link(name, kept);
        }
        fprintf(names, "%c %o %llu %s\n", S_ISDIR(status.st_mode) ? 'd' : 'f',
                (unsigned)(status.st_mode & 07777), own, entry->d_name);
    }
    fclose(names);
    closedir(open_folder);
    rename(beside, place);
}

static int sync_it(int descriptor, int (*real)(int), const char *kind) {
    char path[PATH_MAX];
    if (!counts(descriptor, path)) return real(descriptor);
    if (step(kind, path) == FAIL) return -1;
    struct stat status;
    if (fstat(descriptor, &status)) return -1;
    int is_folder = S_ISDIR(status.st_mode);
    if (strstr(deaf, is_folder ? "folders" : "files")) return 0;
    /* The disk of a test need not spin: what counts is that the program asked. */
    if (shadow) {
        inside = 1;
        if (is_folder) copy_names(path, status.st_ino);
        else copy_file(descriptor, status.st_ino);
        inside = 0;
    }
    return 0;
}

/* --- calls --------------------------------------------------------------------------------- */

int fsync(int descriptor) {
    find_fsync();
    return sync_it(descriptor, real_fsync, "fsync");
}

int fdatasync(int descriptor) {
    find_fdatasync();
    return sync_it(descriptor, real_fdatasync, "fdatasync");
}

/* How many of so many bytes are to be written: all, half, or none because it failed (-1). */
static ssize_t share(int descriptor, size_t count, int *tears) {
    char path[PATH_MAX];
    *tears = 0;
    if (!counts(descriptor, path)) return (ssize_t)count;
    switch (step("write", path)) {
    case FAIL:
        return -1;
    case TEAR:
        *tears = 1;
        return (ssize_t)(count / 2);
    case SHORTEN:
        return (ssize_t)(count > 1 ? count / 2 : count);
    default:
        return (ssize_t)count;
    }
}

ssize_t write(int descriptor, const void *data, size_t count) {
    find_write();
    int tears;
    ssize_t most = share(descriptor, count, &tears);
    ssize_t done = most < 0 ? -1 : real_write(descriptor, data, (size_t)most);
    if (tears) end_group();
    return done;
}

ssize_t pwrite64(int descriptor, const void *data, size_t count, off64_t offset) {
    find_pwrite64();
    int tears;
    ssize_t most = share(descriptor, count, &tears);
    ssize_t done = most < 0 ? -1 : real_pwrite64(descriptor, data, (size_t)most, offset);
    if (tears) end_group();
    return done;
}

ssize_t pwrite(int descriptor, const void *data, size_t count, off_t offset) {
    return pwrite64(descriptor, data, count, offset);
}

ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    find_writev();
    find_write();
    size_t all = 0;
    for (int part = 0; part < count; part++) all += parts[part].iov_len;
    int tears;
    ssize_t most = share(descriptor, all, &tears);
    if (most < 0) return -1;
    ssize_t done;
    if ((size_t)most == all) {
        done = real_writev(descriptor, parts, count);
    } else {
        size_t first = parts[0].iov_len < (size_t)most ? parts[0].iov_len : (size_t)most;
        done = real_write(descriptor, parts[0].iov_base, first);
    }
    if (tears) end_group();
    return done;
}

int ftruncate64(int descriptor, off64_t length) {
    find_ftruncate64();
    char path[PATH_MAX];
    if (counts(descriptor, path) && step("ftruncate", path) == FAIL) return -1;
    return real_ftruncate64(descriptor, length);
}

int ftruncate(int descriptor, off_t length) { return ftruncate64(descriptor, length); }

int rename(const char *old, const char *new) {
    find_rename();
    char path[PATH_MAX];
    if (counts_path(AT_FDCWD, new, path) && step("rename", path) == FAIL) return -1;
    return real_rename(old, new);
}

int renameat(int from, const char *old, int to, const char *new) {
    find_renameat();
    char path[PATH_MAX];
    if (counts_path(to, new, path) && step("rename", path) == FAIL) return -1;
    return real_renameat(from, old, to, new);
}

int unlink(const char *name) {
    find_unlink();
    char path[PATH_MAX];
    if (counts_path(AT_FDCWD, name, path) && step("unlink", path) == FAIL) return -1;
    return real_unlink(name);
}

int unlinkat(int from, const char *name, int flags) {
    find_unlinkat();
    char path[PATH_MAX];
    if (counts_path(from, name, path) && step("unlink", path) == FAIL) return -1;
    return real_unlinkat(from, name, flags);
}

int mkdir(const char *name, mode_t mode) {
    find_mkdir();
    char path[PATH_MAX];
    if (counts_path(AT_FDCWD, name, path) && step("mkdir", path) == FAIL) return -1;
    return real_mkdir(name, mode);
}

static int opened(int from, const char *name, int flags, mode_t mode) {
    find_openat64();
    char path[PATH_MAX];
    if (counts_path(from, name, path) && step("open", path) == FAIL) return -1;
    return real_openat64(from, name, flags, mode);
}

#define MODE(flags)                                                                               \
    mode_t mode = 0;                                                                              \
    if ((flags) & (O_CREAT | __O_TMPFILE)) {                                                      \
        va_list more;                                                                             \
        va_start(more, flags);                                                                    \
        mode = va_arg(more, mode_t);                                                              \
        va_end(more);                                                                             \
    }

int open64(const char *name, int flags, ...) {
    MODE(flags)
    return opened(AT_FDCWD, name, flags, mode);
}

int open(const char *name, int flags, ...) {
    MODE(flags)
    return opened(AT_FDCWD, name, flags, mode);
}

int openat64(int from, const char *name, int flags, ...) {
    MODE(flags)
    return opened(from, name, flags, mode);
}

int openat(int from, const char *name, int flags, ...) {
    MODE(flags)
    return opened(from, name, flags, mode);
}

int __open64_2(const char *name, int flags) { return opened(AT_FDCWD, name, flags, 0); }
int __open_2(const char *name, int flags) { return opened(AT_FDCWD, name, flags, 0); }

/* --- reads --------------------------------------------------------------------------------- */

static void linger(int descriptor) {
    tick();
    if (!board || !reads || inside || getpid() != board->program) return;
    char path[PATH_MAX];
    int before = errno;
    if (path_of(descriptor, path) && is_below(path, reads)) {
        siginfo_t over;
        usleep(SLOW_US);
        waitid(P_ALL, 0, &over, WEXITED | WNOWAIT);
    }
    errno = before;
}

ssize_t read(int descriptor, void *data, size_t count) {
    find_read();
    linger(descriptor);
    return real_read(descriptor, data, count);
}

ssize_t pread64(int descriptor, void *data, size_t count, off64_t offset) {
    find_pread64();
    linger(descriptor);
    return real_pread64(descriptor, data, count, offset);
}

ssize_t pread(int descriptor, void *data, size_t count, off_t offset) {
    return pread64(descriptor, data, count, offset);
}

ssize_t readv(int descriptor, const struct iovec *parts, int count) {
    find_readv();
    linger(descriptor);
    return real_readv(descriptor, parts, count);
}

#ifdef __GLIBC__
extern void *__libc_malloc(size_t);

void *malloc(size_t size) {
    tick();
    return __libc_malloc(size);
}
#endif
