/* A stand-in for the rknpu kernel driver and for the NPU behind it, preloaded beneath the vendor's librknnrt.
 *
 *   preload.c   the functions of libc that lead to a driver: open, stat, ioctl, mmap, close
 *   device.c    what the driver answers to each ioctl, and the faults that it can have
 *   memory.c    buffers with a CPU copy and a device copy, joined by cache maintenance only
 *   npu.c       what the NPU does with a submitted job: tasks, register words, register banks
 *   cubes.c     where a step reads and writes, by its registers
 *   steps.c     what comes out of a step
 *   hash.c      the keyed hash that stands for all arithmetic
 *   settings.c  environment variables, the trace, the kernel's log
 *
 * It computes nothing that a neural network computes: each row of a result is a keyed hash of what the step reads. So a
 * result depends on every byte that the device sees, and on nothing else; that is what conformance tests need whose
 * oracle is the same board by another way. */
#ifndef RKNPU_STAND_IN_H
#define RKNPU_STAND_IN_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define STAND_IN_DESCRIPTION "pytest-rknpu stand-in, no hardware"
#define LINE 64u
#define PAGE 4096u

/* ---- settings.c ---- */

/* Ways to break the rig itself (RKNPU_STAND_IN_BROKEN, names as here in lower case with hyphens): tests must then turn red. */
enum breakage {
    NO_SHADOW,           /* CPU and device share one copy */
    NO_DIRTY_LINES,      /* every line counts as written by the CPU */
    NO_FROM_DEVICE,      /* the CPU never gets what the device wrote */
    TASKS_REORDERED,     /* last task first */
    WRONG_ATOM,          /* half the bytes of a pixel in a plane */
    SHIFTED_DESTINATION, /* results a line further on */
    NO_BOUNDS,           /* what lies behind a buffer can be read and written */
    BREAKAGES
};

struct settings {
    bool rk3588; /* else RK3566: one core, feature atoms of 8 bytes */
    uint32_t hardware_version, driver_version, iommu, sram_bytes;
    uint64_t key, dma_base;
    bool broken[BREAKAGES];
    bool absent; /* no driver at all: the node cannot be opened */
};

const struct settings *settings(void);
bool broken(enum breakage way);

/* Whether the environment names this fault (RKNPU_STAND_IN_FAULTS, "name:key=value,name..."). */
bool fault(const char *name);
/* The number that the fault has under `key`, or `otherwise`. */
uint64_t fault_number(const char *name, const char *key, uint64_t otherwise);
/* Whether the fault's text under `key` is `value`; true where it says nothing of `key`. */
bool fault_says(const char *name, const char *key, const char *value);

/* One line of JSON in the file RKNPU_STAND_IN_TRACE, from a printf format of its members. */
void trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* One message of level error in the kernel's log. */
void kernel_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- memory.c ---- */

struct buffer {
    struct buffer *next;
    uint32_t flags, references;
    uint64_t size, dma;
    int fd;          /* the memory that processes map */
    ino_t inode;     /* by which any descriptor of it is known */
    bool own;        /* made by this driver, not imported from another exporter */
    bool cacheable;
    bool holds_model;
    uint8_t *cpu;    /* that memory, mapped here */
    uint8_t *seen;   /* what it held when it was last looked at: where it differs, the CPU has written */
    uint8_t *device; /* what the NPU sees */
    uint8_t *author; /* for each line: whether the device wrote it last */
    uint8_t *late;   /* what `sync_to_device_late` still owes, as large as the buffer; NULL: nothing yet */
};

extern pthread_mutex_t stand_in_lock; /* held by whoever calls a function below, or npu.c */

struct buffer *buffer_create(uint64_t size, uint32_t flags, bool own);
/* A buffer of another process, by its descriptor; NULL where that is none. */
struct buffer *buffer_adopt(int fd);
void buffer_release(struct buffer *buffer);
struct buffer *buffer_by_object(uint64_t object);
struct buffer *buffer_by_fd(int fd);
struct buffer *buffer_by_dma(uint64_t dma);
/* How many buffers there are, and their bytes together. */
uint64_t buffer_count(uint64_t *bytes);

/* Cache maintenance of the lines that [offset, offset + size) touches. */
void sync_to_device(struct buffer *buffer, uint64_t offset, uint64_t size);
/* A fault: the device gets what it should have got the time before. */
void sync_to_device_late(struct buffer *buffer, uint64_t offset, uint64_t size);
void sync_from_device(struct buffer *buffer, uint64_t offset, uint64_t size);

/* Bytes as the device sees them; NULL where they are not all in one buffer. */
const uint8_t *device_read(uint64_t dma, uint64_t size);
/* Whether the device itself wrote these bytes last, and not the CPU. */
bool device_wrote(uint64_t dma);
/* Let the device write: the CPU does not see it, and no longer has what it had. False: not all in one buffer. */
bool device_write(uint64_t dma, const uint8_t *data, uint64_t size);

/* ---- device.c ---- */

/* `file` tells the open files of the device apart. All give 0 or a negative errno. */
int device_ioctl(ino_t file, unsigned long request, void *argument);
void device_closed(ino_t file);
int dma_buf_ioctl(struct buffer *buffer, unsigned long request, void *argument);
int dma_heap_ioctl(unsigned long request, void *argument);
/* The descriptor that a mapping of the device at this offset is made from; -1: there is none. */
int device_mapping(uint64_t offset, size_t length);

/* ---- npu.c ---- */

struct rknpu_submit;

/* Run a job; 0, or a negative errno. */
int npu_run(struct rknpu_submit *job);

/* Registers as one task sees them: a block's by offset[15:12], 1 to 7. */
struct registers {
    const uint32_t *block[8];
    int core;
};

/* ---- cubes.c ---- */

/* A tensor in memory: planes of `lanes` bytes for each pixel, lines and planes apart by strides in bytes. */
struct cube {
    uint64_t dma;
    uint32_t width, height, bytes; /* bytes: of all channels of a pixel, without those that only pad */
    uint32_t lanes;
    int64_t line, plane;
};

/* A register; bits [low, low + count) of one. */
uint32_t value(const struct registers *registers, unsigned offset);
uint32_t field(const struct registers *registers, unsigned offset, unsigned low, unsigned count);

uint32_t element_bytes(uint32_t precision);
uint32_t planes(const struct cube *cube);
uint64_t address(const struct cube *cube, uint32_t y, uint32_t plane);

struct cube convolution_source(const struct registers *registers);
struct cube element_source(const struct registers *registers);
struct cube second_source(const struct registers *registers, const struct cube *result);
struct cube pooling_source(const struct registers *registers);
struct cube dpu_result(const struct registers *registers);
struct cube ppu_result(const struct registers *registers);

/* ---- steps.c ---- */

/* One task, from the sources that its registers name to its destination. 0, or -EFAULT and the address that is in no
 * buffer. */
int run_step(const struct registers *registers, uint32_t enabled, uint64_t *fault_at);

/* ---- hash.c ---- */

struct hash {
    uint64_t state;
};

void hash_begin(struct hash *hash, uint64_t key);
void hash_bytes(struct hash *hash, const uint8_t *data, size_t size);
void hash_number(struct hash *hash, uint64_t number);
/* The bytes that stand for a result: any number of them. */
void hash_spread(const struct hash *hash, uint64_t position, uint8_t *out, size_t size);

#endif
