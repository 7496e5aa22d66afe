/* A tiny stand-in for librknnrt, compiled by the tests, so that the binding is proven through a real shared object.
 * A model is any blob that begins with "FAKE"; a run copies the input memory to the output memory, plus one per byte.
 * It has no cache model: that is the emulator's business. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __arm__
typedef uint32_t rknn_context;
#else
typedef uint64_t rknn_context;
#endif

typedef struct {
    uint32_t index, n_dims, dims[16];
    char name[256];
    uint32_t n_elems, size;
    uint32_t fmt, type, qnt_type;
    int8_t fl;
    int32_t zp;
    float scale;
    uint32_t w_stride, size_with_stride;
    uint8_t pass_through;
    uint32_t h_stride;
} rknn_tensor_attr;

typedef struct {
    void *virt_addr;
    uint64_t phys_addr;
    int32_t fd, offset;
    uint32_t size, flags;
    void *priv_data;
} rknn_tensor_mem;

typedef struct { uint32_t index; void *buf; uint32_t size; uint8_t pass_through; uint32_t type, fmt; } rknn_input;
typedef struct { uint8_t want_float, is_prealloc; uint32_t index; void *buf; uint32_t size; } rknn_output;
typedef struct { rknn_context ctx; int32_t offset; uint32_t size; int32_t fd; uint32_t flags; uint8_t reserved[112]; } rknn_init_extend;
typedef struct { uint32_t index, shape_number, fmt; char name[256]; uint32_t dyn_range[512][16]; uint32_t n_dims; } rknn_input_range;

#define TENSOR_BYTES 256

typedef struct {
    uint64_t magic;
    rknn_context master;
    uint32_t flags;
    rknn_tensor_mem *input, *output;
    uint8_t general_input[TENSOR_BYTES];
    int has_general_input;
} context_t;

#define MAGIC 0x46414b45ULL

static context_t *find(rknn_context handle)
{
    context_t *context = (context_t *)(uintptr_t)handle;
    return context && context->magic == MAGIC ? context : NULL;
}

int rknn_init(rknn_context *handle, void *model, uint32_t size, uint32_t flags, rknn_init_extend *extend)
{
    char head[4] = {0};
    if (!handle) return -7;
    *handle = 0;
    if (!model) return -6;
    if (size == 0) {
        FILE *file = fopen(model, "rb");
        if (!file) return -1;
        size_t got = fread(head, 1, 4, file);
        fclose(file);
        if (got != 4) return -6;
    } else if (size >= 4) {
        memcpy(head, model, 4);
    }
    if (memcmp(head, "FAKE", 4)) {
        printf("E RKNN: [00:00:00.000] 6, 1\n");
        return -6;
    }
    context_t *context = calloc(1, sizeof *context);
    context->magic = MAGIC;
    context->flags = flags;
    context->master = extend ? extend->ctx : 0;
    *handle = (rknn_context)(uintptr_t)context;
    return 0;
}

int rknn_dup_context(rknn_context *in, rknn_context *out)
{
    context_t *context = find(*in);
    if (!context) return -7;
    context_t *copy = calloc(1, sizeof *copy);
    copy->magic = MAGIC;
    *out = (rknn_context)(uintptr_t)copy;
    return 0;
}

int rknn_destroy(rknn_context handle)
{
    context_t *context = find(handle);
    if (!context) return -7;
    context->magic = 0;
    free(context);
    return 0;
}

static void fill_attr(rknn_tensor_attr *attr, const char *name)
{
    attr->n_dims = 4;
    attr->dims[0] = 1; attr->dims[1] = 16; attr->dims[2] = 4; attr->dims[3] = 4;
    attr->dims[4] = 99; /* beyond n_dims: must not be seen */
    strcpy(attr->name, name);
    attr->n_elems = attr->size = attr->size_with_stride = TENSOR_BYTES;
    attr->type = 2; attr->qnt_type = 2; attr->zp = -128; attr->scale = 0.5f; attr->w_stride = 4; attr->fl = -3;
    attr->h_stride = 7;
}

