/* Buffers with two copies, the CPU's and the device's. Nothing joins them but cache maintenance, line by line, so that a
 * sync that is missing, wrong or too short shows in the data.
 *
 * The CPU's accesses cannot be trapped. Where its copy differs from what was last seen of it, it has written: that line
 * is dirty. When the device writes, the CPU's copy of those bytes is spoiled (a CPU that reads them without a sync must
 * not find the truth, and writing the very bytes that were there before must be seen as writing). Dirty lines stay. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stand_in.h"
#include "uapi.h"

/* Recursive: the stand-in's own files are opened and closed through the functions that it replaces. */
pthread_mutex_t stand_in_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static struct buffer *buffers;
static uint64_t next_dma;

/* Between two buffers, so that running over the end of one never meets another. */
enum { GAP = 16 * PAGE };

static uint64_t rounded(uint64_t size, uint64_t unit) {
    return (size + unit - 1) / unit * unit;
}

static uint8_t *mapped(int fd, uint64_t size) {
    int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void *address = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
    return address == MAP_FAILED ? NULL : address;
}

/* Takes the descriptor, also where it fails. */
static struct buffer *buffer_over(int fd, uint32_t flags, bool own) {
    struct buffer *buffer = calloc(1, sizeof *buffer);
    struct stat status;
    if (buffer == NULL || fd < 0 || fstat(fd, &status) != 0)
        goto failed;
    buffer->fd = fd;
    buffer->size = (uint64_t)status.st_size;
    buffer->inode = status.st_ino;
    buffer->flags = flags;
    buffer->own = own;
    buffer->references = 1;
    buffer->cacheable = (flags & CREATE_CACHEABLE) != 0 && !broken(NO_SHADOW);
    buffer->cpu = mapped(buffer->fd, buffer->size);
    buffer->seen = buffer->cacheable ? mapped(-1, buffer->size) : buffer->cpu;
    buffer->device = buffer->cacheable ? mapped(-1, buffer->size) : buffer->cpu;
    buffer->author = calloc(buffer->size / LINE, 1);
    if (buffer->author == NULL || buffer->cpu == NULL || buffer->seen == NULL || buffer->device == NULL)
        goto failed;
    if (next_dma == 0)
        next_dma = settings()->dma_base;
    buffer->dma = next_dma;
    next_dma += buffer->size + GAP;
    buffer->next = buffers;
    buffers = buffer;
    return buffer;
failed:
    if (fd >= 0)
        close(fd);
    free(buffer); /* what was mapped stays: out of memory is the end anyway */
    return NULL;
}

static const char MEMFD_NAME[] = "rknpu-stand-in";

struct buffer *buffer_create(uint64_t size, uint32_t flags, bool own) {
    int fd = memfd_create(MEMFD_NAME, MFD_CLOEXEC);
    if (fd >= 0 && ftruncate(fd, (off_t)rounded(size > 0 ? size : 1, PAGE)) != 0) {
        close(fd);
        fd = -1;
    }
    return buffer_over(fd, flags, own);
}

/* The bytes are shared with the process that made the buffer. The device's copy is not: it begins with what is there now,
 * as a device would find it that the other process has handed everything over to. */
struct buffer *buffer_adopt(int fd) {
    char link[32], name[64] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, name, sizeof name - 1) < 0 || strstr(name, MEMFD_NAME) == NULL)
        return NULL;
    struct buffer *buffer = buffer_over(fcntl(fd, F_DUPFD_CLOEXEC, 0), CREATE_CACHEABLE, true);
    if (buffer == NULL || !buffer->cacheable)
        return buffer;
    memcpy(buffer->seen, buffer->cpu, buffer->size);
    memcpy(buffer->device, buffer->cpu, buffer->size);
    return buffer;
}

void buffer_release(struct buffer *buffer) {
    if (--buffer->references > 0)
        return;
    struct buffer **at = &buffers;
    while (*at != buffer)
        at = &(*at)->next;
    *at = buffer->next;
    if (buffer->device != buffer->cpu) {
        munmap(buffer->device, buffer->size);
        munmap(buffer->seen, buffer->size);
    }
    munmap(buffer->cpu, buffer->size);
    close(buffer->fd);
    free(buffer->author);
    free(buffer->late);
    free(buffer);
}

struct buffer *buffer_by_object(uint64_t object) {
    for (struct buffer *buffer = buffers; buffer != NULL; buffer = buffer->next)
        if ((uint64_t)(uintptr_t)buffer == object)
            return buffer;
    return NULL;
}

struct buffer *buffer_by_dma(uint64_t dma) {
    for (struct buffer *buffer = buffers; buffer != NULL; buffer = buffer->next)
        if (buffer->dma == dma)
            return buffer;
    return NULL;
}

struct buffer *buffer_by_fd(int fd) {
    struct stat status;
    if (buffers == NULL || fstat(fd, &status) != 0)
        return NULL;
    for (struct buffer *buffer = buffers; buffer != NULL; buffer = buffer->next)
        if (buffer->inode == status.st_ino)
            return buffer;
    return NULL;
}

