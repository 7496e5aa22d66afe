/* What the driver answers to each ioctl, and the faults that it can have. Every call is traced. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stand_in.h"
#include "uapi.h"

/* A GEM handle: a number by which one open file of the device knows a buffer, and a reference to it. */
struct handle {
    struct handle *next;
    ino_t file;
    uint32_t number;
    struct buffer *buffer;
};

static struct handle *handles;

static struct handle *find_handle(ino_t file, uint32_t number) {
    for (struct handle *handle = handles; handle != NULL; handle = handle->next)
        if (handle->file == file && handle->number == number)
            return handle;
    return NULL;
}

/* Like GEM: one file has one handle for one buffer, however often it asks. */
static uint32_t handle_for(ino_t file, struct buffer *buffer) {
    uint32_t highest = 0;
    for (struct handle *handle = handles; handle != NULL; handle = handle->next) {
        if (handle->file == file && handle->buffer == buffer)
            return handle->number;
        if (handle->file == file && handle->number > highest)
            highest = handle->number;
    }
    struct handle *handle = calloc(1, sizeof *handle);
    *handle = (struct handle){handles, file, highest + 1, buffer};
    buffer->references++;
    handles = handle;
    return handle->number;
}

static uint32_t handle_number(ino_t file, const struct buffer *buffer) {
    for (struct handle *handle = handles; handle != NULL; handle = handle->next)
        if (handle->file == file && handle->buffer == buffer)
            return handle->number;
    return 0;
}

static void drop(struct handle **at) {
    struct handle *handle = *at;
    *at = handle->next;
    buffer_release(handle->buffer);
    free(handle);
}

void device_closed(ino_t file) {
    for (struct handle **at = &handles; *at != NULL;)
        if ((*at)->file == file)
            drop(at);
        else
            at = &(*at)->next;
}

/* ---- DRM core ---- */

static void give_text(const char *text, char *to, size_t *length) {
    size_t own = strlen(text);
    if (to != NULL)
        memcpy(to, text, own < *length ? own : *length);
    *length = own;
}

static int drm_version(struct drm_version_request *request) {
    request->major = 0, request->minor = (int)(settings()->driver_version / 100 % 100);
    request->patch = (int)(settings()->driver_version % 100);
    give_text("rknpu", request->name, &request->name_length);
    give_text("20240828", request->date, &request->date_length);
    give_text(STAND_IN_DESCRIPTION, request->description, &request->description_length);
    return 0;
}

static int handle_to_fd(ino_t file, struct drm_prime_request *request) {
    struct handle *handle = find_handle(file, request->handle);
    if (handle == NULL)
        return -ENOENT;
    request->fd = fcntl(handle->buffer->fd, F_DUPFD_CLOEXEC, 3);
    if (request->fd < 0)
        return -errno;
    handle->buffer->references++; /* until that descriptor is closed */
    if (fault("export-leaks"))
        fcntl(handle->buffer->fd, F_DUPFD_CLOEXEC, 3);
    return 0;
}

static int fd_to_handle(ino_t file, struct drm_prime_request *request) {
    struct buffer *buffer = buffer_by_fd(request->fd);
    bool foreign = buffer == NULL;
    if (foreign)
        buffer = buffer_adopt(request->fd);
    if (buffer == NULL)
        return -EINVAL;
    request->handle = handle_for(file, buffer);
    if (foreign)
        buffer_release(buffer); /* the handle holds it */
    return 0;
}

static int gem_close(ino_t file, uint32_t number) {
    for (struct handle **at = &handles; *at != NULL; at = &(*at)->next)
        if ((*at)->file == file && (*at)->number == number) {
            drop(at);
            return 0;
        }
    return -EINVAL;
}

/* ---- rknpu ---- */

static int action(struct rknpu_action *request) {
    switch (request->flags) {
    case GET_HARDWARE_VERSION:
        request->value = settings()->hardware_version;
        return 0;
    case GET_DRIVER_VERSION:
        request->value = settings()->driver_version;
        return 0;
    case GET_IOMMU_ENABLED:
        request->value = settings()->iommu;
        return 0;
    case GET_TOTAL_SRAM:
    case GET_FREE_SRAM:
        request->value = settings()->sram_bytes;
        return 0;
    case SET_PROCESS_NICE:
    case POWER_ON:
    case POWER_OFF:
        return 0;
    default:
        return -EINVAL;
    }
}