static char report[] = "a performance report";

int rknn_query(rknn_context handle, uint32_t command, void *info, uint32_t size)
{
    context_t *context = find(handle);
    if (!context) return -7;
    switch (command) {
    case 0: if (size != 8) return -5; ((uint32_t *)info)[0] = 1; ((uint32_t *)info)[1] = 1; return 0;
    case 1: case 2: {
        rknn_tensor_attr *attr = info;
        if (size != sizeof *attr || attr->index != 0) return -5;
        fill_attr(attr, command == 1 ? "input" : "output");
        return 0;
    }
    case 3: { struct { char *data; uint64_t length; } *detail = info; if (size != 16) return -5;
        detail->data = report; detail->length = sizeof report; return 0; }
    case 4: *(int64_t *)info = 1234; return 0;
    case 5: if (size != 512) return -5; strcpy(info, "fake 1.0"); strcpy((char *)info + 256, "fake 0.9"); return 0;
    case 6: if (size != 64) return -5; memset(info, 0, 64); ((uint32_t *)info)[0] = 11; ((uint32_t *)info)[1] = 22;
        ((uint64_t *)info)[1] = 1ULL << 33; return 0;
    case 7: if (size != 1024) return -5;
        sprintf(info, "%s, flags 0x%x", find(context->master) ? "shares weights" : "alone", context->flags); return 0;
    case 13: { rknn_input_range *range = info; if (size != sizeof *range) return -5;
        range->shape_number = 2; range->n_dims = 3; strcpy(range->name, "input");
        for (int shape = 0; shape < 3; shape++) for (int dim = 0; dim < 4; dim++) range->dyn_range[shape][dim] = 10 * shape + dim;
        return 0; }
    case 100: return -99;
    default: return -5;
    }
}

static rknn_tensor_mem *wrap(void *address, int fd, int offset, uint32_t size, uint32_t flags)
{
    rknn_tensor_mem *memory = calloc(1, sizeof *memory);
    memory->virt_addr = address; memory->fd = fd; memory->offset = offset; memory->size = size; memory->flags = flags;
    memory->phys_addr = 0x100000000ULL;
    return memory;
}

rknn_tensor_mem *rknn_create_mem(rknn_context handle, uint32_t size)
{
    if (!find(handle) || size == 0) return NULL;
    if (size == 77) return wrap(NULL, -1, 0, size, 1); /* memory that the CPU cannot reach */
    int fd = memfd_create("fake", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, size)) return NULL;
    void *address = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return address == MAP_FAILED ? NULL : wrap(address, fd, 0, size, 1);
}

rknn_tensor_mem *rknn_create_mem_from_fd(rknn_context handle, int32_t fd, void *virt, uint32_t size, int32_t offset)
{
    return find(handle) && fd >= 0 ? wrap(virt, fd, offset, size, 2) : NULL;
}

int rknn_destroy_mem(rknn_context handle, rknn_tensor_mem *memory)
{
    if (!find(handle)) return -7;
    if (!memory) return -5;
    if (memory->virt_addr && memory->flags == 1) { munmap(memory->virt_addr, memory->size); close(memory->fd); }
    free(memory);
    return 0;
}

static uint8_t *bytes_of(rknn_tensor_mem *memory) { return (uint8_t *)memory->virt_addr + memory->offset; }

int rknn_set_io_mem(rknn_context handle, rknn_tensor_mem *memory, rknn_tensor_attr *attr)
{
    context_t *context = find(handle);
    if (!context) return -7;
    if (!memory || memory->size < attr->size_with_stride) return -5;
    if (!strcmp(attr->name, "input")) context->input = memory;
    else if (!strcmp(attr->name, "output")) context->output = memory;
    else return -5;
    return 0;
}

