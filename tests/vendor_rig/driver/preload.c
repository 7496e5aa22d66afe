/* The functions of libc that lead to a driver. What is not about the NPU goes on to libc. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "stand_in.h"
#include "uapi.h"

enum { DRM_MAJOR = 226 };

/* libc's own function of the same name. */
#define NEXT(name)                                                                                                     \
    ({                                                                                                                 \
        static __typeof__(&(name)) function;                                                                           \
        if (function == NULL)                                                                                          \
            function = (__typeof__(&(name)))next(#name);                                                               \
        function;                                                                                                      \
    })

static void *next(const char *name) {
    void *function = dlsym(RTLD_NEXT, name);
    if (function == NULL) {
        fprintf(stderr, "rknpu stand-in: libc has no %s\n", name);
        abort();
    }
    return function;
}

/* The host's own programs, by which a process of the board starts another, cannot load this: they are told nothing of it. */
__attribute__((constructor)) static void forget_preload(void) {
    unsetenv("LD_PRELOAD");
}

/* ---- paths ---- */

/* What a path names: nothing of ours, a node of the device with this minor number, one that is not there, the heap, or
 * debugfs's list of DMA buffers. */
enum { NOT_OURS = -1, ABSENT = -2, HEAP = -3, TOTALS = -4 };

static int ours(const char *path) {
    int minor = NOT_OURS;
    if (path == NULL)
        return NOT_OURS;
    if (strcmp(path, "/dev/dri/card0") == 0)
        minor = 0;
    else if (strcmp(path, "/dev/dri/renderD129") == 0)
        minor = 129;
    else if (strcmp(path, "/dev/dma_heap/system") == 0)
        return HEAP;
    else
        return strcmp(path, "/sys/kernel/debug/dma_buf/bufinfo") == 0 ? TOTALS : NOT_OURS;
    return settings()->absent ? ABSENT : minor;
}

/* A device tree lies in /sys; what the kernel has in /proc, where nothing can be added, is a link to it. */
static const char *in_sys(const char *path, char *room, size_t size) {
    static const char link[] = "/proc/device-tree";
    size_t length = sizeof link - 1;
    if (path == NULL || strncmp(path, link, length) != 0 || (path[length] != '/' && path[length] != '\0'))
        return path;
    snprintf(room, size, "/sys/firmware/devicetree/base%s", path + length);
    return room;
}

/* ---- open files of the device, and of the heap: anonymous files, known by their inodes ---- */

struct file {
    struct file *next;
    ino_t inode;
    int which; /* as `ours` tells it */
};

static struct file *files;

static int open_device(int which) {
    struct file *file = calloc(1, sizeof *file);
    struct stat status;
    int fd = memfd_create(which == HEAP ? "dma-heap" : "rknpu-device", MFD_CLOEXEC);
    if (file == NULL || fd < 0 || NEXT(fstat)(fd, &status) != 0) {
        errno = ENOMEM;
        return -1;
    }
    pthread_mutex_lock(&stand_in_lock);
    *file = (struct file){files, status.st_ino, which};
    files = file;
    pthread_mutex_unlock(&stand_in_lock);
    return fd;
}

static struct file *file_of(int fd) {
    struct stat status;
    if (files == NULL || NEXT(fstat)(fd, &status) != 0)
        return NULL;
    for (struct file *file = files; file != NULL; file = file->next)
        if (file->inode == status.st_ino)
            return file;
    return NULL;
}

/* What the kernel's list of DMA buffers ends with. */
static int open_totals(void) {
    int fd = memfd_create("bufinfo", MFD_CLOEXEC);
    char text[128];
    uint64_t bytes, count;
    pthread_mutex_lock(&stand_in_lock);
    count = buffer_count(&bytes);
    pthread_mutex_unlock(&stand_in_lock);
    int size = snprintf(text, sizeof text, "\nTotal %llu objects, %llu bytes\n", (unsigned long long)count,
                        (unsigned long long)bytes);
    if (fd >= 0 && pwrite(fd, text, (size_t)size, 0) != size) {
        NEXT(close)(fd);
        return -1;
    }
    return fd;
}

static int open_ours(int which) {
    if (which == TOTALS)
        return open_totals();
    if (which != ABSENT)
        return open_device(which);
    errno = ENOENT;
    return -1;
}

#define OPEN(name, before, call)                                                                                       \
    int name before {                                                                                                  \
        int which = ours(path);                                                                                        \
        if (which != NOT_OURS)                                                                                         \
            return open_ours(which);                                                                                   \
        char room[PATH_MAX];                                                                                           \
        path = in_sys(path, room, sizeof room);                                                                        \
        va_list arguments;                                                                                             \
        va_start(arguments, flags);                                                                                    \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;                                   \
        va_end(arguments);                                                                                             \
        return NEXT(name) call;                                                                                        \
    }

OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
OPEN(openat, (int folder, const char *path, int flags, ...), (folder, path, flags, mode))
OPEN(openat64, (int folder, const char *path, int flags, ...), (folder, path, flags, mode))

int close(int fd) {
    pthread_mutex_lock(&stand_in_lock);
    struct file *file = file_of(fd);
    struct buffer *buffer = file == NULL ? buffer_by_fd(fd) : NULL;
    if (file != NULL) {
        device_closed(file->inode);
        struct file **at = &files;
        while (*at != file)
            at = &(*at)->next;
        *at = file->next;
        free(file);
    }
    int result = NEXT(close)(fd);
    if (buffer != NULL)
        buffer_release(buffer);
    pthread_mutex_unlock(&stand_in_lock);
    return result;
}

/* ---- stat: the node is a character device, although nothing but a file can be made there ---- */

#define AS_NODE(result, status, minor)                                                                                        \
    do {                                                                                                               \
        if ((result) == 0) {                                                                                           \
            (status)->st_mode = S_IFCHR | 0660;                                                                        \
            (status)->st_rdev = makedev(DRM_MAJOR, minor);                                                                 \
        }                                                                                                              \
    } while (0)

#define STAT_PATH(name, type, before, call)                                                                            \
    int name before {                                                                                                  \
        int which = ours(path);                                                                                        \
        if (which == ABSENT)                                                                                           \
            return open_ours(which);                                                                                   \
        char room[PATH_MAX];                                                                                           \
        path = in_sys(path, room, sizeof room);                                                                        \
        int result = NEXT(name) call;                                                                                  \
        if (which >= 0)                                                                                                \
            AS_NODE(result, status, which);                                                                            \
        return result;                                                                                                 \
    }

#define STAT_FD(name, type, before, call)                                                                              \
    int name before {                                                                                                  \
        int result = NEXT(name) call;                                                                                  \
        struct file *file = file_of(fd);                                                                               \
        if (file != NULL && file->which >= 0)                                                                          \
            AS_NODE(result, status, file->which);                                                                                   \
        return result;                                                                                                 \
    }

STAT_PATH(stat, struct stat, (const char *path, struct stat *status), (path, status))
STAT_PATH(stat64, struct stat64, (const char *path, struct stat64 *status), (path, status))
STAT_PATH(lstat, struct stat, (const char *path, struct stat *status), (path, status))
STAT_PATH(lstat64, struct stat64, (const char *path, struct stat64 *status), (path, status))
STAT_FD(fstat, struct stat, (int fd, struct stat *status), (fd, status))
STAT_FD(fstat64, struct stat64, (int fd, struct stat64 *status), (fd, status))

/* What programs call that were linked with a glibc before 2.33. */
int __xstat(int version, const char *path, struct stat *status);
int __xstat(int version, const char *path, struct stat *status) {
    (void)version;
    return stat(path, status);
}
int __lxstat(int version, const char *path, struct stat *status);
int __lxstat(int version, const char *path, struct stat *status) {
    (void)version;
    return lstat(path, status);
}
int __fxstat(int version, int fd, struct stat *status);
int __fxstat(int version, int fd, struct stat *status) {
    (void)version;
    return fstat(fd, status);
}

/* The library would make a missing device node by itself, on whatever machine it runs. */
int __xmknod(int version, const char *path, mode_t mode, dev_t *device);
int __xmknod(int version, const char *path, mode_t mode, dev_t *device) {
    (void)version, (void)path, (void)mode, (void)device;
    errno = EPERM;
    return -1;
}

/* ---- ioctl and mmap ---- */

static int as_libc(int result) {
    if (result >= 0)
        return result;
    errno = -result;
    return -1;
}

int ioctl(int fd, unsigned long request, ...) {
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    pthread_mutex_lock(&stand_in_lock);
    struct file *file = file_of(fd);
    struct buffer *buffer = file == NULL && _IOC_TYPE(request) == 'b' ? buffer_by_fd(fd) : NULL;
    int result = 1;
    if (file != NULL)
        result = file->which == HEAP ? dma_heap_ioctl(request, argument) : device_ioctl(file->inode, request, argument);
    else if (buffer != NULL)
        result = dma_buf_ioctl(buffer, request, argument);
    pthread_mutex_unlock(&stand_in_lock);
    return result <= 0 ? as_libc(result) : NEXT(ioctl)(fd, request, argument);
}

static void *map_device(void *address, size_t length, int protection, int flags, off_t offset) {
    pthread_mutex_lock(&stand_in_lock);
    int fd = device_mapping((uint64_t)offset, length);
    pthread_mutex_unlock(&stand_in_lock);
    if (fd < 0) {
        errno = EINVAL;
        return MAP_FAILED;
    }
    return NEXT(mmap)(address, length, protection, flags, fd, 0);
}

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
    struct file *file = fd >= 0 ? file_of(fd) : NULL;
    if (file != NULL && file->which >= 0)
        return map_device(address, length, protection, flags, offset);
    return NEXT(mmap)(address, length, protection, flags, fd, offset);
}

void *mmap64(void *address, size_t length, int protection, int flags, int fd, off64_t offset) {
    return mmap(address, length, protection, flags, fd, offset);
}