/* Whether the fault strikes at this occasion, the `count`-th: each one, with `nth=N` that one only, with `every=N` that
 * one and its multiples. */
static bool strikes(const char *name, uint64_t count) {
    return fault(name) && fault_number(name, "nth", count) == count && count % fault_number(name, "every", 1) == 0;
}

static int mem_create(ino_t file, struct rknpu_mem_create *request) {
    static uint64_t count;
    if (strikes("mem-create-fails", ++count)) {
        kernel_log("gem object allocate failed, size: %llu", (unsigned long long)request->size);
        return -ENOMEM;
    }
    struct handle *known = find_handle(file, request->handle);
    struct buffer *buffer = known != NULL ? known->buffer : NULL;
    if (request->handle == 0) {
        buffer = buffer_create(request->size, request->flags, true);
        if (buffer == NULL)
            return -ENOMEM;
        request->handle = handle_for(file, buffer);
        buffer_release(buffer); /* the handle holds it */
    }
    if (buffer == NULL)
        return -EINVAL;
    request->size = buffer->size;
    request->object = (uint64_t)(uintptr_t)buffer;
    request->dma_address = buffer->dma;
    request->sram_size = 0;
    return 0;
}

static int mem_map(ino_t file, struct rknpu_mem_map *request) {
    struct handle *handle = find_handle(file, request->handle);
    if (handle == NULL)
        return -EINVAL;
    request->offset = handle->buffer->dma << 12; /* any number that is told apart; the DMA address is one */
    return 0;
}

int device_mapping(uint64_t offset, size_t length) {
    struct buffer *buffer = buffer_by_dma(offset >> 12);
    if (buffer == NULL || length > buffer->size)
        return -1;
    if (fault("mapping-truncated")) /* the pages of the second half are not there */
        if (ftruncate(buffer->fd, (off_t)(buffer->size / 2 / PAGE * PAGE)) != 0)
            return -1;
    return buffer->fd;
}

/* Faults of cache maintenance leave the model alone, unless told `of=all`: without register words nothing works at all. */
static bool sync_fault(const struct buffer *buffer, const char *name) {
    return fault(name) && (!buffer->holds_model || !fault_says(name, "of", "data"));
}

/* What becomes of one direction of cache maintenance, with the driver's faults. */
static void maintain(struct buffer *buffer, uint32_t direction, uint64_t offset, uint64_t size) {
    static uint64_t count[2];
    bool to_device = direction == SYNC_TO_DEVICE;
    const char *dropped = to_device ? "sync-to-device-dropped" : "sync-from-device-dropped";
    if (sync_fault(buffer, dropped) && strikes(dropped, ++count[to_device]))
        return;
    if (sync_fault(buffer, "sync-offset-ignored"))
        offset = 0;
    if (sync_fault(buffer, "sync-last-line-missing") && size > 0) {
        uint64_t last = (offset + size - 1) / LINE * LINE;
        size = last > offset ? last - offset : 0;
    }
    if (sync_fault(buffer, "sync-directions-swapped"))
        to_device = !to_device;
    if (!to_device)
        sync_from_device(buffer, offset, size);
    else if (sync_fault(buffer, "device-copy-stale"))
        sync_to_device_late(buffer, offset, size);
    else
        sync_to_device(buffer, offset, size);
}

/* The library gives the register words and weights to the device right after it has filled them: it tells them from the
 * memories of inputs and outputs, which are alike otherwise. */
static void recognise_model(struct buffer *buffer, const struct rknpu_mem_sync *request) {
    static struct rknpu_mem_sync before;
    if (request->flags == SYNC_TO_DEVICE && before.flags == (SYNC_TO_DEVICE | SYNC_FROM_DEVICE) &&
        before.object == request->object && before.size == request->size)
        buffer->holds_model = true;
    before = *request;
}

