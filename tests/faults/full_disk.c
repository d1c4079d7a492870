/* A disk that fills up: writes into files below FULL_FOLDER fail with ENOSPC once fault_after(n) calls have gone well.
 * Built by the test and preloaded. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static long left = -1, calls = 0;

void fault_after(long n) { left = n; calls = 0; }
long fault_calls(void) { return calls; }

static int fails(int fd) {
    char name[64], path[PATH_MAX];
    const char *folder = getenv("FULL_FOLDER");
    if (left < 0 || folder == NULL) return 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(name, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    if (strncmp(path, folder, strlen(folder)) != 0) return 0;
    if (calls++ < left) return 0;
    errno = ENOSPC;
    return 1;
}

#define REAL(type, name, ...) static type (*real)(__VA_ARGS__); if (!real) real = dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *data, size_t size) {
    REAL(ssize_t, write, int, const void *, size_t);
    return fails(fd) ? -1 : real(fd, data, size);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    REAL(ssize_t, pwrite, int, const void *, size_t, off_t);
    return fails(fd) ? -1 : real(fd, data, size, at);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off_t at) {
    REAL(ssize_t, pwrite64, int, const void *, size_t, off_t);
    return fails(fd) ? -1 : real(fd, data, size, at);
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(ssize_t, writev, int, const struct iovec *, int);
    return fails(fd) ? -1 : real(fd, parts, count);
}
int ftruncate64(int fd, off_t size) {
    REAL(int, ftruncate64, int, off_t);
    return fails(fd) ? -1 : real(fd, size);
}
int fsync(int fd) {
    REAL(int, fsync, int);
    struct stat facts;
    int is_file = fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode); /* that of a folder follows the rename */
    return is_file && fails(fd) ? -1 : real(fd);
}
