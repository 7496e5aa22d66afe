/* The kernel interfaces that the stand-in answers, as public headers describe them (drm.h, dma-buf.h, dma-heap.h and the
 * vendor kernel's rknpu_ioctl.h). Written anew: numbers and layouts only, so that no kernel header is needed to compile. */
#ifndef RKNPU_STAND_IN_UAPI_H
#define RKNPU_STAND_IN_UAPI_H

#include <stdint.h>
#include <sys/ioctl.h>

/* ---- DRM core: type 'd' ---- */

struct drm_version_request {
    int major, minor, patch;
    size_t name_length;
    char *name;
    size_t date_length;
    char *date;
    size_t description_length;
    char *description;
};

struct drm_unique_request {
    size_t length;
    char *unique;
};

struct drm_gem_close_request {
    uint32_t handle, padding;
};

struct drm_gem_flink_request {
    uint32_t handle, name;
};

struct drm_prime_request {
    uint32_t handle, flags;
    int32_t fd;
};

#define DRM_VERSION _IOWR('d', 0x00, struct drm_version_request)
#define DRM_GET_UNIQUE _IOWR('d', 0x01, struct drm_unique_request)
#define DRM_GEM_CLOSE _IOW('d', 0x09, struct drm_gem_close_request)
#define DRM_GEM_FLINK _IOWR('d', 0x0a, struct drm_gem_flink_request)
#define DRM_PRIME_HANDLE_TO_FD _IOWR('d', 0x2d, struct drm_prime_request)
#define DRM_PRIME_FD_TO_HANDLE _IOWR('d', 0x2e, struct drm_prime_request)

/* ---- rknpu: the driver's own numbers begin at 0x40 ---- */

enum { ACTION = 0x40, SUBMIT = 0x41, MEM_CREATE = 0x42, MEM_MAP = 0x43, MEM_DESTROY = 0x44, MEM_SYNC = 0x45 };

enum action {
    GET_HARDWARE_VERSION = 0,
    GET_DRIVER_VERSION = 1,
    GET_IOMMU_ENABLED = 18,
    SET_PROCESS_NICE = 19,
    POWER_ON = 20,
    POWER_OFF = 21,
    GET_TOTAL_SRAM = 22,
    GET_FREE_SRAM = 23,
};

enum { CREATE_CACHEABLE = 1 << 1, CREATE_KERNEL_MAPPING = 1 << 3, CREATE_SRAM = 1 << 8 };
enum { SYNC_TO_DEVICE = 1, SYNC_FROM_DEVICE = 2 };

struct rknpu_action {
    uint32_t flags, value;
};

/* Newer drivers append 8 bytes (domain, core mask); the runtime of 2023 passes 40. */
struct rknpu_mem_create {
    uint32_t handle, flags;
    uint64_t size, object, dma_address, sram_size;
};

struct rknpu_mem_map {
    uint32_t handle, reserved;
    uint64_t offset;
};

struct rknpu_mem_destroy {
    uint32_t handle, reserved;
    uint64_t object;
};

struct rknpu_mem_sync {
    uint32_t flags, reserved;
    uint64_t object, offset, size;
};

struct rknpu_task {
    uint32_t flags, operator_index, enable_mask, interrupt_mask, interrupt_clear, interrupt_status;
    uint32_t word_count, word_offset;
    uint64_t words; /* DMA address */
} __attribute__((packed));

struct rknpu_subcore_task {
    uint32_t start, count;
};

struct rknpu_submit {
    uint32_t flags, timeout_ms, task_start, task_count, task_counter;
    int32_t priority;
    uint64_t task_object, reserved_object, task_base, user_data;
    uint32_t core_mask;
    int32_t fence_fd;
    struct rknpu_subcore_task subcore[5];
};

/* ---- dma-buf: CPU access to a buffer behind a descriptor, type 'b' ---- */

enum { ACCESS_READ = 1, ACCESS_WRITE = 2, ACCESS_END = 4 };

struct dma_buf_sync {
    uint64_t flags;
};

struct dma_buf_sync_partial {
    uint64_t flags;
    uint32_t offset, length;
};

#define DMA_BUF_SYNC _IOW('b', 0, struct dma_buf_sync)
enum { DMA_BUF_SYNC_PARTIAL = 2 }; /* Rockchip's kernels; they differ in the direction bits of the number */

/* ---- dma-heap: buffers of nobody in particular, type 'H' ---- */

struct dma_heap_allocation {
    uint64_t length;
    uint32_t fd, fd_flags;
    uint64_t heap_flags;
};

#define DMA_HEAP_ALLOC _IOWR('H', 0, struct dma_heap_allocation)

#endif