static int mem_sync(struct rknpu_mem_sync *request) {
    struct buffer *buffer = buffer_by_object(request->object);
    if (buffer == NULL || (buffer->flags & CREATE_CACHEABLE) == 0)
        return -EINVAL;
    recognise_model(buffer, request);
    if (sync_fault(buffer, "sync-fails"))
        return -EINVAL;
    if (request->flags & SYNC_TO_DEVICE)
        maintain(buffer, SYNC_TO_DEVICE, request->offset, request->size);
    if (request->flags & SYNC_FROM_DEVICE)
        maintain(buffer, SYNC_FROM_DEVICE, request->offset, request->size);
    return 0;
}

static int submit(struct rknpu_submit *job) {
    static uint64_t count;
    if (strikes("submit-fails", ++count)) {
        kernel_log("failed to submit job, flags: %#x", job->flags);
        return -EINVAL;
    }
    if (strikes("submit-hangs", count)) {
        pthread_mutex_unlock(&stand_in_lock); /* other contexts go on waiting for nothing but the NPU */
        for (;;)
            pause();
    }
    if (strikes("submit-times-out", count)) {
        kernel_log("failed to wait job, task counter: 0, flags: %#x, ret = 0", job->flags);
        kernel_log("job timeout, flags: %#x", job->flags);
        kernel_log("soft reset, num: 1");
        usleep(1000 * (useconds_t)fault_number("submit-times-out", "milliseconds", job->timeout_ms));
        return -ETIMEDOUT;
    }
    return npu_run(job);
}

/* ---- one ioctl ---- */

static int answer(ino_t file, unsigned long request, void *argument) {
    switch (request) {
    case DRM_VERSION:
        return drm_version(argument);
    case DRM_GET_UNIQUE:
        ((struct drm_unique_request *)argument)->length = 0;
        return 0;
    case DRM_GEM_FLINK:
        ((struct drm_gem_flink_request *)argument)->name = ((struct drm_gem_flink_request *)argument)->handle;
        return 0;
    case DRM_GEM_CLOSE:
        return gem_close(file, ((struct drm_gem_close_request *)argument)->handle);
    case DRM_PRIME_HANDLE_TO_FD:
        return handle_to_fd(file, argument);
    case DRM_PRIME_FD_TO_HANDLE:
        return fd_to_handle(file, argument);
    }
    switch (_IOC_NR(request)) {
    case ACTION:
        return action(argument);
    case SUBMIT:
        return submit(argument);
    case MEM_CREATE:
        return mem_create(file, argument);
    case MEM_MAP:
        return mem_map(file, argument);
    case MEM_DESTROY:
        if (fault("destroy-leaks"))
            return 0;
        return gem_close(file, ((struct rknpu_mem_destroy *)argument)->handle);
    case MEM_SYNC:
        return mem_sync(argument);
    }
    return -EINVAL;
}

/* ---- the trace: one line for each call, after it was answered ---- */

#define LL(number) ((unsigned long long)(number))

static void trace_rknpu(ino_t file, unsigned number, const void *argument, int result) {
    if (number == ACTION) {
        const struct rknpu_action *it = argument;
        trace("\"call\": \"ACTION\", \"flags\": %u, \"value\": %u, \"result\": %d", it->flags, it->value, result);
    } else if (number == SUBMIT) {
        const struct rknpu_submit *it = argument;
        trace("\"call\": \"SUBMIT\", \"flags\": %u, \"tasks\": %u, \"core_mask\": %u, \"timeout_ms\": %u, \"result\": %d",
              it->flags, it->task_count, it->core_mask, it->timeout_ms, result);
    } else if (number == MEM_CREATE) {
        const struct rknpu_mem_create *it = argument;
        trace("\"call\": \"MEM_CREATE\", \"handle\": %u, \"flags\": %u, \"size\": %llu, \"result\": %d", it->handle, it->flags,
              LL(it->size), result);
    } else if (number == MEM_MAP) {
        trace("\"call\": \"MEM_MAP\", \"handle\": %u, \"result\": %d", ((const struct rknpu_mem_map *)argument)->handle, result);
    } else if (number == MEM_DESTROY) {
        trace("\"call\": \"MEM_DESTROY\", \"handle\": %u, \"result\": %d", ((const struct rknpu_mem_destroy *)argument)->handle,
              result);
    } else if (number == MEM_SYNC) {
        const struct rknpu_mem_sync *it = argument;
        struct buffer *buffer = buffer_by_object(it->object);
        trace("\"call\": \"MEM_SYNC\", \"handle\": %u, \"flags\": %u, \"offset\": %llu, \"size\": %llu, \"result\": %d",
              buffer != NULL ? handle_number(file, buffer) : 0, it->flags, LL(it->offset), LL(it->size), result);
    } else {
        trace("\"call\": \"unknown\", \"number\": %u, \"result\": %d", number, result);
    }
}