int rknn_set_weight_mem(rknn_context handle, rknn_tensor_mem *memory) { return !find(handle) ? -7 : memory ? 0 : -5; }
int rknn_set_internal_mem(rknn_context handle, rknn_tensor_mem *memory) { return !find(handle) ? -7 : memory ? 0 : -5; }
int rknn_set_core_mask(rknn_context handle, uint32_t mask) { return !find(handle) ? -7 : mask <= 7 ? 0 : -5; }

int rknn_inputs_set(rknn_context handle, uint32_t count, rknn_input inputs[])
{
    context_t *context = find(handle);
    if (!context) return -7;
    if (count != 1 || inputs[0].size != TENSOR_BYTES || inputs[0].index || inputs[0].type != 3 || inputs[0].fmt != 1) return -8;
    memcpy(context->general_input, inputs[0].buf, TENSOR_BYTES);
    context->has_general_input = 1;
    return 0;
}

int rknn_run(rknn_context handle, void *extend)
{
    context_t *context = find(handle);
    if (!context || extend) return -7;
    if (context->has_general_input) return 0;
    if (!context->input || !context->output) return -1;
    uint8_t *source = bytes_of(context->input), *target = bytes_of(context->output);
    for (int index = 0; index < TENSOR_BYTES; index++) target[index] = source[index] + 1;
    return 0;
}

int rknn_outputs_get(rknn_context handle, uint32_t count, rknn_output outputs[], void *extend)
{
    context_t *context = find(handle);
    if (!context) return -7;
    if (count != 1 || outputs[0].index || extend || !context->has_general_input) return -9;
    outputs[0].size = outputs[0].want_float ? TENSOR_BYTES * 4 : TENSOR_BYTES;
    outputs[0].buf = malloc(outputs[0].size);
    for (int index = 0; index < TENSOR_BYTES; index++) {
        uint8_t value = context->general_input[index] + 1;
        if (outputs[0].want_float) ((float *)outputs[0].buf)[index] = value;
        else ((uint8_t *)outputs[0].buf)[index] = value;
    }
    return 0;
}

int rknn_outputs_release(rknn_context handle, uint32_t count, rknn_output outputs[])
{
    if (!find(handle)) return -7;
    for (uint32_t index = 0; index < count; index++) free(outputs[index].buf);
    return 0;
}

int rknn_mem_sync(rknn_context handle, rknn_tensor_mem *memory, uint32_t mode)
{
    (void)handle;
    if (!memory || mode < 1 || mode > 3) return -5;
    return 0;
}

/* Functions that no header has, for the tests of child processes and of the log. */
int rknn_test_crash(void) { printf("E RKNN: last words before the crash"); raise(SIGSEGV); return 0; }
int rknn_test_hang(void) { printf("about to hang\n"); for (;;) pause(); return 0; }
int rknn_test_exit(int code) { exit(code); }
int rknn_test_log(size_t lines)
{
    for (size_t line = 0; line < lines; line++)
        printf(line == lines / 2 ? "E RKNN: in the middle of the flood\n" : "I RKNN: line %llu of a flood of harmless text\n",
               (unsigned long long)line);
    return 0;
}
/* Two callers that are in here at one time both get 0; one alone gets RKNN_ERR_TIMEOUT after five seconds. */
int rknn_test_meet(void)
{
    static int arrived;
    __atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST);
    for (int wait = 0; wait < 5000; wait++) {
        if (__atomic_load_n(&arrived, __ATOMIC_SEQ_CST) >= 2) return 0;
        usleep(1000);
    }
    return -2;
}
/* Closes every descriptor above 2, the one for the answer too, and goes on for ever. */
int rknn_test_close_and_hang(void) { for (int fd = 3; fd < 64; fd++) close(fd); for (;;) pause(); return 0; }
/* Writes the process number to the file of this name and goes on for ever. */
int rknn_test_announce_and_hang(const char *path)
{
    FILE *file = fopen(path, "w");
    if (file) { fprintf(file, "%d\n", (int)getpid()); fclose(file); }
    for (;;) pause();
    return 0;
}
int rknn_test_grandchild(void) { pid_t pid = fork(); if (pid == 0) for (;;) pause(); return (int)pid; }