uint64_t buffer_count(uint64_t *bytes) {
    uint64_t count = 0;
    *bytes = 0;
    for (struct buffer *buffer = buffers; buffer != NULL; buffer = buffer->next)
        count++, *bytes += buffer->size;
    return count;
}

/* ---- cache maintenance ---- */

static bool is_dirty(const struct buffer *buffer, uint64_t line) {
    return broken(NO_DIRTY_LINES) || memcmp(buffer->cpu + line, buffer->seen + line, LINE) != 0;
}

static void write_back(struct buffer *buffer, uint64_t line) {
    memcpy(buffer->device + line, buffer->cpu + line, LINE);
    memcpy(buffer->seen + line, buffer->cpu + line, LINE);
    buffer->author[line / LINE] = 0;
}

/* The lines that a range touches, as [first, end); nothing beyond the buffer. */
static uint64_t first_line(uint64_t offset) {
    return offset / LINE * LINE;
}

static uint64_t end_line(const struct buffer *buffer, uint64_t offset, uint64_t size) {
    uint64_t end = offset >= buffer->size || size > buffer->size - offset ? buffer->size : offset + size;
    return rounded(end, LINE);
}

void sync_to_device(struct buffer *buffer, uint64_t offset, uint64_t size) {
    if (!buffer->cacheable || size == 0)
        return;
    for (uint64_t line = first_line(offset); line < end_line(buffer, offset, size); line += LINE)
        if (is_dirty(buffer, line))
            write_back(buffer, line);
}

void sync_to_device_late(struct buffer *buffer, uint64_t offset, uint64_t size) {
    if (buffer->late == NULL)
        buffer->late = calloc(1, buffer->size);
    uint64_t end = end_line(buffer, offset, size);
    for (uint64_t line = first_line(offset); buffer->late != NULL && line < end; line += LINE) {
        memcpy(buffer->device + line, buffer->late + line, LINE);
        memcpy(buffer->late + line, buffer->cpu + line, LINE);
        memcpy(buffer->seen + line, buffer->cpu + line, LINE);
    }
}

void sync_from_device(struct buffer *buffer, uint64_t offset, uint64_t size) {
    if (!buffer->cacheable || size == 0 || broken(NO_FROM_DEVICE))
        return;
    for (uint64_t line = first_line(offset); line < end_line(buffer, offset, size); line += LINE) {
        if (is_dirty(buffer, line))
            write_back(buffer, line); /* Cortex-A76 takes DC IVAC for DC CIVAC (its manual): it cleans, then invalidates */
        memcpy(buffer->cpu + line, buffer->device + line, LINE);
        memcpy(buffer->seen + line, buffer->cpu + line, LINE);
    }
}

/* ---- the device's accesses ---- */

static struct buffer *at_dma(uint64_t dma, uint64_t size) {
    for (struct buffer *buffer = buffers; buffer != NULL; buffer = buffer->next) {
        uint64_t limit = buffer->size + (broken(NO_BOUNDS) ? (uint64_t)GAP : 0);
        if (dma >= buffer->dma && dma - buffer->dma <= limit && size <= limit - (dma - buffer->dma))
            return buffer;
    }
    return NULL;
}

const uint8_t *device_read(uint64_t dma, uint64_t size) {
    struct buffer *buffer = at_dma(dma, size);
    if (buffer == NULL)
        return NULL;
    uint64_t offset = dma - buffer->dma;
    if (offset + size > buffer->size) { /* only where the rig is broken: nothing is there */
        static const uint8_t nothing[1 << 20];
        return size <= sizeof nothing ? nothing : NULL;
    }
    return buffer->device + offset;
}

bool device_wrote(uint64_t dma) {
    struct buffer *buffer = at_dma(dma, 1);
    return buffer != NULL && dma - buffer->dma < buffer->size && buffer->author[(dma - buffer->dma) / LINE] != 0;
}

static void spoil(struct buffer *buffer, uint64_t offset, uint64_t size) {
    for (uint64_t at = offset; at < offset + size;) {
        uint64_t line = first_line(at), end = line + LINE < offset + size ? line + LINE : offset + size;
        bool dirty = is_dirty(buffer, line);
        for (; at < end && !dirty; at++) {
            uint8_t value = (uint8_t)(buffer->cpu[at] + 1);
            value = (uint8_t)(value + (value == buffer->device[at]));
            buffer->cpu[at] = buffer->seen[at] = value;
        }
        at = end;
    }
}

bool device_write(uint64_t dma, const uint8_t *data, uint64_t size) {
    struct buffer *buffer = at_dma(dma, size);
    if (buffer == NULL)
        return false;
    uint64_t offset = dma - buffer->dma;
    if (offset + size > buffer->size)
        return true; /* only where the rig is broken: lost */
    memcpy(buffer->device + offset, data, size);
    memset(buffer->author + offset / LINE, 1, (offset + size - 1) / LINE - offset / LINE + 1);
    if (buffer->cacheable)
        spoil(buffer, offset, size);
    return true;
}