static void trace_drm(unsigned long request, const void *argument, int result) {
    const struct drm_prime_request *prime = argument;
    switch (request) {
    case DRM_VERSION:
        trace("\"call\": \"VERSION\", \"result\": %d", result);
        break;
    case DRM_GET_UNIQUE:
        trace("\"call\": \"GET_UNIQUE\", \"result\": %d", result);
        break;
    case DRM_GEM_FLINK:
        trace("\"call\": \"GEM_FLINK\", \"handle\": %u, \"result\": %d", prime->handle, result);
        break;
    case DRM_GEM_CLOSE:
        trace("\"call\": \"GEM_CLOSE\", \"handle\": %u, \"result\": %d", prime->handle, result);
        break;
    default:
        trace("\"call\": \"%s\", \"handle\": %u, \"result\": %d",
              request == DRM_PRIME_HANDLE_TO_FD ? "PRIME_HANDLE_TO_FD" : "PRIME_FD_TO_HANDLE", prime->handle, result);
    }
}

int device_ioctl(ino_t file, unsigned long request, void *argument) {
    int result = _IOC_TYPE(request) == 'd' ? answer(file, request, argument) : -ENOTTY;
    if (_IOC_NR(request) >= ACTION && _IOC_NR(request) <= MEM_SYNC)
        trace_rknpu(file, (unsigned)_IOC_NR(request), argument, result);
    else
        trace_drm(request, argument, result);
    return result;
}

/* ---- dma-buf and dma-heap: memory of another exporter ---- */

/* Buffers that rknpu itself exports have no hooks for the CPU's accesses: the kernel then does nothing, and says 0. */
int dma_buf_ioctl(struct buffer *buffer, unsigned long request, void *argument) {
    uint64_t flags, offset = 0, size = buffer->size;
    bool partial = _IOC_NR(request) == DMA_BUF_SYNC_PARTIAL;
    if (partial) {
        const struct dma_buf_sync_partial *it = argument;
        flags = it->flags, offset = it->offset, size = it->length;
    } else if (request == DMA_BUF_SYNC) {
        flags = ((const struct dma_buf_sync *)argument)->flags;
    } else {
        return -ENOTTY;
    }
    int result = partial && buffer->own ? -EOPNOTSUPP : 0;
    if (!buffer->own && (flags & ACCESS_END) == 0)
        maintain(buffer, SYNC_FROM_DEVICE, offset, size);
    if (!buffer->own && (flags & ACCESS_END) != 0)
        maintain(buffer, SYNC_TO_DEVICE, offset, size);
    trace("\"call\": \"%s\", \"flags\": %llu, \"offset\": %llu, \"size\": %llu, \"own\": %s, \"result\": %d",
          partial ? "DMA_BUF_SYNC_PARTIAL" : "DMA_BUF_SYNC", LL(flags), LL(offset), LL(size), buffer->own ? "true" : "false",
          result);
    return result;
}

int dma_heap_ioctl(unsigned long request, void *argument) {
    struct dma_heap_allocation *it = argument;
    if (request != DMA_HEAP_ALLOC)
        return -ENOTTY;
    struct buffer *buffer = buffer_create(it->length, CREATE_CACHEABLE, false);
    if (buffer == NULL)
        return -ENOMEM;
    it->fd = (uint32_t)fcntl(buffer->fd, F_DUPFD_CLOEXEC, 3); /* the one reference is this descriptor's */
    trace("\"call\": \"DMA_HEAP_ALLOC\", \"size\": %llu, \"result\": 0", LL(it->length));
    return 0;
}
